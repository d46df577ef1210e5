//! Where the changes of one segment are, and which of them still count. Pure and in memory.

use mvcc::{Position, Revision};

use super::frame::{CHANGE_HEADER_BYTES, Span};

/// Changes in order of position, 24 bytes each, and a bit for each that was forgotten.
///
/// The starts of the spans count from the beginning of the segment.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    spans: Vec<Span>,
    forgotten: Vec<u64>,
    live_changes: usize,
    live_bytes: u64,
}

// === impl Index ===

impl Index {
    /// An index of spans that are in order; none is forgotten.
    pub(super) fn new(spans: Vec<Span>) -> Self {
        let forgotten = vec![0; spans.len().div_ceil(64)];
        let live_bytes = spans.iter().map(taken_bytes).sum();
        Self { live_changes: spans.len(), spans, forgotten, live_bytes }
    }

    /// Adds the changes of a frame that begins at `frame_start`.
    pub(super) fn extend(&mut self, spans: &[Span], frame_start: u32) {
        self.spans
            .extend(spans.iter().map(|span| Span { start: span.start + frame_start, ..*span }));
        self.forgotten.resize(self.spans.len().div_ceil(64), 0);
        self.live_changes += spans.len();
        self.live_bytes += spans.iter().map(taken_bytes).sum::<u64>();
    }

    pub(super) fn get(&self, position: Position) -> Option<Span> {
        let at = self.find(position)?;
        (!self.is_forgotten(at)).then(|| self.spans[at])
    }

    /// The kept changes from `from` on.
    pub(super) fn kept_from(&self, from: Revision) -> impl Iterator<Item = Span> + '_ {
        let begin = self.spans.partition_point(|span| span.position.revision < from);
        (begin..self.spans.len()).filter(|at| !self.is_forgotten(*at)).map(|at| self.spans[at])
    }

    /// A change that is not here, or was forgotten before, is no change.
    pub(super) fn forget(&mut self, position: Position) {
        if let Some(at) = self.find(position).filter(|at| !self.is_forgotten(*at)) {
            self.forgotten[at / 64] |= 1 << (at % 64);
            self.live_changes -= 1;
            self.live_bytes -= taken_bytes(&self.spans[at]);
        }
    }

    /// All changes, forgotten ones too.
    pub(super) fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// For each change in order: it, or `None` if it was forgotten.
    pub(super) fn kept(&self) -> impl Iterator<Item = Option<Span>> + '_ {
        self.spans.iter().enumerate().map(|(at, span)| (!self.is_forgotten(at)).then_some(*span))
    }

    pub(super) fn forgotten(&self) -> impl Iterator<Item = Span> + '_ {
        (0..self.spans.len()).filter(|at| self.is_forgotten(*at)).map(|at| self.spans[at])
    }

    pub(super) fn live_changes(&self) -> usize {
        self.live_changes
    }

    /// What the kept changes take in the segment.
    pub(super) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    fn find(&self, position: Position) -> Option<usize> {
        self.spans.binary_search_by_key(&position, |span| span.position).ok()
    }

    fn is_forgotten(&self, at: usize) -> bool {
        self.forgotten[at / 64] & (1 << (at % 64)) != 0
    }
}

fn taken_bytes(span: &Span) -> u64 {
    CHANGE_HEADER_BYTES as u64 + u64::from(span.len)
}
