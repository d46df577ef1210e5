//! Programs the user brings along instead of having them built.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::{Asset, Peer, Program};

/// The path the user gave for this program, if any; an empty variable counts as unset.
pub(super) fn find(
    program: &Program,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    [Some(program.variable), program.stand_in]
        .into_iter()
        .flatten()
        .filter_map(variable)
        .find(|path| !path.is_empty())
        .map(PathBuf::from)
}

/// An override may be of another version, which is said; one that does not start is an error.
pub(super) fn check(peer: &Peer, program: &Program, path: PathBuf) -> Result<Asset> {
    let said = program
        .probe
        .ask(&path)
        .with_context(|| format!("{} overrides {} of {peer}", program.variable, program.name))?;
    let reported = said.lines().next().unwrap_or("nothing").trim();
    eprintln!("{peer}: {} is {} (reports: {reported})", program.name, path.display());
    Ok(Asset { variable: program.variable, path })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::catalogue;

    fn check_find(peer: &str, environment: &[(&str, &str)]) -> Option<PathBuf> {
        let peer = catalogue().iter().find(|each| each.to_string() == peer).unwrap();
        find(&peer.programs[0], &|wanted| {
            let found = environment.iter().find(|(variable, _)| *variable == wanted);
            found.map(|(_, path)| OsString::from(path))
        })
    }

    #[test]
    fn an_overridden_etcd_stands_for_both_versions() {
        let environment = [("TEST_ASSET_ETCD", "/opt/etcd")];
        assert_eq!(check_find("etcd-3.7.1", &environment), Some("/opt/etcd".into()));
        assert_eq!(check_find("etcd-3.6.14", &environment), Some("/opt/etcd".into()));
    }

    #[test]
    fn the_own_variable_wins_and_empty_is_unset() {
        let both = [("TEST_ASSET_ETCD", "/opt/new"), ("TEST_ASSET_ETCD36", "/opt/old")];
        assert_eq!(check_find("etcd-3.6.14", &both), Some("/opt/old".into()));
        assert_eq!(check_find("etcd-3.7.1", &[("TEST_ASSET_ETCD", "")]), None);
        assert_eq!(check_find("etcd-3.7.1", &[("TEST_ASSET_ETCD36", "/opt/old")]), None);
    }

    #[test]
    fn an_override_that_does_not_start_is_an_error() {
        let peer = &catalogue()[0];
        let error = super::check(peer, &peer.programs[0], "/nowhere/etcd".into()).unwrap_err();
        assert!(format!("{error:#}").contains("TEST_ASSET_ETCD overrides etcd of etcd-3.7.1"));
    }
}
