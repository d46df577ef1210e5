//! Mounts, made apart from the tree and attached when they are as they must be.
//!
//! A mount is never visible with more rights than it keeps: attributes are set before it is attached.
//! Where it is attached is a descriptor, looked up inside the root without following links, so that
//! no link in a foreign root leads out of it.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2},
    io::Errno,
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
        fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree,
    },
};

/// What a mount lets nobody do.
pub(super) const NO_PRIVILEGES: MountAttrFlags =
    MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
pub(super) const READ_ONLY: MountAttrFlags = NO_PRIVILEGES.union(MountAttrFlags::MOUNT_ATTR_RDONLY);
pub(super) const NO_EXEC: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOEXEC;

/// Directories are made with this mode where a root has none to mount on.
const PLACE_MODE: u32 = 0o755;

/// Which step failed, and on what.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot make a {kind} file system with option {option:?}")]
    Option { kind: String, option: String, source: io::Error },
    #[error("cannot make a {kind} file system")]
    Make { kind: String, source: io::Error },
    #[error("cannot bind {path}")]
    Bind { path: PathBuf, source: io::Error },
    #[error("cannot restrict a mount")]
    Restrict { source: io::Error },
    #[error("cannot attach a mount at {path}")]
    Attach { path: PathBuf, source: io::Error },
    #[error("the root has no place for a mount at {path}")]
    Place { path: PathBuf, source: io::Error },
    #[error("cannot open {path}")]
    Open { path: PathBuf, source: io::Error },
}

/// A mount that is attached nowhere yet.
pub(super) struct Detached(OwnedFd);

/// A directory that becomes, or contains, a root. Paths inside it are resolved without links.
pub(super) struct Tree(OwnedFd);

/// One option of a file system: a word, or a word with a value.
pub(super) type Setting<'a> = (&'a str, Option<&'a str>);

// === impl Detached ===

impl Detached {
    /// A fresh file system.
    pub(super) fn new(
        kind: &str,
        settings: &[Setting<'_>],
        attributes: MountAttrFlags,
    ) -> Result<Self, Error> {
        let make = |errno: Errno| Error::Make { kind: kind.to_owned(), source: errno.into() };
        let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC).map_err(make)?;
        for (key, value) in settings {
            let set = match value {
                Some(value) => fsconfig_set_string(&context, *key, *value),
                None => fsconfig_set_flag(&context, *key),
            };
            set.map_err(|errno| Error::Option {
                kind: kind.to_owned(),
                option: (*key).to_owned(),
                source: errno.into(),
            })?;
        }
        fsconfig_create(&context).map_err(make)?;
        let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(make)?;
        Ok(Self(mount))
    }

    /// What lies at `source`, without what is mounted below it.
    pub(super) fn bind(source: &Path, attributes: MountAttrFlags) -> Result<Self, Error> {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
        let mount = open_tree(CWD, source, flags)
            .map_err(|errno| Error::Bind { path: source.to_owned(), source: errno.into() })?;
        set_attributes(mount.as_fd(), attributes)?;
        Ok(Self(mount))
    }

    /// Attaches it at `path` of `tree`, which must be there.
    pub(super) fn attach(self, tree: &Tree, path: &Path) -> Result<(), Error> {
        let place = tree
            .existing(path)?
            .ok_or_else(|| Error::Place { path: path.to_owned(), source: Errno::NOENT.into() })?;
        self.attach_to(place, path)
    }

    /// Attaches it at the place `to`; `path` is what errors call it.
    pub(super) fn attach_to(self, to: impl AsFd, path: &Path) -> Result<(), Error> {
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        move_mount(&self.0, c"", to, c"", flags)
            .map_err(|errno| Error::Attach { path: path.to_owned(), source: errno.into() })
    }
}

// === impl Tree ===

impl Tree {
    /// The directory at `path`, with whatever is mounted there by now.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .map(Self)
            .map_err(|errno| Error::Open { path: path.to_owned(), source: errno.into() })
    }

    /// A path that leads here, whatever the directory is called, as long as this is open.
    pub(super) fn fd_path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }

    /// What lies at `path`, or `None`. A link on the way, or at its end, is an error.
    pub(super) fn existing(&self, path: &Path) -> Result<Option<OwnedFd>, Error> {
        let relative = path.strip_prefix("/").unwrap_or(path);
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(&self.0, relative, flags, Mode::empty(), resolve) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(Error::Place { path: path.to_owned(), source: errno.into() }),
        }
    }

    /// Whether `path` leads to a directory, by links that lead nowhere outside.
    pub(super) fn has_dir(&self, path: &Path) -> bool {
        let relative = path.strip_prefix("/").ok().filter(|path| !path.as_os_str().is_empty());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let relative = relative.unwrap_or(Path::new("."));
        openat2(&self.0, relative, flags, Mode::empty(), ResolveFlags::IN_ROOT).is_ok()
    }

    /// The directory at `path`, one name deep, made if the root lacks it.
    pub(super) fn ensure_dir(&self, path: &Path) -> Result<(), Error> {
        let relative = path.strip_prefix("/").unwrap_or(path);
        match mkdirat(&self.0, relative, Mode::from_raw_mode(PLACE_MODE)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(Error::Place { path: path.to_owned(), source: errno.into() }),
        }
    }
}

impl AsFd for Tree {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Restricts a mount that is attached nowhere.
fn set_attributes(mount: BorrowedFd<'_>, attributes: MountAttrFlags) -> Result<(), Error> {
    let attr = libc::mount_attr {
        attr_set: attributes.bits().into(),
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: the path is a literal, `attr` lives through the call and its size is the one given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            &raw const attr,
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(Error::Restrict { source: io::Error::last_os_error() }) }
}
