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
const ZERO_STEP_BYTES: u64 = 1 << 20;
/// A spare is ready when this part, three of four, of the segment being written is in use.
const READY_AT: (u128, u128) = (3, 4);

#[derive(Debug)]
pub(super) struct Spares {
    ready: Mutex<Vec<Spare>>,
}

/// Room for a segment of `bytes`; in a spare every block of it is written.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) path: PathBuf,
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) bytes: u64,
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
    /// Takes over the spares found in the folder; those of no fit size are removed.
    pub(super) fn adopt(
        folder: &Folder,
        paths: Vec<PathBuf>,
        is_fit: impl Fn(u64) -> bool,
    ) -> Result<Self, Error> {
        let mut ready = Vec::new();
        for path in paths {
            let file = folder.disk.open(&path).at("cannot open", &path)?;
            let bytes = file.size().at("cannot measure", &path)?;
            if is_fit(bytes) && ready.len() < SPARES_MAX {
                ready.push(Spare { path, file, bytes });
            } else {
                folder.remove(&path)?;
            }
        }
        Ok(Self { ready: Mutex::new(ready) })
    }

    /// A spare with room for `bytes`.
    pub(super) fn take(&self, bytes: u64) -> Option<Spare> {
        let mut ready = self.ready.lock();
        let fit = ready.iter().rposition(|spare| spare.bytes >= bytes)?;
        Some(ready.remove(fit))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ready.lock().is_empty()
    }

    /// Removes one, for the room it takes; returns whether there was one.
    pub(super) fn give_up_one(&self, folder: &Folder) -> Result<bool, Error> {
        let Some(spare) = self.ready.lock().pop() else { return Ok(false) };
        folder.remove(&spare.path)?;
        Ok(true)
    }

    fn push(&self, spare: Spare) {
        self.ready.lock().push(spare);
    }

    /// Makes a spare of a segment that no longer counts, or removes it if it is not `is_fit` or a
    /// reader still holds it: a reader must never see its bytes overwritten.
    pub(super) fn recycle(
        &self,
        folder: &Folder,
        (segment, id): (Arc<Segment>, u64),
        is_fit: impl FnOnce(u64) -> bool,
    ) -> Result<(), Error> {
        let path = segment.path.clone();
        let Some(Segment { file, .. }) = Arc::into_inner(segment) else {
            return folder.remove(&path);
        };
        let bytes = file.size().at("cannot measure", &path)?;
        if !is_fit(bytes) || self.ready.lock().len() >= SPARES_MAX {
            return folder.remove(&path);
        }
        let spare = Spare { path: folder.spare_path(id), file, bytes };
        folder.rename(&path, &spare.path)?;
        folder.sync_log()?;
        self.push(spare);
        Ok(())
    }
}

// === impl Zeroing ===

impl Zeroing {
    pub(super) fn begin(folder: &Folder, id: u64, bytes: u64) -> Result<Self, Error> {
        let path = folder.unfinished_path(id);
        let file = folder.disk.create(&path).at("cannot create", &path)?;
        Ok(Self { spare: Spare { path, file, bytes }, id, zeroed_bytes: 0 })
    }

    /// Zeroes a step further; returns itself until the spare is ready.
    pub(super) fn step(mut self, folder: &Folder, spares: &Spares) -> Result<Option<Self>, Error> {
        let Spare { path, file, bytes } = &self.spare;
        let end = (self.zeroed_bytes + ZERO_STEP_BYTES).min(*bytes);
        zero(&**file, self.zeroed_bytes, end).at("cannot write", path)?;
        file.sync().at("cannot sync", path)?;
        self.zeroed_bytes = end;
        if end < *bytes {
            return Ok(Some(self));
        }
        let (file, bytes) = (Arc::clone(file), *bytes);
        let spare = Spare { path: folder.spare_path(self.id), file, bytes };
        folder.rename(path, &spare.path)?;
        folder.sync_log()?;
        spares.push(spare);
        Ok(None)
    }

    pub(super) fn path(&self) -> &std::path::Path {
        &self.spare.path
    }

    /// What it still takes.
    pub(super) fn left_bytes(&self) -> u64 {
        self.spare.bytes - self.zeroed_bytes
    }

    /// Whether it is behind the segment being written, of which `written` out of `capacity` bytes are
    /// in use. Zeroing takes the disk from the writer's syncs, so it is spread over the whole of the
    /// time there is, and stops when the writer does.
    pub(super) fn is_behind(&self, written: u64, capacity: u64) -> bool {
        let (ready, ready_at) = READY_AT;
        let (zeroed, all) = (u128::from(self.zeroed_bytes), u128::from(self.spare.bytes));
        zeroed * u128::from(capacity) * ready < all * u128::from(written) * ready_at
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
