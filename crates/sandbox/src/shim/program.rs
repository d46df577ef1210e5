//! The program that shims are made of: a copy of our binary in memory that nobody can change.
//!
//! A command might reach the file of its shim through `/proc`; what it finds there is sealed.

use std::{
    fs::File,
    io::{self, Read, Seek},
    os::fd::{AsRawFd, OwnedFd},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create},
    io::Errno,
};

use super::ARGUMENT;

mod elf;

/// What the program is called where its arguments are shown.
const NAME: &str = "windlass";

/// Where the headers of every program are that a linker makes.
const HEAD_BYTES: u64 = 4096;

/// The copy.
#[derive(Debug)]
pub(crate) struct Program {
    memory: OwnedFd,
}

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot open {}", path.display())]
    Open {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("cannot copy {} into memory", path.display())]
    Copy {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

// === impl Program ===

impl Program {
    pub(crate) fn load(path: &Path) -> Result<Self, Error> {
        let source = File::open(path);
        let mut source = source.map_err(|source| Error::Open { path: path.to_owned(), source })?;
        let mut copy = || {
            let mut file = File::from(create_memory()?);
            io::copy(&mut loaded(&mut source)?, &mut file)?;
            let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
            fcntl_add_seals(&file, seals)?;
            Ok(Self { memory: file.into() })
        };
        copy().map_err(|source| Error::Copy { path: path.to_owned(), source })
    }

    /// Its command `shim`, with an empty environment.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(format!("/proc/self/fd/{}", self.memory.as_raw_fd()));
        command.arg0(NAME).arg(ARGUMENT).env_clear();
        command
    }
}

/// The part of a program that is loaded when it is executed, which stands first. What follows is for
/// debuggers, several times as large, and would be kept in memory for nothing.
fn loaded(source: &mut File) -> io::Result<io::Take<&mut File>> {
    let mut head = Vec::new();
    source.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
    source.rewind()?;
    let bytes = elf::loaded_bytes(&head).unwrap_or(u64::MAX);
    Ok(source.take(bytes))
}

/// Memory that may be executed. Kernels before 6.3 know no other, and not the flag either.
fn create_memory() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    match memfd_create(NAME, flags | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => Ok(memfd_create(NAME, flags)?),
        created => Ok(created?),
    }
}
