//! Where the programs under test are. Owns the variables' names and the one build of our own
//! binaries; never downloads and never guesses: `cargo xtask provision` fills the variables.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

/// Our packages that have a program under test.
const OURS: [&str; 2] = ["windlass", "checksums"];

/// A program a suite can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asset {
    /// The oracle.
    Etcd,
    Etcdctl,
    /// The second oracle.
    Etcd36,
    KubeApiserver,
    /// Of the oldest Kubernetes that the services are made for.
    KubeApiserver130,
    KubeScheduler,
    KubeControllerManager,
    Kubectl,
    /// A script spoken through the crate `etcd-client`.
    EtcdClient,
    /// An interpreter that finds the package `etcd3`.
    PythonEtcd3,
    /// The binary under test.
    Windlass,
    /// The example of a sharded controller.
    Checksums,
}

/// Why a program cannot be had, for whoever runs the tests.
#[derive(Debug)]
pub struct Missing(pub String);

// === impl Asset ===

impl Asset {
    #[must_use]
    pub fn variable(self) -> &'static str {
        match self {
            Self::Etcd => "TEST_ASSET_ETCD",
            Self::Etcdctl => "TEST_ASSET_ETCDCTL",
            Self::Etcd36 => "TEST_ASSET_ETCD36",
            Self::KubeApiserver => "TEST_ASSET_KUBE_APISERVER",
            Self::KubeApiserver130 => "TEST_ASSET_KUBE_APISERVER130",
            Self::KubeScheduler => "TEST_ASSET_KUBE_SCHEDULER",
            Self::KubeControllerManager => "TEST_ASSET_KUBE_CONTROLLER_MANAGER",
            Self::Kubectl => "TEST_ASSET_KUBECTL",
            Self::EtcdClient => "TEST_ASSET_ETCD_CLIENT",
            Self::PythonEtcd3 => "TEST_ASSET_PYTHON_ETCD3",
            Self::Windlass => "WINDLASS_BIN",
            Self::Checksums => "CHECKSUMS_BIN",
        }
    }

    /// The program's path. A variable that is not set is a [`Missing`] peer; one that names
    /// nothing is an error everywhere, since somebody meant it.
    pub fn find(self) -> Result<Result<PathBuf, Missing>> {
        match env::var_os(self.variable()).map(PathBuf::from) {
            Some(path) => {
                ensure!(path.is_file(), "{} names no file: {}", self.variable(), path.display());
                Ok(Ok(path))
            }
            None => match self.package() {
                Some(package) => built(package).map(Ok),
                None => Ok(Err(Missing(format!(
                    "{} is not set (cargo xtask provision)",
                    self.variable()
                )))),
            },
        }
    }

    /// Which of our packages it is; none for a peer.
    const fn package(self) -> Option<&'static str> {
        match self {
            Self::Windlass => Some("windlass"),
            Self::Checksums => Some("checksums"),
            _ => None,
        }
    }
}

/// Builds our binaries, optimised, once per test process. Cargo decides whether anything is to be
/// done, so what is tested is never older than its source.
fn built(package: &'static str) -> Result<PathBuf> {
    static BUILT: Mutex<BTreeMap<&str, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if built.is_empty() {
        *built = build()?;
    }
    built
        .get(package)
        .cloned()
        .with_context(|| format!("cargo built no executable called {package}"))
}

/// Both at once, as `cargo xtask test` does before: each alone would want the libraries of both with
/// other features, and cargo would compile them again.
fn build() -> Result<BTreeMap<&'static str, PathBuf>> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO"))
        .args(["build", "--profile", "suite", "--message-format=json"])
        .args(OURS.iter().flat_map(|package| ["--package", package]))
        .current_dir(workspace)
        .output()
        .context("run cargo")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).context("read cargo's messages")?;
    let path = |package| messages.lines().find_map(|line| executable(line, package));
    Ok(OURS.into_iter().filter_map(|package| Some((package, path(package)?))).collect())
}

fn executable(message: &str, name: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    (message["target"]["name"] == name)
        .then(|| message["executable"].as_str().map(PathBuf::from))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_read_from_cargos_messages() {
        let check = |line: &str| executable(line, "windlass");
        let artifact = r#"{"target":{"name":"windlass"},"executable":"/t/windlass"}"#;
        assert_eq!(check(artifact), Some(PathBuf::from("/t/windlass")));
        assert_eq!(check(r#"{"target":{"name":"store"},"executable":null}"#), None);
        assert_eq!(check(r#"{"target":{"name":"windlass"},"executable":null}"#), None);
    }
}
