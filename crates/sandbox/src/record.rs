//! The record of one attempt: who runs it, and how it ended.
//!
//! The daemon makes it, with room for the result set aside, before anything is begun: a result never
//! meets a full disk, and after a crash every attempt that may have begun has a record. The shim holds
//! a lock on it as long as it lives, so nobody takes a dead shim for a living one.

mod identity;

use std::{
    fs::{File, OpenOptions},
    io,
    os::{
        fd::OwnedFd,
        unix::fs::{FileExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FallocateFlags, FlockOperation, fallocate, fcntl_lock},
    io::Errno,
    process::{
        Flock, FlockType, Pid, PidfdFlags, Signal, fcntl_getlk, pidfd_open, pidfd_send_signal,
    },
};

use serde::de::DeserializeOwned;

pub(crate) use identity::Identity;

use crate::{Ended, Outcome, places::sync_dir, runtime::CLEANUP_MAX};

/// The areas of the file: the note of whoever ordered the attempt, the shim that runs it, whether it
/// was withdrawn, the end.
const NOTE_AT: u64 = 0;
const IDENTITY_AT: u64 = 2048;
const WITHDRAWN_AT: u64 = 3072;
const ENDED_AT: u64 = 4096;
const FILE_BYTES: u64 = 8192;
/// Before the content of an area: its length and its checksum.
const AREA_HEADER_BYTES: usize = 8;
/// Words of an error that a result keeps. Six times as much when escaped still fits its area.
const REASON_BYTES_MAX: usize = 512;
const MODE: u32 = 0o600;

/// An open record.
#[derive(Debug)]
pub(crate) struct Record {
    file: File,
    path: PathBuf,
}

/// What a record tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) note: Vec<u8>,
    /// `None`: no shim has begun.
    pub(crate) identity: Option<Identity>,
    pub(crate) ended: Option<Ended>,
}

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot make record {}", path.display())]
    Create {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot open record {}", path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot lock record {}", path.display())]
    Lock {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The daemon that ordered the attempt is gone, and another one has cleaned up after it.
    #[error("record {} was withdrawn", path.display())]
    Withdrawn { path: PathBuf },
    #[error("cannot read record {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("record {} is of another version of windlass; start that one once more", path.display())]
    Decode {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    #[error("cannot write record {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot get hold of the shim that has record {}", path.display())]
    Shim {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the shim that holds record {} is still alive although it was killed", path.display())]
    ShimStillAlive { path: PathBuf },
}

// === impl Record ===

impl Record {
    /// Makes the record of a new attempt.
    pub(crate) fn create(path: &Path, note: &[u8]) -> Result<(), Error> {
        let create = || {
            let mut options = OpenOptions::new();
            let file = options.write(true).create_new(true).mode(MODE).open(path)?;
            fallocate(&file, FallocateFlags::empty(), 0, FILE_BYTES)?;
            write_area(&file, NOTE_AT, note)
        };
        create().map_err(|source| Error::Create { path: path.to_owned(), source })
    }

    /// For looking, and for writing an end in the place of a dead shim.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|source| Error::Open { path: path.to_owned(), source })?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Makes this process the one that runs the attempt, until it is gone.
    ///
    /// The lock belongs to the process and would be lost if it closed any other descriptor of the
    /// same file: a shim opens its record once.
    pub(crate) fn take(path: &Path) -> Result<Self, Error> {
        let record = Self::open(path)?;
        let locked = fcntl_lock(&record.file, FlockOperation::NonBlockingLockExclusive);
        locked.map_err(|source| Error::Lock { path: path.to_owned(), source: source.into() })?;
        // After the lock, as the daemon looks at the lock after withdrawing: one of the two sees the
        // other, so no shim begins behind the back of a daemon that has cleaned up.
        let withdrawn = read_area(&record.file, WITHDRAWN_AT);
        if withdrawn.map_err(|source| record.on_read(source))?.is_some() {
            return Err(Error::Withdrawn { path: path.to_owned() });
        }
        let identity = Identity::own().map_err(|source| record.on_write(source))?;
        let encoded = serde_json::to_vec(&identity).expect("plain data");
        write_area(&record.file, IDENTITY_AT, &encoded)
            .map_err(|source| record.on_write(source))?;
        Ok(record)
    }

    pub(crate) fn read(&self) -> Result<Content, Error> {
        Ok(Content {
            note: self.area(NOTE_AT)?.unwrap_or_default(),
            identity: self.decode(IDENTITY_AT)?,
            ended: self.decode(ENDED_AT)?,
        })
    }

    fn area(&self, at: u64) -> Result<Option<Vec<u8>>, Error> {
        read_area(&self.file, at).map_err(|source| self.on_read(source))
    }

    /// What is whole and cannot be understood is not nothing: it may be a result.
    fn decode<T: DeserializeOwned>(&self, at: u64) -> Result<Option<T>, Error> {
        let Some(bytes) = self.area(at)? else { return Ok(None) };
        let decoded = serde_json::from_slice(&bytes);
        decoded.map(Some).map_err(|source| Error::Decode { path: self.path.clone(), source })
    }

    /// Writes how it ended; durable when this returns. A failed sync is not repeated: the caller must
    /// not report what may be lost.
    pub(crate) fn end(&self, ended: &Ended) -> Result<(), Error> {
        let encoded = serde_json::to_vec(&bounded(ended)).expect("plain data");
        let write = || {
            write_area(&self.file, ENDED_AT, &encoded)?;
            self.file.sync_data()?;
            sync_dir(self.path.parent().expect("a record lies in a directory"))
        };
        write().map_err(|source| self.on_write(source))
    }

    /// Sees to it that no shim runs the attempt, now or later: one that holds the record is killed, and
    /// gone when this returns.
    pub(crate) fn withdraw(&self) -> Result<(), Error> {
        let marked = write_area(&self.file, WITHDRAWN_AT, b"withdrawn");
        marked.map_err(|source| self.on_write(source))?;
        self.kill_shim()
    }

    /// The shim of this number, if it holds the record: a descriptor that becomes readable when it is
    /// gone.
    pub(crate) fn shim(&self, pid: Pid) -> Result<Option<OwnedFd>, Error> {
        let shim = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => return Ok(None),
            opened => opened.map_err(|errno| self.on_shim(errno))?,
        };
        // Only if it holds the lock after it was opened is this the process that was meant.
        Ok((self.holder()? == Some(pid)).then_some(shim))
    }

    fn kill_shim(&self) -> Result<(), Error> {
        let Some(pid) = self.holder()? else { return Ok(()) };
        let Some(shim) = self.shim(pid)? else { return Ok(()) };
        pidfd_send_signal(&shim, Signal::KILL).map_err(|errno| self.on_shim(errno))?;
        let patience = Timespec { tv_sec: CLEANUP_MAX.as_secs().cast_signed(), tv_nsec: 0 };
        let gone = poll(&mut [PollFd::new(&shim, PollFlags::IN)], Some(&patience));
        match gone.map_err(|errno| self.on_shim(errno))? {
            0 => Err(Error::ShimStillAlive { path: self.path.clone() }),
            _ => Ok(()),
        }
    }

    fn on_shim(&self, errno: Errno) -> Error {
        Error::Shim { path: self.path.clone(), source: errno.into() }
    }

    /// The process that runs the attempt, if there is one.
    fn holder(&self) -> Result<Option<Pid>, Error> {
        let held = fcntl_getlk(&self.file, &Flock::from(FlockType::WriteLock));
        Ok(held.map_err(|errno| self.on_shim(errno))?.and_then(|held| held.pid))
    }

    fn on_read(&self, source: io::Error) -> Error {
        Error::Read { path: self.path.clone(), source }
    }

    fn on_write(&self, source: io::Error) -> Error {
        Error::Write { path: self.path.clone(), source }
    }
}

/// Whether the attempt has ended, told without taking part in its locks.
pub(crate) fn has_ended(path: &Path) -> io::Result<bool> {
    Ok(read_area(&File::open(path)?, ENDED_AT)?.is_some())
}

/// The end with no more words than its area takes.
fn bounded(ended: &Ended) -> Ended {
    let mut ended = ended.clone();
    if let Outcome::NeverStarted { reason } = &mut ended.outcome {
        reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    }
    ended
}

fn write_area(file: &File, at: u64, content: &[u8]) -> io::Result<()> {
    let length = u32::try_from(content.len()).map_err(io::Error::other)?;
    let mut area = Vec::with_capacity(AREA_HEADER_BYTES + content.len());
    area.extend_from_slice(&length.to_le_bytes());
    area.extend_from_slice(&crc32c::crc32c(content).to_le_bytes());
    area.extend_from_slice(content);
    if at + area.len() as u64 > area_end(at) {
        return Err(io::Error::other("more than the area of a record holds"));
    }
    file.write_all_at(&area, at)
}

/// `None` if the area was never written, or only half: what it should say was then never relied on.
fn read_area(file: &File, at: u64) -> io::Result<Option<Vec<u8>>> {
    let room = usize::try_from(area_end(at) - at).expect("areas are small");
    let mut area = vec![0; room];
    let mut filled = 0;
    loop {
        match file.read_at(&mut area[filled..], at + filled as u64)? {
            0 => break,
            more => filled += more,
        }
    }
    area.truncate(filled);
    Ok(checked(&area).map(<[u8]>::to_vec))
}

fn checked(area: &[u8]) -> Option<&[u8]> {
    let (length, rest) = area.split_first_chunk()?;
    let (checksum, rest) = rest.split_first_chunk()?;
    let content = rest.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    // An area of zeros is none: the checksum of nothing is zero too, so nothing needs a length.
    let is_sound = crc32c::crc32c(content) == u32::from_le_bytes(*checksum);
    (is_sound && !content.is_empty()).then_some(content)
}

fn area_end(at: u64) -> u64 {
    match at {
        NOTE_AT => IDENTITY_AT,
        IDENTITY_AT => WITHDRAWN_AT,
        WITHDRAWN_AT => ENDED_AT,
        _ => FILE_BYTES,
    }
}

#[cfg(test)]
mod tests;
