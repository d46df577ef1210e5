//! Where things lie in the data directory.
//!
//! ```text
//! lock                     held by the daemon
//! host-id                  made once
//! remembered               a few bytes of the daemon's
//! records/UUID-NUMBER      one attempt: who runs it, how it ended; gone when forgotten
//! tasks/UUID/NUMBER/log.N  what it wrote; gone when swept
//! stage                    empty: where each shim, in a namespace of its own, mounts what it needs
//! ```

use std::{
    fs::{self, DirBuilder, File, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
};

use uuid::Uuid;

use crate::AttemptId;

/// Of the data directory: what commands write is for nobody but who asks the daemon for it.
const MODE: u32 = 0o700;

/// The paths below one data directory.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    root: PathBuf,
}

// === impl Places ===

impl Places {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Makes the directories that are not an attempt's own.
    pub(crate) fn create(&self) -> io::Result<()> {
        fs::create_dir_all(self.records())?;
        fs::create_dir_all(self.tasks())?;
        sync_dir(&self.root)
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    pub(crate) fn host_id(&self) -> PathBuf {
        self.root.join("host-id")
    }

    pub(crate) fn remembered(&self) -> PathBuf {
        self.root.join("remembered")
    }

    pub(crate) fn records(&self) -> PathBuf {
        self.root.join("records")
    }

    pub(crate) fn record(&self, id: AttemptId) -> PathBuf {
        self.records().join(id.to_string())
    }

    pub(crate) fn stage(&self) -> PathBuf {
        self.root.join("stage")
    }

    pub(crate) fn tasks(&self) -> PathBuf {
        self.root.join("tasks")
    }

    pub(crate) fn task(&self, task: Uuid) -> PathBuf {
        self.tasks().join(task.to_string())
    }

    pub(crate) fn attempt(&self, id: AttemptId) -> PathBuf {
        self.task(id.task).join(id.number.to_string())
    }

    /// Makes room for an attempt that has no record yet. What lies there is of a forgotten one, whose task
    /// was deleted before another came under the same id: once there is a record it would pass for this
    /// one's.
    pub(crate) fn clear_attempt(&self, id: AttemptId) -> io::Result<()> {
        if self.record(id).try_exists()? {
            return Ok(());
        }
        unless_missing(fs::remove_dir_all(self.attempt(id))).map(drop)
    }

    /// The directory of an attempt that begins.
    pub(crate) fn begin_attempt(&self, id: AttemptId) -> io::Result<PathBuf> {
        let dir = self.attempt(id);
        fs::create_dir_all(&dir)?;
        Ok(dir)
    }

    /// The attempts that have a record. What is not the name of one is not ours.
    pub(crate) fn recorded(&self) -> io::Result<Vec<AttemptId>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.records())? {
            let name = entry?.file_name();
            found.extend(name.to_str().and_then(|name| name.parse::<AttemptId>().ok()));
        }
        Ok(found)
    }
}

/// Makes a data directory, with what lies above it, that nobody else can enter; nor, from now on, one that
/// is there.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(MODE).create(path)?;
    let mode = fs::metadata(path)?.permissions().mode();
    let is_open = mode & 0o077 != 0;
    if is_open { fs::set_permissions(path, Permissions::from_mode(MODE)) } else { Ok(()) }
}

/// Replaces the file by one with these bytes, all or nothing, and durably.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("draft");
    let file = File::create(&draft)?;
    io::Write::write_all(&mut &file, bytes)?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    sync_dir(path.parent().unwrap_or(Path::new("/")))
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// What is not there is no error.
pub(crate) fn unless_missing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
