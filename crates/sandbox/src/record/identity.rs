//! Which process a shim was, so that another one that got the same number is not taken for it.

use std::{fs, io};

use rustix::process::{Pid, getpid};
use serde::{Deserialize, Serialize};

use crate::process::table::{self, Row};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A process, told apart from every other one there ever was on the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pid: i32,
    /// In ticks since boot.
    started: u64,
    boot: String,
}

// === impl Identity ===

impl Identity {
    /// Of this process.
    pub(crate) fn own() -> io::Result<Self> {
        let pid = getpid();
        let row =
            table::row(pid)?.ok_or_else(|| io::Error::other("/proc does not show this process"))?;
        Ok(Self { pid: pid.as_raw_pid(), started: row.started, boot: boot_id()? })
    }

    /// The session the process leads or led. `None` if the number cannot mean it any more: the machine
    /// was started anew, or another process has it. As long as a session has members, its number goes
    /// to nobody else.
    pub(crate) fn session(&self, rows: &[Row]) -> io::Result<Option<Pid>> {
        let Some(pid) = Pid::from_raw(self.pid) else { return Ok(None) };
        let leader = rows.iter().find(|row| row.pid == pid);
        let is_other = leader.is_some_and(|row| row.started != self.started);
        Ok((!is_other && self.boot == boot_id()?).then_some(pid))
    }
}

fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string(BOOT_ID)?.trim_end().to_owned())
}
