//! What a cluster left on the machine. Looks where the kernel keeps things, never at what a node says.
//!
//! A thing is ours if it belongs to the host id of one of our nodes, or to the folder of the test; other
//! tests and other nodes of the machine are not looked at.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::wait::{Level, wait_for};

/// What is dying may take a moment to be gone.
const GONE_WAIT: Duration = Duration::from_secs(10);

const CGROUPS: &str = "/sys/fs/cgroup";

/// By which things are told to be ours.
#[derive(Clone, Debug)]
pub struct Traces {
    pub folder: PathBuf,
    pub host_ids: Vec<String>,
}

// === impl Traces ===

impl Traces {
    /// Waits until nothing is left: to be called when every node has stopped.
    pub async fn wait_gone(&self) -> Result<()> {
        wait_for("everything to be gone from the machine", GONE_WAIT, async || {
            let left = self.find()?;
            Ok(if left.is_empty() { Level::Reached(()) } else { Level::Below(left.join("\n")) })
        })
        .await
    }

    /// Everything that is left, in words.
    pub fn find(&self) -> Result<Vec<String>> {
        Ok([self.processes()?, self.cgroups(), self.mounts()?].concat())
    }

    /// Programs that run in one of our cgroups, or have a file of the test open as their own.
    pub fn processes(&self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").context("list processes")? {
            let folder = entry.context("list processes")?.path();
            let Some(id) = folder.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok())
            else {
                continue;
            };
            if id != std::process::id() && self.is_ours(&folder) {
                found.push(format!("process {id}: {}", command_line(&folder)));
            }
        }
        Ok(found)
    }

    /// A process may end while it is looked at; then it is not left.
    fn is_ours(&self, process: &Path) -> bool {
        let cgroups = fs::read_to_string(process.join("cgroup")).unwrap_or_default();
        let in_group = self.host_ids.iter().any(|id| cgroups.contains(id.as_str()));
        let links = ["cwd", "root", "exe"].map(|name| process.join(name));
        let files = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        let links = links.into_iter().chain(files.map(|file| file.path()));
        let mut targets = links.filter_map(|link| fs::read_link(link).ok());
        in_group || targets.any(|target| target.starts_with(&self.folder))
    }

    /// Those of attempts; the one of the host itself may stay.
    fn cgroups(&self) -> Vec<String> {
        let hierarchies = subfolders(Path::new(CGROUPS)).into_iter().chain([CGROUPS.into()]);
        let hosts = hierarchies.flat_map(|hierarchy| {
            let folder = hierarchy.join("windlass");
            self.host_ids.iter().map(move |id| folder.join(id)).collect::<Vec<_>>()
        });
        let attempts: BTreeSet<PathBuf> = hosts.flat_map(|host| subfolders(&host)).collect();
        attempts.into_iter().map(|path| format!("cgroup {}", path.display())).collect()
    }

    /// Mounts below the folder, and namespaces that a mount keeps alive there.
    fn mounts(&self) -> Result<Vec<String>> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").context("list mounts")?;
        let folder = self.folder.display().to_string();
        let ours = mounts.lines().filter(|line| {
            line.contains(&folder) || self.host_ids.iter().any(|id| line.contains(id.as_str()))
        });
        Ok(ours.map(|line| format!("mount {line}")).collect())
    }
}

/// None if there is no such folder: a hierarchy need not have our groups.
fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn command_line(process: &Path) -> String {
    let words = fs::read(process.join("cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}
