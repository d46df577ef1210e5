//! The shims of a daemon, found where the kernel keeps families: a daemon has one child, its nursery, and
//! the children of that are the shims. They lie in another session than the daemon, so no signal to the
//! daemon's process group reaches them.

use std::fs;
use std::os::fd::OwnedFd;

use anyhow::{Context, Result, ensure};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Held processes: a number could pass on to somebody else between the look and the signal.
#[derive(Debug)]
pub struct Shims(Vec<OwnedFd>);

// === impl Shims ===

impl Shims {
    /// Those that live now.
    pub fn of(daemon: u32) -> Result<Self> {
        let mut held = Vec::new();
        for nursery in children(daemon)? {
            for shim in children(nursery)? {
                let pid = i32::try_from(shim).ok().and_then(Pid::from_raw);
                let pid = pid.context("a process has a number")?;
                held.push(pidfd_open(pid, PidfdFlags::empty()).context("hold a shim")?);
            }
        }
        Ok(Self(held))
    }

    /// Those that live now, which must be so many.
    pub fn exactly(daemon: u32, count: usize) -> Result<Self> {
        let shims = Self::of(daemon)?;
        ensure!(shims.count() == count, "the daemon has {} shims, not {count}", shims.count());
        Ok(shims)
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// One that has ended needs no signal.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        for shim in &self.0 {
            match pidfd_send_signal(shim, signal) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(errno) => return Err(errno).context("send a signal to a shim"),
            }
        }
        Ok(())
    }
}

/// What any of its threads has started.
fn children(process: u32) -> Result<Vec<u32>> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{process}/task")).context("list its threads")? {
        let path = thread.context("list its threads")?.path().join("children");
        let listed = match fs::read_to_string(path) {
            // A thread may end while its folder is read.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            listed => listed.context("list the children of a thread")?,
        };
        for child in listed.split_whitespace() {
            children.push(child.parse().context("a process has a number")?);
        }
    }
    Ok(children)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;
    use crate::wait::{Level, wait_for};

    /// A shell for the daemon, one for the nursery, and two programs for shims.
    #[tokio::test]
    async fn shims_are_grandchildren_and_children_are_not() {
        let nursery = "sleep 1000 & sleep 1000 & wait";
        let mut daemon = Command::new("/bin/sh")
            .args(["-c", &format!("/bin/sh -c '{nursery}'; true")])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let shims = wait_for("both to be there", Duration::from_secs(10), async || {
            Ok(match Shims::exactly(daemon.id(), 2) {
                Ok(shims) => Level::Reached(shims),
                Err(error) => Level::Below(format!("{error:#}")),
            })
        });
        let shims = shims.await.unwrap();
        assert!(Shims::exactly(daemon.id(), 1).is_err(), "a number that is not theirs is told");
        shims.signal(Signal::KILL).unwrap();
        assert!(daemon.wait().unwrap().success(), "it waited for nobody else");
    }
}
