//! The private place in which a root is put together.
//!
//! A small tmpfs, mounted over an empty directory inside the shim's own mount namespace: nobody else
//! ever sees it, and it is gone with the shim, so all shims of a site use the same place. Scratch files lie apart, on a
//! file system of their own size, so that building the root never takes from what the command may use.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};

use rustix::mount::{UnmountFlags, unmount};

use super::{
    mount::{self, Detached, NO_PRIVILEGES, Tree},
    scratch,
};
use crate::{AttemptId, Limits, Medium, places::Places};

/// For the skeleton, links, the container's description and its state: some dozens of small files.
const STAGE_SIZE: &str = "1m";

const SCRATCH: &str = "scratch";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot make {path}")]
    Make { path: PathBuf, source: io::Error },
    #[error("cannot read the owner of {path}")]
    Owner { path: PathBuf, source: io::Error },
    #[error("cannot give {path} its owner and mode")]
    Own { path: PathBuf, source: io::Error },
    #[error("cannot mount")]
    Mount(#[from] mount::Error),
    #[error("cannot unmount {path}")]
    Unmount { path: PathBuf, source: io::Error },
    #[error("cannot remove {path}")]
    Remove { path: PathBuf, source: io::Error },
}

/// The paths of one attempt's stage.
pub(super) struct Stage {
    dir: PathBuf,
    /// The attempt's own directory, for what it writes to a disk.
    attempt: PathBuf,
}

/// Who owns a directory and what may be done with it.
#[derive(Clone, Copy)]
pub(super) struct Ownership {
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) mode: u32,
}

// === impl Stage ===

impl Stage {
    pub(super) fn of(places: &Places, id: AttemptId) -> Self {
        Self { dir: places.stage(), attempt: places.attempt(id) }
    }

    pub(super) fn build(&self) -> Result<(), Error> {
        make_dirs(&self.dir)?;
        let settings = [("size", Some(STAGE_SIZE)), ("mode", Some("0700"))];
        let tmpfs = Detached::new("tmpfs", &settings, NO_PRIVILEGES)?;
        tmpfs.attach_to(Tree::open(&self.dir)?, &self.dir)?;
        for dir in [self.lower(), self.merged(), self.bundle(), self.state(), self.cgroups()] {
            make_dir(&dir, 0o755)?;
        }
        make_dir(&self.blank_dir(), 0o555)?;
        write(&self.blank_file(), b"", 0o444)
    }

    /// Makes room for what the command writes, with a root directory of the given ownership.
    pub(super) fn build_scratch(&self, limits: &Limits, root: Ownership) -> Result<(), Error> {
        let dir = self.scratch(limits.scratch_medium);
        make_dirs(&dir)?;
        if limits.scratch_medium == Medium::Memory {
            let size = limits.scratch_bytes.to_string();
            let settings = [("size", Some(size.as_str())), ("mode", Some("0700"))];
            let tmpfs = Detached::new("tmpfs", &settings, NO_PRIVILEGES)?;
            tmpfs.attach_to(Tree::open(&dir)?, &dir)?;
        }
        make_dir(&dir.join("work"), 0o700)?;
        let upper = dir.join("upper");
        make_dir(&upper, 0o755)?;
        root.give_to(&upper)
    }

    /// Puts the root together: what was written over what is only read.
    pub(super) fn mount_root(&self, lower: &Path, medium: Medium) -> Result<Tree, Error> {
        let scratch = self.scratch(medium);
        // By descriptor: a colon in a path would otherwise read as two directories.
        let lower = Tree::open(lower)?;
        let upper = Tree::open(&scratch.join("upper"))?;
        let work = Tree::open(&scratch.join("work"))?;
        let paths = [lower.fd_path(), upper.fd_path(), work.fd_path()];
        let settings = [
            ("lowerdir", Some(paths[0].as_str())),
            ("upperdir", Some(paths[1].as_str())),
            ("workdir", Some(paths[2].as_str())),
            // Nothing of it outlives the attempt, so nothing of it is ever synced, least of all the
            // whole disk at its end.
            ("volatile", None),
        ];
        let overlay = Detached::new("overlay", &settings, NO_PRIVILEGES)?;
        overlay.attach_to(Tree::open(&self.merged())?, &self.merged())?;
        Ok(Tree::open(&self.merged())?)
    }

    /// Whether the root has a directory there, links in it followed as the command would.
    pub(super) fn has_dir(&self, path: &Path) -> bool {
        Tree::open(&self.merged()).is_ok_and(|root| root.has_dir(path))
    }

    /// Unmounts, in the shim; elsewhere nothing is mounted. Removes what was written to a disk.
    pub(super) fn remove(&self) -> Result<(), Error> {
        if self.lower().exists() {
            unmount(&self.dir, UnmountFlags::DETACH)
                .map_err(|errno| Error::Unmount { path: self.dir.clone(), source: errno.into() })?;
        }
        let scratch = self.scratch(Medium::Disk);
        scratch::remove(&scratch).map_err(|source| Error::Remove { path: scratch, source })
    }

    /// A skeleton of empty directories, for a root that brings none.
    pub(super) fn lower(&self) -> PathBuf {
        self.dir.join("lower")
    }

    pub(super) fn merged(&self) -> PathBuf {
        self.dir.join("merged")
    }

    /// The container's description.
    pub(super) fn bundle(&self) -> PathBuf {
        self.dir.join("bundle")
    }

    /// The container runtime's notes.
    pub(super) fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    /// What the command sees as `/sys/fs/cgroup` where there are several hierarchies.
    pub(super) fn cgroups(&self) -> PathBuf {
        self.dir.join("cgroups")
    }

    /// Bound over a file that must not be read.
    pub(super) fn blank_file(&self) -> PathBuf {
        self.dir.join("blank-file")
    }

    /// Bound over a directory that must not be read.
    pub(super) fn blank_dir(&self) -> PathBuf {
        self.dir.join("blank-dir")
    }

    /// What the command has written to a disk.
    pub(super) fn scratch_on_disk(&self) -> PathBuf {
        self.scratch(Medium::Disk).join("upper")
    }

    fn scratch(&self, medium: Medium) -> PathBuf {
        match medium {
            Medium::Memory => self.dir.join(SCRATCH),
            Medium::Disk => self.attempt.join(SCRATCH),
        }
    }
}

// === impl Ownership ===

impl Ownership {
    pub(super) fn of(dir: &Path) -> Result<Self, Error> {
        let owner = |source| Error::Owner { path: dir.to_owned(), source };
        let metadata = fs::metadata(dir).map_err(owner)?;
        let mode = metadata.permissions().mode() & 0o7777;
        Ok(Self { uid: metadata.uid(), gid: metadata.gid(), mode })
    }

    pub(super) fn give_to(self, path: &Path) -> Result<(), Error> {
        let own = |source| Error::Own { path: path.to_owned(), source };
        chown(path, Some(self.uid), Some(self.gid)).map_err(own)?;
        fs::set_permissions(path, fs::Permissions::from_mode(self.mode)).map_err(own)
    }
}

pub(super) fn make_dir(path: &Path, mode: u32) -> Result<(), Error> {
    DirBuilder::new()
        .mode(mode)
        .create(path)
        .map_err(|source| Error::Make { path: path.to_owned(), source })
}

/// Makes what only the shim may enter, with what lies above it, unless it is there.
fn make_dirs(path: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| Error::Make { path: path.to_owned(), source })
}

/// Writes a whole small file.
pub(super) fn write(path: &Path, content: &[u8], mode: u32) -> Result<(), Error> {
    let make = |source| Error::Make { path: path.to_owned(), source };
    fs::write(path, content).map_err(make)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(make)
}
