//! How a host fails.

use std::{io, path::PathBuf};

use crate::{record, runtime, shim::program};

/// Which step failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot make the data directory {}", path.display())]
    Create {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot lock {}", path.display())]
    Lock {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is in use by another process", path.display())]
    InUse { path: PathBuf },
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot remove {}", path.display())]
    Remove {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} holds no host id", path.display())]
    HostId {
        path: PathBuf,
        #[source]
        source: uuid::Error,
    },
    #[error("cannot share the deadline with shims")]
    Deadline(#[source] io::Error),
    #[error("cannot ready this machine")]
    Settle(#[source] runtime::Cause),
    #[error("cannot load the program of the shims")]
    Program(#[source] program::Error),
    #[error("cannot use the record of an attempt")]
    Record(#[source] record::Error),
    #[error("cannot get rid of what an earlier daemon left")]
    Leftovers(#[source] runtime::Error),
    #[error("work on the disk was aborted")]
    Aborted(#[source] tokio::task::JoinError),
}
