//! The kernel's own brake on a process' writes: a control group, of either version.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use e2e::report::say;
use rustix::fs::{major, minor, stat};

/// Where the groups of version 1 and of version 2 are.
const OLD_ROOT: &str = "/sys/fs/cgroup/blkio";
const NEW_ROOT: &str = "/sys/fs/cgroup";

/// A group that one process is in, until this is dropped.
pub(super) struct Throttle {
    process: u32,
    root: PathBuf,
    group: PathBuf,
}

// === impl Throttle ===

impl Throttle {
    /// Lets a process write only so often to the disk that a folder is on. The reason why not, if
    /// this user or this machine cannot.
    pub(super) fn on(
        process: u32,
        folder: &Path,
        writes_per_second: u32,
    ) -> Result<Result<Self, String>> {
        let disk = disk(folder)?;
        let is_old = Path::new(OLD_ROOT).is_dir();
        let root = PathBuf::from(if is_old { OLD_ROOT } else { NEW_ROOT });
        let group = root.join(format!("e2e-{process}"));
        let limit = if is_old {
            ("blkio.throttle.write_iops_device", format!("{disk} {writes_per_second}"))
        } else {
            ("io.max", format!("{disk} wiops={writes_per_second}"))
        };
        let throttle = Self { process, root, group };
        Ok(throttle.apply(is_old, &limit).map(|()| throttle).map_err(|error| {
            format!("the writes of a process cannot be slowed down here: {error:#}")
        }))
    }

    fn apply(&self, is_old: bool, (file, limit): &(&str, String)) -> Result<()> {
        if !is_old {
            write(&self.root.join("cgroup.subtree_control"), "+io")?;
        }
        fs::create_dir(&self.group).with_context(|| format!("make {}", self.group.display()))?;
        write(&self.group.join(file), limit)?;
        write(&self.group.join("cgroup.procs"), &self.process.to_string())
    }

    /// A group can go only when nobody is in it.
    fn remove(&self) -> Result<()> {
        if Path::new("/proc").join(self.process.to_string()).exists() {
            write(&self.root.join("cgroup.procs"), &self.process.to_string())?;
        }
        fs::remove_dir(&self.group).with_context(|| format!("remove {}", self.group.display()))
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        if self.group.exists()
            && let Err(error) = self.remove()
        {
            say(&format!("a control group is left: {error:#}"));
        }
    }
}

/// The disk's number, also where the folder is on one of its partitions: only whole disks are slowed.
fn disk(folder: &Path) -> Result<String> {
    let device = stat(folder).with_context(|| format!("look at {}", folder.display()))?.st_dev;
    let number = format!("{}:{}", major(device), minor(device));
    let place = Path::new("/sys/dev/block").join(&number);
    if !place.join("partition").exists() {
        return Ok(number);
    }
    let whole = place.join("../dev");
    let number = fs::read_to_string(&whole).with_context(|| format!("read {}", whole.display()))?;
    Ok(number.trim().to_owned())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("write {text} to {}", path.display()))
}
