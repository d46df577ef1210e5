//! The real programs behind tests and benchmarks, built from pinned recipes.
//!
//! Owns what a peer is, where it lies and under which variable a test finds it. A peer that cannot
//! be had here (no toolchain, no registry) is a value, [`Provision::Unavailable`]; a peer that is
//! broken (failed build, wrong checksum, an override that does not start) is an error.
//!
//! Each program is handed on in a variable of its own. The same variable, set by the user,
//! replaces what would be built.
//!
//! | peer | variables |
//! |---|---|
//! | etcd 3.7.1 | `TEST_ASSET_ETCD`, `TEST_ASSET_ETCDCTL`, `TEST_ASSET_ETCD_BENCHMARK` |
//! | etcd 3.6.14 | the same with `36` at the end; without them, an overridden 3.7 stands in |
//! | kubernetes 1.36.4 | `TEST_ASSET_KUBE_APISERVER`, `TEST_ASSET_KUBECTL` |
//! | kubernetes 1.30.14 | `TEST_ASSET_KUBE_APISERVER130` |
//! | kube-control-plane 1.36.4 | `TEST_ASSET_KUBE_SCHEDULER`, `TEST_ASSET_KUBE_CONTROLLER_MANAGER` |
//! | kwok 0.8.0 | `TEST_ASSET_KWOK` |
//! | etcd-client 0.21.1 | `TEST_ASSET_ETCD_CLIENT` |
//! | python-etcd3 0.12.0 | `TEST_ASSET_PYTHON_ETCD3` |
//! | ignite 3.1.0 | `TEST_ASSET_IGNITE3_LIB`, a folder of jars |

mod build;
mod catalogue;
mod go;
mod overrides;
mod probe;
mod recipe;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::cache::Cache;
use crate::checkout::Checkout;
use crate::process::Stopwatch;

pub(crate) use self::catalogue::{Peer, Program, catalogue};

/// A program's place, under the variable that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asset {
    pub(crate) variable: &'static str,
    pub(crate) path: PathBuf,
}

/// What provisioning a peer came to.
#[derive(Debug)]
pub(crate) enum Provision {
    Ready(Vec<Asset>),
    /// This machine lacks what the peer needs; the reason is for the user.
    Unavailable(String),
}

/// Provisions the named peers and prints `VARIABLE=path` lines; false when one cannot be had.
pub(crate) fn provision_named(checkout: &Checkout, names: &[String]) -> Result<bool> {
    let mut is_complete = true;
    for peer in select(names)? {
        match provision(checkout, peer)? {
            Provision::Ready(assets) => {
                for Asset { variable, path } in assets {
                    println!("{variable}={}", path.display());
                }
            }
            Provision::Unavailable(reason) => {
                eprintln!("{peer}: unavailable: {reason}");
                is_complete = false;
            }
        }
    }
    Ok(is_complete)
}

/// Makes one peer's programs available, building what neither an override nor the cache provides.
pub(crate) fn provision(checkout: &Checkout, peer: &Peer) -> Result<Provision> {
    let mut assets = Vec::new();
    let mut wanted = Vec::new();
    for program in peer.programs {
        match overrides::find(program, &|variable| std::env::var_os(variable)) {
            Some(path) => assets.push(overrides::check(peer, program, path)?),
            None => wanted.push(program),
        }
    }
    if wanted.is_empty() {
        return Ok(Provision::Ready(assets));
    }
    let cache = Cache::open()?;
    let _lock = cache.lock()?;
    let folder = match build::ensure(checkout, &cache, peer)? {
        build::Built::At(folder) => folder,
        build::Built::Unavailable(reason) => return Ok(Provision::Unavailable(reason)),
    };
    assets.extend(
        wanted
            .iter()
            .map(|program| Asset { variable: program.variable, path: folder.join(program.name) }),
    );
    Ok(Provision::Ready(assets))
}

/// Peers by name, or by name and version; all of them when none is named.
fn select(names: &[String]) -> Result<Vec<&'static Peer>> {
    let is_named = |peer: &Peer, name: &String| name == peer.name || *name == peer.to_string();
    if let Some(unknown) =
        names.iter().find(|name| !catalogue().iter().any(|peer| is_named(peer, name)))
    {
        let known: Vec<String> = catalogue().iter().map(ToString::to_string).collect();
        bail!("no peer is called `{unknown}`\nhint: known are {}", known.join(", "));
    }
    let is_wanted =
        |peer: &&Peer| names.is_empty() || names.iter().any(|name| is_named(peer, name));
    Ok(catalogue().iter().filter(is_wanted).collect())
}

/// Runs one step and prints its line: peer, step, elapsed time.
fn step<T>(peer: &Peer, what: &str, act: impl FnOnce() -> Result<T>) -> Result<T> {
    eprint!("{peer}: {what} ... ");
    let stopwatch = Stopwatch::start();
    let outcome = act();
    let end = if outcome.is_ok() { "" } else { ", failed" };
    eprintln!("{}{end}", stopwatch.elapsed());
    outcome.with_context(|| format!("{peer}: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str]) -> Vec<String> {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        select(&names).unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_bare_name_selects_every_version() {
        assert_eq!(check(&["etcd"]), ["etcd-3.7.1", "etcd-3.6.14"]);
        assert_eq!(check(&["etcd-3.6.14"]), ["etcd-3.6.14"]);
        assert_eq!(check(&[]).len(), catalogue().len());
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = select(&["etdc".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("`etdc`") && error.contains("etcd-3.7.1"), "{error}");
    }
}
