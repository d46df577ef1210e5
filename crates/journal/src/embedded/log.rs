//! What the writer, the readers and the upkeep of one journal share: the folder, and the view of
//! all that is durable. Locks are held only to look at memory, never during I/O.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use mvcc::{Position, Revision};
use parking_lot::{Mutex, RwLock};

use super::{
    folder::Folder, ledger::Ledger, room::Room, segment::Segment, sizes::Sizes, spares::Spares,
};
use crate::{AppendError, Epoch, Error};

#[derive(Debug)]
pub(super) struct Log {
    pub(super) folder: Folder,
    pub(super) sizes: Sizes,
    pub(super) view: RwLock<View>,
    pub(super) spares: Spares,
    /// Held while changes are forgotten and while a rewritten segment takes its place, so that
    /// none is forgotten in the old one only.
    forgetting: Mutex<()>,
    last_id: AtomicU64,
    is_stopped: AtomicBool,
}

/// What a reader may see: all of it is durable.
#[derive(Debug)]
pub(super) struct View {
    pub(super) ledger: Ledger,
    /// In order, without gaps. The newest one is last and grows; the others are sealed.
    pub(super) segments: Vec<Arc<Segment>>,
}

// === impl View ===

impl View {
    pub(super) fn total_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.filled.read().end).sum()
    }
}

// === impl Log ===

impl Log {
    /// Over a folder whose files are all accounted for; `last_id` is the largest id among them.
    pub(super) fn new(
        folder: Folder,
        view: View,
        (spares, sizes): (Spares, Sizes),
        last_id: u64,
    ) -> Self {
        Self {
            folder,
            sizes,
            view: RwLock::new(view),
            spares,
            forgetting: Mutex::new(()),
            last_id: AtomicU64::new(last_id),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// The durable revision, if a write under `epoch` is allowed at all.
    pub(super) fn admit(&self, epoch: Epoch) -> Result<Revision, AppendError> {
        self.check_running().map_err(|source| AppendError::Failed { source })?;
        let (current, last) = self.view.read().ledger.standing();
        if epoch != current {
            return Err(AppendError::Fenced { held: epoch, current });
        }
        Ok(last)
    }

    pub(super) fn check_running(&self) -> Result<(), Error> {
        if self.is_stopped.load(Ordering::Acquire) {
            return Err(Error::Stopped { path: self.folder.root().to_owned() });
        }
        Ok(())
    }

    /// Takes no more writes from now on.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
    }

    /// An id above every one that was ever given to a segment.
    pub(super) fn next_id(&self) -> u64 {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What the segments take, room not counted that is still to be written.
    pub(super) fn total_bytes(&self) -> u64 {
        self.view.read().total_bytes()
    }

    /// The size the next segment should have.
    pub(super) fn next_segment_bytes(&self) -> u64 {
        self.sizes.next(self.total_bytes())
    }

    /// What the medium has left, for those who do not have to take any of it.
    pub(super) fn room(&self) -> Result<Room, Error> {
        let available_bytes = self.folder.available_bytes()?;
        let view = self.view.read();
        let largest = view.segments.iter().map(|segment| segment.filled.read().end).max();
        let next_bytes = self.sizes.next(view.total_bytes());
        let segment_bytes = self.sizes.bounded(largest.unwrap_or(0)).max(next_bytes);
        Ok(Room::new(available_bytes, segment_bytes))
    }

    /// The segments as they are now. Those rewritten later stay readable through these handles.
    pub(super) fn segments(&self) -> Vec<Arc<Segment>> {
        self.view.read().segments.clone()
    }

    /// The segment that is being written.
    pub(super) fn newest(&self) -> Arc<Segment> {
        let view = self.view.read();
        Arc::clone(view.segments.last().expect("a log always has a segment to write to"))
    }

    /// The segment that holds `revision`, if it was written.
    pub(super) fn segment_of(&self, revision: Revision) -> Option<Arc<Segment>> {
        let view = self.view.read();
        let after = view.segments.partition_point(|segment| segment.header.base < revision);
        view.segments[..after].last().cloned()
    }

    pub(super) fn forget(&self, positions: &[Position]) {
        let _forgetting = self.forgetting.lock();
        for position in positions {
            if let Some(segment) = self.segment_of(position.revision) {
                segment.filled.write().index.forget(*position);
            }
        }
    }

    /// Puts `segment` in the place of the `sources` it was copied from. What was forgotten in them
    /// since is forgotten in it too.
    pub(super) fn replace(&self, sources: &[Arc<Segment>], segment: Segment) {
        let _forgetting = self.forgetting.lock();
        for source in sources {
            let source = source.filled.read();
            let mut copy = segment.filled.write();
            for forgotten in source.index.forgotten() {
                copy.index.forget(forgotten.position);
            }
        }
        let mut view = self.view.write();
        let first = sources[0].header.id;
        let begin = view.segments.iter().position(|found| found.header.id == first);
        let begin = begin.expect("only a rewrite removes segments, and one runs at a time");
        view.segments.splice(begin..begin + sources.len(), [Arc::new(segment)]);
    }
}
