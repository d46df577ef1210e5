//! What a server costs, as the kernel counts it.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::machine::{field, kibibytes};

/// The unit of `st_blocks`, whatever the filesystem's own block size is.
const BLOCK_BYTES: u64 = 512;

/// Positions in `/proc/PID/stat`, counted from the field after the command's name.
const USER_TICKS: usize = 11;
const SYSTEM_TICKS: usize = 12;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is not what the kernel writes", path.display())]
    Format { path: PathBuf },
}

/// Bytes of a folder: as the files say, and as the filesystem gave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskUse {
    pub(crate) apparent_bytes: u64,
    pub(crate) allocated_bytes: u64,
}

/// Processor time the process took so far, in user and kernel mode, all threads.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration, Error> {
    let path = PathBuf::from(format!("/proc/{pid}/stat"));
    let stat = read(&path)?;
    let ticks = parse_ticks(&stat).ok_or(Error::Format { path })?;
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_millis(ticks * 1000 / per_second))
}

/// Memory the process has resident.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64, Error> {
    let path = PathBuf::from(format!("/proc/{pid}/status"));
    let status = read(&path)?;
    field(&status, "VmRSS").and_then(kibibytes).ok_or(Error::Format { path })
}

/// Memory that is the process's own: without pages of its program, which the kernel can drop.
pub(crate) fn own_bytes(pid: u32) -> Result<u64, Error> {
    let path = PathBuf::from(format!("/proc/{pid}/status"));
    let status = read(&path)?;
    field(&status, "RssAnon").and_then(kibibytes).ok_or(Error::Format { path })
}

/// The most memory that the process ever had resident.
pub(crate) fn peak_bytes(pid: u32) -> Result<u64, Error> {
    let path = PathBuf::from(format!("/proc/{pid}/status"));
    let status = read(&path)?;
    field(&status, "VmHWM").and_then(kibibytes).ok_or(Error::Format { path })
}

/// Bytes the process had written to storage so far, cached writes included once they are flushed.
pub(crate) fn written_bytes(pid: u32) -> Result<u64, Error> {
    let path = PathBuf::from(format!("/proc/{pid}/io"));
    let io = read(&path)?;
    field(&io, "write_bytes").and_then(|bytes| bytes.parse().ok()).ok_or(Error::Format { path })
}

pub(crate) fn disk_use(folder: &Path) -> Result<DiskUse, Error> {
    let failed = |source| Error::Read { path: folder.to_owned(), source };
    let mut total = DiskUse::default();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let metadata = match entry.metadata() {
            // A running server may remove a file while its folder is read.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(failed)?,
        };
        total = total + if metadata.is_dir() { disk_use(&entry.path())? } else { metadata.into() };
    }
    Ok(total)
}

// === impl DiskUse ===

impl From<fs::Metadata> for DiskUse {
    fn from(file: fs::Metadata) -> Self {
        Self { apparent_bytes: file.len(), allocated_bytes: file.blocks() * BLOCK_BYTES }
    }
}

impl std::ops::Add for DiskUse {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            apparent_bytes: self.apparent_bytes + other.apparent_bytes,
            allocated_bytes: self.allocated_bytes + other.allocated_bytes,
        }
    }
}

fn read(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// The command's name may hold spaces and brackets, so the fields are counted from its last one.
fn parse_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(USER_TICKS);
    let user = fields.next()?.parse::<u64>().ok()?;
    let system = fields.nth(SYSTEM_TICKS - USER_TICKS - 1)?.parse::<u64>().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_found_behind_any_name() {
        let stat = "12 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 70 30 0 0 20 0 1 0 99";
        assert_eq!(parse_ticks(stat), Some(100));
    }

    #[test]
    fn this_process_has_memory_and_took_time() {
        let pid = std::process::id();
        let resident = resident_bytes(pid).unwrap();
        assert!(own_bytes(pid).unwrap() < resident, "a program has pages too");
        assert!(resident > 0 && peak_bytes(pid).unwrap() >= resident);
        cpu_time(pid).unwrap();
    }

    #[test]
    fn a_hole_is_apparent_but_not_allocated() {
        let folder = tempfile::tempdir().unwrap();
        let nested = folder.path().join("nested");
        fs::create_dir(&nested).unwrap();
        fs::File::create(nested.join("hole")).unwrap().set_len(1 << 20).unwrap();
        let found = disk_use(folder.path()).unwrap();
        assert_eq!(found.apparent_bytes, 1 << 20);
        assert!(found.allocated_bytes < 1 << 20);
    }
}
