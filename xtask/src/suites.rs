//! Runs every suite of the project, the real peers provisioned first.
//!
//! Owns the order and the count. Peers are built before anything is tested, never at the same time:
//! both want all cores. A suite whose peer cannot be had is skipped by name and reason; under
//! continuous integration that is a failure, so that nothing passes by being absent.

mod fuzz;
mod report;
mod table;

use std::collections::HashMap;
use std::env;
use std::process::Command;

use anyhow::{Result, ensure};

use self::report::{Outcome, Report};
use self::table::{Action, SUITES, Suite};
use crate::cache::Cache;
use crate::checkout::Checkout;
use crate::peers::{self, Asset, Peer, Provision};
use crate::{process, verify};

/// Set for the tests when they are to run at length.
const FULL_VARIABLE: &str = "WINDLASS_TEST_FULL";

pub(crate) struct Options {
    pub(crate) is_full: bool,
    /// Only suites whose name contains this.
    pub(crate) filter: Option<String>,
}

/// Why each unavailable peer is, and where the programs of the others are.
#[derive(Default)]
struct Provisioned {
    assets: Vec<Asset>,
    missing: HashMap<String, String>,
}

// === impl Provisioned ===

impl Provisioned {
    /// The first peer the suite needs and cannot have, with the reason.
    fn lack(&self, suite: &Suite) -> Option<String> {
        let missing = suite.needs.iter().find_map(|need| self.missing.get_key_value(*need));
        missing.map(|(peer, reason)| format!("{peer}: {reason}"))
    }

    fn hand_on(&self, command: &mut Command) {
        command.envs(self.assets.iter().map(|asset| (asset.variable, &asset.path)));
    }
}

/// Runs the selected suites, whatever the others say; true when none failed.
pub(crate) fn run(checkout: &Checkout, options: &Options) -> Result<bool> {
    let is_ci = is_set("CI");
    let checkout = &if is_ci { keep_cargo_output(checkout)? } else { checkout.clone() };
    let selected = select(options.filter.as_deref());
    ensure!(!selected.is_empty(), "no suite's name contains `{}`", filter_text(options));
    let provisioned = provision(checkout, &selected)?;
    let mut report = Report::new(is_ci);
    for suite in selected {
        eprintln!("\n=== {}: {}", suite.name, suite.claim);
        let outcome = match provisioned.lack(suite).or_else(|| missing_tool(suite)) {
            Some(reason) => Outcome::Skipped(reason),
            None if run_suite(checkout, options, suite, &provisioned)? => Outcome::Passed,
            None => Outcome::Failed,
        };
        report.add(suite.name, outcome);
    }
    println!("\n{report}");
    Ok(report.is_good())
}

fn select(filter: Option<&str>) -> Vec<&'static Suite> {
    let is_wanted = |suite: &&Suite| filter.is_none_or(|filter| suite.name.contains(filter));
    SUITES.iter().filter(is_wanted).collect()
}

/// What the suite's tools need beside Rust and cannot have.
fn missing_tool(suite: &Suite) -> Option<String> {
    match suite.action {
        Action::Fuzz => fuzz::missing_tool(),
        Action::Verify | Action::Cargo(_) | Action::EndToEnd(_) => None,
    }
}

fn filter_text(options: &Options) -> &str {
    options.filter.as_deref().unwrap_or_default()
}

fn provision(checkout: &Checkout, suites: &[&Suite]) -> Result<Provisioned> {
    let is_needed =
        |peer: &&Peer| suites.iter().any(|suite| suite.needs.contains(&peer.to_string().as_str()));
    let mut provisioned = Provisioned::default();
    for peer in peers::catalogue().iter().filter(is_needed) {
        match peers::provision(checkout, peer)? {
            Provision::Ready(assets) => provisioned.assets.extend(assets),
            Provision::Unavailable(reason) => {
                provisioned.missing.insert(peer.to_string(), reason);
            }
        }
    }
    Ok(provisioned)
}

fn run_suite(
    checkout: &Checkout,
    options: &Options,
    suite: &Suite,
    provisioned: &Provisioned,
) -> Result<bool> {
    match suite.action {
        Action::Verify => verify::run(checkout),
        Action::Fuzz => fuzz::run(checkout, options.is_full),
        Action::Cargo(_) | Action::EndToEnd(_) => {
            for arguments in suite.action.commands() {
                let mut cargo = checkout.cargo(&arguments);
                provisioned.hand_on(&mut cargo);
                if options.is_full {
                    cargo.env(FULL_VARIABLE, "1");
                }
                if !process::run_in_front(&mut cargo)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
    }
}

/// Clones come and go under continuous integration; what cargo has compiled stays, unless the
/// environment already says where.
fn keep_cargo_output(checkout: &Checkout) -> Result<Checkout> {
    if env::var_os("CARGO_TARGET_DIR").is_some() {
        return Ok(checkout.clone());
    }
    Ok(checkout.with_cargo_target(Cache::open()?.cargo_target()))
}

fn is_set(variable: &str) -> bool {
    env::var(variable).is_ok_and(|value| value == "true" || value == "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_selects_suites_by_name() {
        let names = |filter| select(filter).iter().map(|suite| suite.name).collect::<Vec<_>>();
        assert_eq!(names(Some("e2e")), ["e2e"]);
        assert_eq!(names(Some("nothing")), [] as [&str; 0]);
        assert_eq!(names(None).len(), SUITES.len());
    }

    #[test]
    fn a_suite_lacks_only_what_it_needs() {
        let missing = HashMap::from([("etcd-3.6.14".to_owned(), "no Go".to_owned())]);
        let provisioned = Provisioned { assets: Vec::new(), missing };
        let lack = |name| provisioned.lack(select(Some(name))[0]);
        assert_eq!(lack("workspace"), None);
        assert_eq!(lack("e2e").as_deref(), Some("etcd-3.6.14: no Go"));
    }

    #[test]
    fn assets_reach_the_tests_by_their_variables() {
        let asset = Asset { variable: "TEST_ASSET_ETCD", path: "/cache/etcd".into() };
        let provisioned = Provisioned { assets: vec![asset], missing: HashMap::new() };
        let mut command = Command::new("cargo");
        provisioned.hand_on(&mut command);
        let handed: Vec<_> = command.get_envs().collect();
        assert_eq!(handed, [("TEST_ASSET_ETCD".as_ref(), Some("/cache/etcd".as_ref()))]);
    }
}
