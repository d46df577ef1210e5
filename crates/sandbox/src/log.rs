//! What a command wrote: files that a shim appends to and anybody may read at the same time.
//!
//! A log is a sequence of entries: data of a stream, gaps, one end. Its *offset* counts the bytes the
//! command wrote to both streams, lost ones included, so it survives rotation and a reader that broke
//! off resumes exactly. The command never waits for a reader: the oldest files are dropped, and what
//! the disk does not take becomes a gap.

mod files;
mod follow;
mod format;
mod reader;
mod tail;
#[cfg(test)]
mod tests;
mod writer;

use std::{io, path::PathBuf, time::Duration};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use follow::Follower;
pub use format::RECORD_BYTES_MAX;
pub use reader::Reader;
pub(crate) use writer::{Sizes, Writer};

use crate::{AttemptId, places::Places};

/// Files of one log. The oldest is dropped when another one is needed.
pub const FILES_MAX: usize = 10;
/// Of one file, its header included.
pub const FILE_BYTES_MAX: u64 = 10_000_000;

/// Which of the command's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// The outputs a reader wants. Gaps and the end concern everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    pub stdout: bool,
    pub stderr: bool,
}

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At this byte; 0 is the first one ever written.
    Offset(u64),
    /// So that this many lines of the wanted streams come, of those that are there now. At most
    /// [`TAIL_LINES_MAX`].
    Lines(u32),
}

/// More lines than anybody reads; their places are held in memory while they are counted.
pub const TAIL_LINES_MAX: u32 = 100_000;

/// One thing read from a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub offset: u64,
    /// Since the epoch, as the machine believed.
    pub time: Duration,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Data {
        stream: Stream,
        bytes: Bytes,
    },
    /// This many bytes are lost: dropped with the oldest files, refused by the disk, or damaged.
    Gap {
        bytes: u64,
    },
    /// Nothing follows, ever.
    End,
}

/// How much a command wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    pub bytes: u64,
    /// Refused by the disk, hence in a gap.
    pub dropped_bytes: u64,
}

/// The log of one attempt, whether it has begun, runs or has ended.
#[derive(Clone, Debug)]
pub struct Log {
    dir: PathBuf,
    /// Tells whether somebody still writes.
    record: PathBuf,
}

/// Which step of reading or repairing failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot list the log files in {}", path.display())]
    List {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot open log file {}", path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot read log file {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot cut the torn end of log file {}", path.display())]
    Cut {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot make log file {}", path.display())]
    Create {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("reading the log was aborted")]
    Aborted(#[source] tokio::task::JoinError),
}

// === impl Streams ===

impl Streams {
    pub const ALL: Self = Self { stdout: true, stderr: true };

    fn has(self, stream: Stream) -> bool {
        match stream {
            Stream::Stdout => self.stdout,
            Stream::Stderr => self.stderr,
        }
    }
}

// === impl Entry ===

impl Entry {
    /// Where a reader that has seen this entry goes on.
    #[must_use]
    pub fn next_offset(&self) -> u64 {
        self.offset
            + match &self.content {
                Content::Data { bytes, .. } => bytes.len() as u64,
                Content::Gap { bytes } => *bytes,
                Content::End => 0,
            }
    }
}

// === impl Log ===

impl Log {
    pub(crate) fn new(places: &Places, id: AttemptId) -> Self {
        Self { dir: places.attempt(id), record: places.record(id) }
    }

    /// Whether anything of it is there.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read.
    pub fn exists(&self) -> Result<bool, Error> {
        Ok(!files::list(&self.dir)?.is_empty())
    }

    /// Reads what is there; blocks on the disk.
    ///
    /// # Errors
    ///
    /// If a file cannot be read.
    pub fn read(&self, start: Start, streams: Streams) -> Result<Reader, Error> {
        let offset = match start {
            Start::Offset(offset) => offset,
            Start::Lines(lines) => tail::offset(&self.dir, lines, streams)?,
        };
        Ok(Reader::new(&self.dir, offset, streams))
    }

    /// Whether the attempt has begun and is not forgotten.
    ///
    /// # Errors
    ///
    /// If that cannot be seen.
    pub fn is_current(&self) -> Result<bool, Error> {
        let read = |source| Error::Read { path: self.record.clone(), source };
        self.record.try_exists().map_err(read)
    }

    /// Reads what is there and what comes, until the end. May begin before the attempt does.
    #[must_use]
    pub fn follow(&self, start: Start, streams: Streams) -> Follower {
        Follower::new(self.clone(), start, streams)
    }

    /// As [`follow`](Self::follow), of an attempt that goes on or is about to begin: what an attempt of an
    /// earlier task with the same id has left is none of its log.
    #[must_use]
    pub fn follow_current(&self, start: Start, streams: Streams) -> Follower {
        Follower::current(self.clone(), start, streams)
    }
}
