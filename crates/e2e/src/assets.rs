//! Where the programs under test are. Owns the variables' names and the one build of our own
//! binary; never downloads and never guesses: `cargo xtask provision` fills the variables.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};

/// A program a suite can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asset {
    /// The oracle.
    Etcd,
    Etcdctl,
    /// The second oracle.
    Etcd36,
    KubeApiserver,
    Kubectl,
    /// A script spoken through the crate `etcd-client`.
    EtcdClient,
    /// An interpreter that finds the package `etcd3`.
    PythonEtcd3,
    /// The binary under test.
    Windlass,
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
            Self::Kubectl => "TEST_ASSET_KUBECTL",
            Self::EtcdClient => "TEST_ASSET_ETCD_CLIENT",
            Self::PythonEtcd3 => "TEST_ASSET_PYTHON_ETCD3",
            Self::Windlass => "WINDLASS_BIN",
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
            None if self == Self::Windlass => built_windlass().map(Ok),
            None => {
                Ok(Err(Missing(format!("{} is not set (cargo xtask provision)", self.variable()))))
            }
        }
    }
}

/// Builds the binary in release mode, once per test process. Cargo decides whether anything is to
/// be done, so what is tested is never older than its source.
fn built_windlass() -> Result<PathBuf> {
    static BUILT: OnceLock<std::result::Result<PathBuf, String>> = OnceLock::new();
    match BUILT.get_or_init(|| build_windlass().map_err(|error| format!("{error:#}"))) {
        Ok(path) => Ok(path.clone()),
        Err(reason) => bail!("build windlass: {reason}"),
    }
}

fn build_windlass() -> Result<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO"))
        .args(["build", "--release", "--package", "windlass", "--message-format=json"])
        .current_dir(workspace)
        .output()
        .context("run cargo")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).context("read cargo's messages")?;
    messages.lines().find_map(executable).context("cargo built no executable called windlass")
}

fn executable(message: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    (message["target"]["name"] == "windlass")
        .then(|| message["executable"].as_str().map(PathBuf::from))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_read_from_cargos_messages() {
        let check = |line: &str| executable(line);
        let artifact = r#"{"target":{"name":"windlass"},"executable":"/t/windlass"}"#;
        assert_eq!(check(artifact), Some(PathBuf::from("/t/windlass")));
        assert_eq!(check(r#"{"target":{"name":"store"},"executable":null}"#), None);
        assert_eq!(check(r#"{"target":{"name":"windlass"},"executable":null}"#), None);
    }
}
