//! The data folder: its format, its lock, and the names of the files in it.
//!
//! ```text
//! DIR/FORMAT                the format's number and the journal's identity, as text
//! DIR/LOCK                  locked while a process has the journal open
//! DIR/log/FIRST-ID.seg      a segment: number of its first frame, and its id
//! DIR/log/FIRST-ID.idx      the index of a sealed segment; derived, may be absent
//! DIR/log/ID.spare          room for a later segment
//! DIR/log/ID.new            a file being prepared; of no account after a crash
//! ```

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use uuid::Uuid;

use super::disk::{Disk, FILE_MODE};
use crate::{Error, error::At};

/// The format this program writes, and the newest it reads.
pub(super) const FORMAT: u32 = 1;

/// Nobody else looks into a folder that is made here: what clients keep may be secret.
const FOLDER_MODE: u32 = 0o700;

/// An open, locked data folder.
#[derive(Debug)]
pub(super) struct Folder {
    root: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) identity: Uuid,
    /// Held for its lock.
    _lock: File,
}

/// Whether a folder held a journal when it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Journal,
    /// Empty, or left half made by a crash; the first segment is still to be written, and then
    /// [`Folder::finish_creation`] to be called.
    Nothing,
}

/// What the `FORMAT` file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) number: u32,
    pub(super) identity: Uuid,
}

/// The files of the log, by what their names say they are.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) segments: Vec<PathBuf>,
    pub(super) sidecars: Vec<PathBuf>,
    pub(super) spares: Vec<PathBuf>,
    pub(super) unfinished: Vec<PathBuf>,
}

// === impl Folder ===

impl Folder {
    /// Opens `root`, creating it if need be. A new journal gets `identity`; one that exists keeps
    /// its own.
    pub(super) fn open(
        root: &Path,
        disk: Arc<dyn Disk>,
        identity: Uuid,
    ) -> Result<(Self, Found), Error> {
        let log = log_of(root);
        make(root, &log).at("cannot create", &log)?;
        let lock = lock(root)?;
        let format = read_format(root)?;
        let identity = format.map_or(identity, |format| format.identity);
        let folder = Self { root: root.to_owned(), disk, identity, _lock: lock };
        if format.is_some() {
            return Ok((folder, Found::Journal));
        }
        folder.begin_creation()?;
        Ok((folder, Found::Nothing))
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn log(&self) -> PathBuf {
        log_of(&self.root)
    }

    pub(super) fn files(&self) -> Result<Files, Error> {
        list(&self.log())
    }

    pub(super) fn unfinished_path(&self, id: u64) -> PathBuf {
        self.log().join(format!("{id:08x}.new"))
    }

    pub(super) fn spare_path(&self, id: u64) -> PathBuf {
        self.log().join(format!("{id:08x}.spare"))
    }

    pub(super) fn available_bytes(&self) -> Result<u64, Error> {
        let available = self.disk.available_bytes(&self.root);
        available.at("cannot ask for the free space of", &self.root)
    }

    pub(super) fn sync_log(&self) -> Result<(), Error> {
        self.disk.sync_folder(&self.log()).at("cannot sync", &self.log())
    }

    pub(super) fn rename(&self, from: &Path, to: &Path) -> Result<(), Error> {
        self.disk.rename(from, to).at("cannot rename", from)
    }

    pub(super) fn remove(&self, path: &Path) -> Result<(), Error> {
        self.disk.remove(path).at("cannot remove", path)
    }

    /// Removes what a failed job wrote: with the disk full, every attempt would take more of it. The
    /// failure itself is reported by the job; a file that stays is removed by the next start.
    pub(super) fn discard(&self, unfinished: &Path) {
        match self.disk.remove(unfinished) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(path = %unfinished.display(), %error, "unfinished file stays");
            }
        }
    }

    /// Says durably that a journal is being made here. Until [`finish_creation`](Self::finish_creation)
    /// a crash leaves a folder that the next open starts over.
    fn begin_creation(&self) -> Result<(), Error> {
        let pending = pending_format_of(&self.root);
        let files = self.files()?;
        if pending.exists() {
            for path in files.segments.iter().chain(&files.unfinished) {
                self.remove(path)?;
            }
            self.remove(&pending)?;
        } else if let Some(segment) = files.segments.first() {
            return Err(format_lost(&self.root, segment));
        }
        let text = format!("format {FORMAT}\nidentity {}\nprogram windlass\n", self.identity);
        let file = self.disk.create(&pending).at("cannot create", &pending)?;
        file.write_at(text.as_bytes(), 0).at("cannot write", &pending)?;
        file.sync().at("cannot sync", &pending)?;
        self.disk.sync_folder(&self.root).at("cannot sync", &self.root)
    }

    /// Makes the new journal count, once its first segment is durable.
    pub(super) fn finish_creation(&self) -> Result<(), Error> {
        self.rename(&pending_format_of(&self.root), &format_of(&self.root))?;
        self.disk.sync_folder(&self.root).at("cannot sync", &self.root)
    }
}

pub(super) fn log_of(root: &Path) -> PathBuf {
    root.join("log")
}

fn format_of(root: &Path) -> PathBuf {
    root.join("FORMAT")
}

fn pending_format_of(root: &Path) -> PathBuf {
    root.join("FORMAT.new")
}

fn lock_of(root: &Path) -> PathBuf {
    root.join("LOCK")
}

/// What is wrong with a folder that has no format: it lost the file, or never was a journal's.
pub(super) fn without_format(root: &Path) -> Error {
    match list(&log_of(root)).map(|files| files.segments.into_iter().next()) {
        Ok(Some(segment)) => format_lost(root, &segment),
        Ok(None) | Err(_) => Error::NoJournal { path: root.to_owned() },
    }
}

fn format_lost(root: &Path, segment: &Path) -> Error {
    let what = format!("the file is missing, but {} is there", segment.display());
    Error::Corrupt { path: format_of(root), offset: 0, what }
}

/// The index that belongs to a segment.
pub(super) fn sidecar_of(segment: &Path) -> PathBuf {
    segment.with_extension("idx")
}

/// What lies above `root` may be others' too, and is made as the system makes it.
fn make(root: &Path, log: &Path) -> io::Result<()> {
    root.parent().map_or(Ok(()), fs::create_dir_all)?;
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(log)
}

fn lock(root: &Path) -> Result<File, Error> {
    let path = lock_of(root);
    let mut options = File::options();
    let file = options.write(true).create(true).truncate(false).mode(FILE_MODE).open(&path);
    try_lock(root, file.at("cannot open", &path)?)
}

/// Locks a folder that must not be changed. A copy of one may lack the file; nobody uses it then.
pub(super) fn lock_existing(root: &Path) -> Result<Option<File>, Error> {
    let path = lock_of(root);
    match File::open(&path) {
        Ok(file) => try_lock(root, file).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).at("cannot open", &path),
    }
}

fn try_lock(root: &Path, file: File) -> Result<File, Error> {
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::Locked { path: root.to_owned() }),
        Err(TryLockError::Error(source)) => Err(source).at("cannot lock", &lock_of(root)),
    }
}

/// `None` if there is no such file.
pub(super) fn read_format(root: &Path) -> Result<Option<Format>, Error> {
    let path = format_of(root);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).at("cannot read", &path),
    };
    let number = field(&text, "format").and_then(|number| number.parse().ok());
    if let Some(found) = number.filter(|number| *number > FORMAT) {
        return Err(Error::NewerFormat { path: root.to_owned(), found, supported: FORMAT });
    }
    let identity = field(&text, "identity").and_then(|identity| identity.parse().ok());
    match number.zip(identity) {
        Some((number, identity)) => Ok(Some(Format { number, identity })),
        None => {
            let what = "it does not name a format and an identity".to_owned();
            Err(Error::Corrupt { path, offset: 0, what })
        }
    }
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
}

/// The files in the log's folder, each kind in order of its names.
pub(super) fn list(log: &Path) -> Result<Files, Error> {
    let mut files = Files::default();
    for entry in fs::read_dir(log).at("cannot list", log)? {
        let path = entry.at("cannot list", log)?.path();
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("seg") => files.segments.push(path),
            Some("idx") => files.sidecars.push(path),
            Some("spare") => files.spares.push(path),
            Some("new") => files.unfinished.push(path),
            _ => {}
        }
    }
    files.segments.sort();
    files.sidecars.sort();
    files.spares.sort();
    files.unfinished.sort();
    Ok(files)
}
