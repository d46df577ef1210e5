//! What was read of one node before deciding about it.

use super::{
    object::LiveNode,
    record::{Record, Stored},
};

/// A node and its record, both by quorum reads: absence decides, so a cache will not do.
///
/// The node is read first and the record after it. The other way round, the node may have been
/// given a newer record in between; its marker would then mean nothing, and it would be restored a
/// second time. For the same reason both are read anew before the final settle, and not the node
/// alone.
#[derive(Debug)]
pub struct Reading {
    pub stored: Stored,
    pub live: Option<LiveNode>,
}

// === impl Reading ===

impl Reading {
    #[must_use]
    pub fn record(&self) -> Option<&Record> {
        self.stored.record()
    }

    /// The node, unless it is on its way out: labels on it would die with it.
    #[must_use]
    pub fn staying(&self) -> Option<&LiveNode> {
        self.live.as_ref().filter(|live| !live.is_terminating)
    }
}
