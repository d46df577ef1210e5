//! The file operations the log relies on, and nothing above them.
//!
//! They stand behind a trait because two disks exist: the [`SystemDisk`], and the recording one of
//! the crash tests, which needs the exact order of writes, syncs and changes of names to build the
//! folders a power cut could have left.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
    sync::Arc,
};

/// Only the owner reads what is kept, in a folder that others may look into too.
pub(super) const FILE_MODE: u32 = 0o600;

/// Names files and folders. A change of names is durable only after [`sync_folder`](Self::sync_folder).
pub trait Disk: fmt::Debug + Send + Sync + 'static {
    /// A new, empty file. Fails if the name is taken.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// An existing file, for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name, replacing what had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes every earlier creation, renaming and removal inside `folder` durable.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;

    /// Bytes that files in `folder` may still take.
    fn available_bytes(&self, folder: &Path) -> io::Result<u64>;
}

/// An open file. Offsets are explicit, so that readers and the writer share it without a lock.
pub trait DiskFile: fmt::Debug + Send + Sync {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` or fails; what a failed write left behind is unknown.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes every earlier write to this file durable. After a failure nothing is known about them.
    fn sync(&self) -> io::Result<()>;

    fn size(&self) -> io::Result<u64>;
}

/// The operating system's file systems.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDisk;

// === impl SystemDisk ===

impl Disk for SystemDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(FILE_MODE).open(path)?;
        Ok(Arc::new(file))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }

    fn available_bytes(&self, folder: &Path) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(folder)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

// === impl File ===

impl DiskFile for File {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buf, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}
