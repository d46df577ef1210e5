//! What a group used, read while it still exists.

use std::{path::Path, time::Duration};

use super::{
    Error,
    file::{keyed, read, read_if_there},
};
use crate::Usage;

/// What the processes of a group took, from the first to the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub usage: Usage,
    /// How often the kernel killed for want of memory.
    pub oom_kills: u64,
}

// === impl Account ===

impl Account {
    pub(super) fn of_v1(memory: &Path, cpuacct: &Path) -> Result<Self, Error> {
        let oom_kills = counted(memory, "memory.oom_control", "oom_kill")?;
        let peak_memory_bytes = number(memory, "memory.max_usage_in_bytes")?;
        let cpu = Duration::from_nanos(number(cpuacct, "cpuacct.usage")?);
        Ok(Self { usage: Usage { peak_memory_bytes, cpu }, oom_kills })
    }

    pub(super) fn of_v2(dir: &Path) -> Result<Self, Error> {
        let oom_kills = counted(dir, "memory.events", "oom_kill")?;
        // Kernels before 5.19 keep no peak.
        let peak = read_if_there(dir, "memory.peak")?;
        let peak_memory_bytes = peak.map_or(Ok(0), |text| parse(dir, "memory.peak", &text))?;
        let cpu = Duration::from_micros(counted(dir, "cpu.stat", "usage_usec")?);
        Ok(Self { usage: Usage { peak_memory_bytes, cpu }, oom_kills })
    }
}

fn number(dir: &Path, file: &str) -> Result<u64, Error> {
    parse(dir, file, &read(dir, file)?)
}

fn counted(dir: &Path, file: &str, key: &str) -> Result<u64, Error> {
    let text = read(dir, file)?;
    keyed(&text, key).ok_or_else(|| Error::Unexpected { path: dir.join(file), text })
}

fn parse(dir: &Path, file: &str, text: &str) -> Result<u64, Error> {
    let unexpected = || Error::Unexpected { path: dir.join(file), text: text.to_owned() };
    text.trim().parse().ok().ok_or_else(unexpected)
}
