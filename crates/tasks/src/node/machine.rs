//! What the machine has and how it is now. Reads what the kernel tells; decides nothing.

use std::path::{Path, PathBuf};

use rustix::fs::statvfs;

use super::limits;
use crate::core::admission::{Machine, Totals};
use crate::core::amounts::Amounts;

const MEMINFO: &str = "/proc/meminfo";
const PRESSURE: &str = "/proc/pressure/memory";
const PID_MAX: &str = "/proc/sys/kernel/pid_max";

#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error("cannot read {path}")]
    Read {
        path: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error("{path} does not tell {what}")]
    Untold { path: &'static str, what: &'static str },
    #[error("the number of processors is not told")]
    Processors(#[source] std::io::Error),
    #[error("the space in {} is not told", path.display())]
    Space {
        path: PathBuf,
        #[source]
        source: rustix::io::Errno,
    },
}

/// What there is in total, for the node and all its tasks.
pub(super) fn totals(data_dir: &Path) -> Result<Totals, MachineError> {
    let processors = std::thread::available_parallelism().map_err(MachineError::Processors)?;
    let processors = u64::try_from(processors.get()).unwrap_or(u64::MAX);
    let pids = read(PID_MAX)?.trim().parse();
    let host = Amounts {
        cpu_millis: processors.saturating_mul(1000),
        memory_bytes: meminfo(&read(MEMINFO)?, "MemTotal")?,
        pids: pids.ok().ok_or(MachineError::Untold { path: PID_MAX, what: "a number" })?,
        disk_bytes: space(data_dir)?.free_bytes,
    };
    Ok(limits::of_own_cgroup(host))
}

/// How things are.
pub(super) fn measure(data_dir: &Path) -> Result<Machine, MachineError> {
    let Space { free_bytes, total_bytes } = space(data_dir)?;
    Ok(Machine {
        memory_available_bytes: meminfo(&read(MEMINFO)?, "MemAvailable")?,
        // Kernels without the file do not tell.
        memory_pressure: std::fs::read_to_string(PRESSURE).ok().and_then(|text| full_avg10(&text)),
        disk_free_bytes: free_bytes,
        disk_total_bytes: total_bytes,
    })
}

struct Space {
    free_bytes: u64,
    total_bytes: u64,
}

fn space(path: &Path) -> Result<Space, MachineError> {
    let told = statvfs(path);
    let told = told.map_err(|source| MachineError::Space { path: path.to_owned(), source })?;
    let bytes = |blocks: u64| blocks.saturating_mul(told.f_frsize);
    Ok(Space { free_bytes: bytes(told.f_bavail), total_bytes: bytes(told.f_blocks) })
}

fn read(path: &'static str) -> Result<String, MachineError> {
    std::fs::read_to_string(path).map_err(|source| MachineError::Read { path, source })
}

/// Bytes of a line such as `MemTotal:  16384 kB`.
fn meminfo(text: &str, what: &'static str) -> Result<u64, MachineError> {
    let line = text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':'));
    let kib: Option<u64> =
        line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse().ok());
    let kib = kib.ok_or(MachineError::Untold { path: MEMINFO, what })?;
    Ok(kib.saturating_mul(1024))
}

/// The percentage of `full avg10=0.12 avg60=…`.
fn full_avg10(text: &str) -> Option<f64> {
    let full = text.lines().find_map(|line| line.strip_prefix("full "))?;
    full.split(' ').find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_understood() {
        let text = "MemTotal:       16384 kB\nMemFree: 1 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(meminfo(text, "MemTotal").unwrap(), 16 << 20);
        assert_eq!(meminfo(text, "MemAvailable").unwrap(), 2 << 20);
        assert!(meminfo(text, "Mem").is_err());
        let text = "some avg10=9.00 avg60=0.10 avg300=0.00 total=3\n\
                    full avg10=1.25 avg60=0.00 avg300=0.00 total=1\n";
        assert_eq!(full_avg10(text), Some(1.25));
        assert_eq!(full_avg10("some avg10=9.00\n"), None);
    }

    #[test]
    fn this_machine_has_something_of_everything() {
        let folder = tempfile::tempdir().unwrap();
        let totals = totals(folder.path()).unwrap();
        assert!(totals.host.cpu_millis >= 1000 && totals.host.memory_bytes > 0);
        let machine = measure(folder.path()).unwrap();
        assert!(machine.memory_available_bytes <= totals.host.memory_bytes);
        assert!(machine.disk_free_bytes <= machine.disk_total_bytes);
    }
}
