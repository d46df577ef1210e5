//! A disk that remembers: it carries every operation out on real files and keeps the list, from
//! which [`image`](super::image) builds the folders that a crash could have left. It can also fail
//! on request, the way disks do.

use std::{
    collections::{BTreeMap, VecDeque, btree_map::Entry},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use journal::embedded::disk::{Disk, DiskFile, SystemDisk};
use parking_lot::{Condvar, Mutex};

/// A writer that has not come to its sync by then never will.
const SYNC_WAIT_MAX: Duration = Duration::from_secs(30);

/// One operation, in the order it was asked for.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Create {
        file: FileId,
        path: PathBuf,
    },
    Write {
        file: FileId,
        offset: u64,
        bytes: Arc<[u8]>,
    },
    Sync {
        file: FileId,
    },
    /// The sync failed: what was not durable before never will be, but stays readable until the
    /// crash. This is what Linux does with the pages of a failed write-back.
    SyncFailed {
        file: FileId,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
    SyncFolder {
        path: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId(usize);

/// How a later operation goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The n-th sync from now on fails with EIO, counted from 0.
    Sync(usize),
    /// The n-th write from now on writes half of its bytes and fails with ENOSPC.
    Write(usize),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct RecordingDisk {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    gate: Gate,
}

#[derive(Debug, Default)]
struct State {
    ops: Vec<Op>,
    files: Vec<PathBuf>,
    faults: VecDeque<Fault>,
    /// Where each file ends, which is what it takes.
    ends: BTreeMap<FileId, u64>,
    /// What files may still take. Nothing but removing files gives any of it back.
    available_bytes: Option<u64>,
}

/// Holds syncs up while it is closed.
#[derive(Debug, Default)]
struct Gate {
    waiting: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    is_closed: bool,
    waiting: usize,
}

/// Opens the gate when dropped.
#[derive(Debug)]
pub(crate) struct ClosedGate {
    disk: RecordingDisk,
}

#[derive(Debug)]
struct RecordingFile {
    id: FileId,
    inner: Arc<dyn DiskFile>,
    disk: RecordingDisk,
}

// === impl RecordingDisk ===

impl RecordingDisk {
    /// How many operations there were until now.
    pub(crate) fn position(&self) -> usize {
        self.shared.state.lock().ops.len()
    }

    pub(crate) fn ops(&self) -> Vec<Op> {
        self.shared.state.lock().ops.clone()
    }

    pub(crate) fn inject(&self, fault: Fault) {
        self.shared.state.lock().faults.push_back(fault);
    }

    /// From now on files may take so many bytes more.
    pub(crate) fn limit(&self, available_bytes: u64) {
        self.shared.state.lock().available_bytes = Some(available_bytes);
    }

    pub(crate) fn left_bytes(&self) -> u64 {
        self.shared.state.lock().available_bytes.unwrap_or(u64::MAX)
    }

    /// Every sync waits until what this returns is dropped.
    pub(crate) fn close_gate(&self) -> ClosedGate {
        self.shared.gate.waiting.lock().is_closed = true;
        ClosedGate { disk: self.clone() }
    }

    /// Returns once a sync waits at the gate.
    pub(crate) fn wait_for_waiting_sync(&self) {
        let gate = &self.shared.gate;
        let mut state = gate.waiting.lock();
        gate.changed.wait_while_for(&mut state, |state| state.waiting == 0, SYNC_WAIT_MAX);
        assert!(state.waiting > 0, "no sync came to the gate");
    }

    fn record(&self, op: Op) {
        self.shared.state.lock().ops.push(op);
    }

    fn wrap(&self, path: &Path, inner: Arc<dyn DiskFile>) -> io::Result<Arc<RecordingFile>> {
        let mut state = self.shared.state.lock();
        let known = state.files.iter().position(|known| known == path);
        let id = FileId(known.unwrap_or_else(|| {
            state.files.push(path.to_owned());
            state.files.len() - 1
        }));
        if let Entry::Vacant(end) = state.ends.entry(id) {
            end.insert(inner.size()?);
        }
        Ok(Arc::new(RecordingFile { id, inner, disk: self.clone() }))
    }

    /// Whether the fault that is due next is of the kind and due now.
    fn is_due(&self, is_kind: impl Fn(Fault) -> Option<usize>) -> bool {
        let mut state = self.shared.state.lock();
        let Some(left) = state.faults.front().copied().and_then(&is_kind) else { return false };
        let fault = state.faults.pop_front().expect("just seen");
        if left == 0 {
            return true;
        }
        state.faults.push_front(match fault {
            Fault::Sync(left) => Fault::Sync(left - 1),
            Fault::Write(left) => Fault::Write(left - 1),
        });
        false
    }
}

// === impl State ===

impl State {
    /// How many of `len` bytes at `offset` find room.
    fn admit(&mut self, file: FileId, offset: u64, len: u64) -> u64 {
        let end = self.ends.entry(file).or_default();
        let added = (offset + len).saturating_sub(*end);
        let available = self.available_bytes.unwrap_or(u64::MAX);
        let missing = added.saturating_sub(available);
        *end += added - missing;
        if let Some(available) = &mut self.available_bytes {
            *available -= added - missing;
        }
        len.saturating_sub(missing)
    }

    /// What a name held is free from now on, though in truth only once no process has it open.
    fn release(&mut self, path: &Path, name: &str) {
        for (file, known) in self.files.iter_mut().enumerate().filter(|(_, known)| *known == path) {
            *known = PathBuf::from(name);
            let freed = self.ends.remove(&FileId(file)).unwrap_or_default();
            if let Some(available) = &mut self.available_bytes {
                *available += freed;
            }
        }
    }
}

impl Disk for RecordingDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let inner = SystemDisk.create(path)?;
        let mut state = self.shared.state.lock();
        state.files.push(path.to_owned());
        let file = FileId(state.files.len() - 1);
        state.ops.push(Op::Create { file, path: path.to_owned() });
        Ok(Arc::new(RecordingFile { id: file, inner, disk: self.clone() }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.wrap(path, SystemDisk.open(path)?)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        SystemDisk.rename(from, to)?;
        let mut state = self.shared.state.lock();
        state.release(to, "replaced");
        for name in state.files.iter_mut().filter(|name| *name == from) {
            *name = to.to_owned();
        }
        state.ops.push(Op::Rename { from: from.to_owned(), to: to.to_owned() });
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        SystemDisk.remove(path)?;
        let mut state = self.shared.state.lock();
        state.release(path, "removed");
        state.ops.push(Op::Remove { path: path.to_owned() });
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        // The images decide what is durable; syncing the real folder would only cost time.
        self.record(Op::SyncFolder { path: folder.to_owned() });
        Ok(())
    }

    fn available_bytes(&self, _folder: &Path) -> io::Result<u64> {
        Ok(self.left_bytes())
    }
}

// === impl RecordingFile ===

impl DiskFile for RecordingFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.inner.read_at(buf, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let is_failing = self.disk.is_due(|fault| match fault {
            Fault::Write(left) => Some(left),
            Fault::Sync(_) => None,
        });
        let asked = if is_failing { bytes.len() / 2 } else { bytes.len() };
        let admitted = self.disk.shared.state.lock().admit(self.id, offset, asked as u64);
        let written = &bytes[..usize::try_from(admitted).expect("no more than was asked for")];
        self.inner.write_at(written, offset)?;
        self.disk.record(Op::Write { file: self.id, offset, bytes: written.into() });
        if written.len() < bytes.len() {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        } else {
            Ok(())
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.shared.gate.pass();
        let is_failing = self.disk.is_due(|fault| match fault {
            Fault::Sync(left) => Some(left),
            Fault::Write(_) => None,
        });
        if is_failing {
            self.disk.record(Op::SyncFailed { file: self.id });
            return Err(io::Error::other("the disk failed"));
        }
        self.disk.record(Op::Sync { file: self.id });
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        self.inner.size()
    }
}

// === impl Gate ===

impl Gate {
    fn pass(&self) {
        let mut state = self.waiting.lock();
        if !state.is_closed {
            return;
        }
        state.waiting += 1;
        self.changed.notify_all();
        self.changed.wait_while(&mut state, |state| state.is_closed);
        state.waiting -= 1;
    }
}

// === impl ClosedGate ===

impl Drop for ClosedGate {
    fn drop(&mut self) {
        let gate = &self.disk.shared.gate;
        gate.waiting.lock().is_closed = false;
        gate.changed.notify_all();
    }
}
