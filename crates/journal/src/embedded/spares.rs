//! Files that wait to become log segments: zeroed ones, and those of segments that were rewritten.
//!
//! Overwriting blocks that exist makes a sync about twice as fast as growing a file. What an old
//! file still holds is harmless: its frames are tied to the id it had then.

use std::{path::PathBuf, sync::Arc};

use parking_lot::Mutex;

use super::{disk::DiskFile, folder::Folder, segment::Segment};
use crate::{Error, error::At};

/// One to rotate into, and one more so that a rewrite's file need not be thrown away.
const SPARES_MAX: usize = 2;
/// One step of zeroing; small enough not to hold up the syncs of the writer.
const ZERO_STEP_BYTES: u64 = 4 << 20;

#[derive(Debug)]
pub(super) struct Spares {
    segment_bytes: u64,
    ready: Mutex<Vec<Spare>>,
}

/// A file of the size of a segment, every block of it written.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn DiskFile>,
}

/// A spare that is being zeroed.
#[derive(Debug)]
pub(super) struct Zeroing {
    spare: Spare,
    id: u64,
    zeroed_bytes: u64,
}

// === impl Spares ===

impl Spares {
    /// Takes over the spares found in the folder; those of another size are removed.
    pub(super) fn adopt(
        folder: &Folder,
        paths: Vec<PathBuf>,
        segment_bytes: u64,
    ) -> Result<Self, Error> {
        let mut ready = Vec::new();
        for path in paths {
            let file = folder.disk.open(&path).at("cannot open", &path)?;
            let is_fit = file.size().at("cannot measure", &path)? == segment_bytes;
            if is_fit && ready.len() < SPARES_MAX {
                ready.push(Spare { path, file });
            } else {
                folder.remove(&path)?;
            }
        }
        Ok(Self { segment_bytes, ready: Mutex::new(ready) })
    }

    /// The size of every spare, and of a log segment.
    pub(super) fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    pub(super) fn take(&self) -> Option<Spare> {
        self.ready.lock().pop()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.lock().is_empty()
    }

    fn push(&self, spare: Spare) {
        self.ready.lock().push(spare);
    }

    /// Makes a spare of a segment that no longer counts, or removes it if it does not fit or a
    /// reader still holds it: a reader must never see its bytes overwritten.
    pub(super) fn recycle(
        &self,
        folder: &Folder,
        id: u64,
        segment: Arc<Segment>,
    ) -> Result<(), Error> {
        let path = segment.path.clone();
        let Some(Segment { file, .. }) = Arc::into_inner(segment) else {
            return folder.remove(&path);
        };
        let is_fit = file.size().at("cannot measure", &path)? == self.segment_bytes;
        if !is_fit || self.ready.lock().len() >= SPARES_MAX {
            return folder.remove(&path);
        }
        let spare = Spare { path: folder.spare_path(id), file };
        folder.rename(&path, &spare.path)?;
        folder.sync_log()?;
        self.push(spare);
        Ok(())
    }
}

// === impl Zeroing ===

impl Zeroing {
    pub(super) fn begin(folder: &Folder, id: u64) -> Result<Self, Error> {
        let path = folder.unfinished_path(id);
        let file = folder.disk.create(&path).at("cannot create", &path)?;
        Ok(Self { spare: Spare { path, file }, id, zeroed_bytes: 0 })
    }

    /// Zeroes a step further; returns itself until the spare is ready.
    pub(super) fn step(mut self, folder: &Folder, spares: &Spares) -> Result<Option<Self>, Error> {
        let Spare { path, file } = &self.spare;
        let end = spares.segment_bytes.min(self.zeroed_bytes + ZERO_STEP_BYTES);
        zero(&**file, self.zeroed_bytes, end).at("cannot write", path)?;
        file.sync().at("cannot sync", path)?;
        self.zeroed_bytes = end;
        if end < spares.segment_bytes {
            return Ok(Some(self));
        }
        let spare = Spare { path: folder.spare_path(self.id), file: Arc::clone(file) };
        folder.rename(path, &spare.path)?;
        folder.sync_log()?;
        spares.push(spare);
        Ok(None)
    }

    pub(super) fn path(&self) -> &std::path::Path {
        &self.spare.path
    }
}

/// Writes zeros from `from` up to `to`; the caller syncs.
pub(super) fn zero(file: &dyn DiskFile, from: u64, to: u64) -> std::io::Result<()> {
    static PIECE: [u8; 64 << 10] = [0; 64 << 10];
    let mut at = from;
    while at < to {
        let len = (to - at).min(PIECE.len() as u64);
        file.write_at(&PIECE[..usize::try_from(len).expect("at most a piece")], at)?;
        at += len;
    }
    Ok(())
}
