//! What is to be written of the iteration at hand.

use jiff::Timestamp;
use registry::Registry;

use super::{Change, Entry, Line, Recorder, Seen, Start};
use crate::cluster::Snapshot;
use crate::core::Memory;

/// See the module. Whoever does not record has an empty one.
#[derive(Debug, Default)]
pub(crate) struct Log {
    recorder: Option<Recorder>,
    start: Option<Start>,
    entries: Vec<Entry>,
    /// As the entries so far have it.
    seen: Seen,
    /// Lines that were not written since the last that was.
    dropped: u64,
    goes_on: bool,
}

// === impl Log ===

impl Log {
    pub(crate) fn new(recorder: Option<Recorder>) -> Self {
        Self { recorder, ..Self::default() }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.recorder.is_some()
    }

    /// An iteration begins. What came before it is left out where nobody could go on from it.
    pub(crate) fn begin(&mut self, now: Timestamp, registry: &Registry, memory: &Memory) {
        let Some(recorder) = &self.recorder else { return };
        if self.goes_on && !recorder.is_start_wanted() {
            return;
        }
        self.entries.clear();
        self.seen = Seen::default();
        let state = String::from_utf8(registry.save()).expect("a state is JSON");
        self.start = Some(Start { now, state, memory: memory.whole(), dropped: self.dropped });
        self.goes_on = true;
    }

    pub(crate) fn enter(&mut self, entry: impl FnOnce() -> Entry) {
        if self.is_wanted() {
            self.entries.push(entry());
        }
    }

    /// What has changed since the last look; from now on this is what is known.
    pub(crate) fn change_to(&mut self, seen: Seen) -> Change {
        let change = Change::between(&self.seen, &seen);
        self.seen = seen;
        change
    }

    /// The same between iterations, where the provider is not asked.
    pub(crate) fn change_in(&mut self, snapshot: Snapshot) -> Change {
        let groups = self.seen.groups.clone();
        self.change_to(Seen { snapshot, groups })
    }

    /// Hands the line over. False if it had to be dropped.
    pub(crate) fn end(&mut self) -> bool {
        let Some(recorder) = &self.recorder else { return true };
        let line = Line { start: self.start.take(), entries: std::mem::take(&mut self.entries) };
        let is_written = recorder.offer(&line);
        self.dropped = if is_written { 0 } else { self.dropped + 1 };
        self.goes_on = is_written;
        is_written
    }
}
