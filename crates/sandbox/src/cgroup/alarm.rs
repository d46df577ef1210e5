//! Hearing that a v1 group is out of memory.
//!
//! There the kernel kills one process of the group, whichever it picks, and the others go on without
//! it; on v2 `memory.oom.group` has it kill them all. Whoever wants the same on v1 must hear of it.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::Path,
};

use rustix::{
    event::{EventfdFlags, eventfd},
    io::Errno,
};

use super::{Error, file::write};

/// The file whose news are asked for.
const SOURCE: &str = "memory.oom_control";

/// Rings once the group has been out of memory.
#[derive(Debug)]
pub struct OomAlarm(OwnedFd);

// === impl OomAlarm ===

impl OomAlarm {
    /// For the v1 group whose directory in the hierarchy of memory this is.
    pub(super) fn set(memory: &Path) -> Result<Self, Error> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| Error::Alarm(errno.into()))?;
        let path = memory.join(SOURCE);
        // The kernel keeps what it needs of it: it may be closed once the event is registered.
        let source = File::open(&path).map_err(|source| Error::Read { path, source })?;
        let registration = format!("{} {}", event.as_raw_fd(), source.as_raw_fd());
        write(memory, "cgroup.event_control", &registration)?;
        Ok(Self(event))
    }

    /// Whether it has rung since it was last asked.
    pub fn has_rung(&self) -> Result<bool, Error> {
        let mut count = [0; size_of::<u64>()];
        match rustix::io::read(&self.0, &mut count) {
            Ok(_) => Ok(true),
            Err(Errno::AGAIN) => Ok(false),
            Err(errno) => Err(Error::Alarm(io::Error::from(errno))),
        }
    }
}

impl AsFd for OomAlarm {
    /// Readable when it has rung.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
