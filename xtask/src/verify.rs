//! The read-only gate: formatting, lints, documentation and the rules. It changes nothing.

use anyhow::Result;

use crate::cache::Cache;
use crate::checkout::Checkout;
use crate::process::{self, Stopwatch};
use crate::rules::{Material, RULES};

/// A check that is a cargo command.
struct Gate {
    name: &'static str,
    claim: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

/// One line of the table of results.
struct Verdict {
    name: &'static str,
    claim: &'static str,
    is_good: bool,
    detail: String,
}

/// The client that has a workspace of its own.
const CLIENT: &str = "xtask/peers/etcd-client-0.21.1/Cargo.toml";

const GATES: &[Gate] = &[
    Gate {
        name: "format",
        claim: "the sources are formatted",
        arguments: &["fmt", "--all", "--check"],
        environment: &[],
    },
    Gate {
        name: "format-client",
        claim: "so is the client that has a workspace of its own",
        arguments: &["fmt", "--all", "--check", "--manifest-path", CLIENT],
        environment: &[],
    },
    Gate {
        name: "fuzz-lock",
        claim: "the lock file of the fuzz targets is up to date",
        arguments: &["fetch", "--quiet", "--locked", "--manifest-path", "fuzz/Cargo.toml"],
        environment: &[],
    },
    Gate {
        name: "clippy",
        claim: "no lint warns",
        arguments: &[
            "clippy",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--locked",
            "--",
            "-Dwarnings",
        ],
        environment: &[],
    },
    Gate {
        name: "rustdoc",
        claim: "the documentation builds without warnings",
        arguments: &["doc", "--quiet", "--workspace", "--no-deps", "--all-features", "--locked"],
        environment: &[("RUSTDOCFLAGS", "-Dwarnings")],
    },
];

/// Runs every check, whatever the others say; true when all hold.
pub(crate) fn run(checkout: &Checkout) -> Result<bool> {
    let mut verdicts = check_rules(checkout)?;
    for gate in GATES {
        verdicts.push(gate.check(checkout)?);
    }
    verdicts.push(check_client(checkout)?);
    Ok(conclude(&verdicts))
}

/// Runs what needs no compiler.
pub(crate) fn run_rules(checkout: &Checkout) -> Result<bool> {
    Ok(conclude(&check_rules(checkout)?))
}

fn conclude(verdicts: &[Verdict]) -> bool {
    println!("\n{}", table(verdicts));
    verdicts.iter().all(|verdict| verdict.is_good)
}

fn check_rules(checkout: &Checkout) -> Result<Vec<Verdict>> {
    let material = Material::load(checkout)?;
    let verdicts = RULES.iter().map(|rule| {
        let findings = rule.apply(&material);
        for finding in &findings {
            println!("{finding}");
        }
        let detail = if findings.is_empty() { String::new() } else { findings.len().to_string() };
        Verdict { name: rule.name, claim: rule.claim, is_good: findings.is_empty(), detail }
    });
    Ok(verdicts.collect())
}

/// Lints of the client's workspace. Its build scripts ask for a protobuf compiler, which is one of
/// its packages; where the client was provisioned, that compiler is there already.
fn check_client(checkout: &Checkout) -> Result<Verdict> {
    let stopwatch = Stopwatch::start();
    let target = Cache::open()?.cargo_peers();
    let run = |verb: &str, arguments: &[&str]| {
        let common = [verb, "--quiet", "--release", "--locked", "--manifest-path", CLIENT];
        let mut cargo = checkout.cargo(&[&common, arguments].concat());
        cargo.env("CARGO_TARGET_DIR", &target).env("PROTOC", target.join("release/protoc"));
        process::run_in_front(&mut cargo)
    };
    let is_good = run("build", &["--package", "protoc"])?
        && run("clippy", &["--workspace", "--all-targets", "--", "-Dwarnings"])?;
    Ok(Verdict {
        name: "clippy-client",
        claim: "no lint warns of the client that has a workspace of its own",
        is_good,
        detail: stopwatch.elapsed().to_string(),
    })
}

fn table(verdicts: &[Verdict]) -> String {
    let lines = verdicts.iter().map(|Verdict { name, claim, is_good, detail }| {
        let word = if *is_good { "ok" } else { "FAILED" };
        format!("{word:<8}{name:<17}{claim:<60}  {detail}").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

// === impl Gate ===

impl Gate {
    fn check(&self, checkout: &Checkout) -> Result<Verdict> {
        let stopwatch = Stopwatch::start();
        let mut cargo = checkout.cargo(self.arguments);
        let is_good = process::run_in_front(cargo.envs(self.environment.iter().copied()))?;
        let detail = stopwatch.elapsed().to_string();
        Ok(Verdict { name: self.name, claim: self.claim, is_good, detail })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_table_shows_what_failed() {
        let verdict = |name, claim, is_good, detail: &str| Verdict {
            name,
            claim,
            is_good,
            detail: detail.to_owned(),
        };
        let shown = table(&[
            verdict("storage", "only journals write", true, ""),
            verdict("clippy", "no lint warns", false, "12.1 s"),
        ]);
        expect![[r#"
            ok      storage          only journals write
            FAILED  clippy           no lint warns                                                 12.1 s"#]]
        .assert_eq(&shown);
    }
}
