//! One node: its ports, its folder, its process.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cache::Cache;
use crate::process;

const CLIENT_PORTS: u16 = 10_800;
const REST_PORTS: u16 = 10_300;
const NETWORK_PORTS: u16 = 3_344;
const MAIN: &str = "org.apache.ignite.internal.app.IgniteRunner";
/// What tables keep in memory before pages go to the disk; Ignite would take a fifth of the machine.
const PAGES_BYTES: u64 = 256 << 20;

pub(super) struct Node {
    number: u16,
    folder: PathBuf,
}

// === impl Node ===

impl Node {
    /// Nodes are counted from 1.
    pub(super) fn new(cache: &Cache, number: u16) -> Self {
        Self { number, folder: cache.ignite().join(format!("node{number}")) }
    }

    pub(super) fn name(&self) -> String {
        format!("node{}", self.number)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    pub(super) fn client_port(&self) -> u16 {
        CLIENT_PORTS + self.number - 1
    }

    pub(super) fn rest_port(&self) -> u16 {
        REST_PORTS + self.number - 1
    }

    fn settings_file(&self) -> PathBuf {
        self.folder.join("ignite.conf")
    }

    fn process_file(&self) -> PathBuf {
        self.folder.join("process")
    }

    /// Starts the node apart from this process, so that it outlives it.
    pub(super) fn start(&self, library: &Path, count: u16) -> Result<Child> {
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot create {}", self.folder.display()))?;
        fs::write(self.settings_file(), settings(self, count)).context("write the settings")?;
        let log = File::create(self.log()).context("create the log")?;
        let mut java = Command::new("java");
        java.arg(format!("@{}", library.join("java.args").display()));
        java.arg("-cp").arg(format!("{}/*", library.display())).arg(MAIN);
        java.arg("--config-path").arg(self.settings_file());
        java.arg("--work-dir").arg(self.folder.join("work"));
        java.arg("--node-name").arg(self.name());
        java.stdin(Stdio::null()).stdout(log.try_clone().context("share the log")?).stderr(log);
        let child = java.process_group(0).spawn().context("start java")?;
        fs::write(self.process_file(), child.id().to_string()).context("write the process id")?;
        Ok(child)
    }

    /// The number of the node's process, if it runs. A number that the system gave to somebody else
    /// since is told by what that was started with.
    pub(super) fn process(&self) -> Result<Option<u32>> {
        let Ok(text) = fs::read_to_string(self.process_file()) else { return Ok(None) };
        let id: u32 = text.trim().parse().context("read the process id")?;
        let started_with = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let own = self.settings_file();
        let is_own = String::from_utf8_lossy(&started_with).contains(&*own.to_string_lossy());
        Ok(is_own.then_some(id))
    }

    /// Tells the node to stop; whether it was running.
    pub(super) fn stop(&self) -> Result<bool> {
        let Some(id) = self.process()? else { return Ok(false) };
        let finished = process::run_quietly(Command::new("kill").arg(id.to_string()))?;
        ensure!(finished.is_success, "{}", finished.last_words());
        Ok(true)
    }
}

fn settings(node: &Node, count: u16) -> String {
    let network = |number: u16| format!("\"127.0.0.1:{}\"", NETWORK_PORTS + number - 1);
    let all = (1..=count).map(network).collect::<Vec<_>>().join(", ");
    format!(
        "ignite {{
  network {{
    port = {network_port}
    listenAddresses = [\"127.0.0.1\"]
    nodeFinder.netClusterNodes = [{all}]
  }}
  clientConnector {{ port = {client_port}, listenAddresses = [\"127.0.0.1\"] }}
  rest.port = {rest_port}
  raft.fsync = true
  storage.profiles = [{{ name = default, engine = aipersist, sizeBytes = {PAGES_BYTES} }}]
}}
",
        network_port = NETWORK_PORTS + node.number - 1,
        client_port = node.client_port(),
        rest_port = node.rest_port(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_sync_the_log_and_stay_on_loopback() {
        let node = Node::new(&Cache::at(Path::new("/cache")), 2);
        let settings = settings(&node, 3);
        for line in [
            "raft.fsync = true",
            "[\"127.0.0.1:3344\", \"127.0.0.1:3345\", \"127.0.0.1:3346\"]",
            "port = 3345",
            "port = 10801",
        ] {
            assert!(settings.contains(line), "{line} in {settings}");
        }
    }

    #[test]
    fn another_process_of_the_same_number_is_not_the_node() {
        let scratch = tempfile::tempdir().unwrap();
        let node = Node::new(&Cache::at(scratch.path()), 1);
        assert_eq!(node.process().unwrap(), None);
        fs::create_dir_all(&node.folder).unwrap();
        fs::write(node.process_file(), std::process::id().to_string()).unwrap();
        assert_eq!(node.process().unwrap(), None);
    }
}
