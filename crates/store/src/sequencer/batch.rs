//! What travels from the writer through the committer to everyone else.

use std::sync::Arc;

use etcd_api::mvccpb::KeyValue;
use mvcc::{LeaseId, Position, Revision, View, Written};

use super::{Reply, SnapshotPoint};
use crate::{alarm, auth};

/// Sends one answer.
pub(super) type Answer = Box<dyn FnOnce() + Send>;

/// What commands leave behind until it is durable.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) written: Vec<Written>,
    pub(super) meta: Vec<journal::MetaChange>,
    pub(super) effects: Vec<Effect>,
    pub(super) answers: Vec<Answer>,
    /// Bytes of what was written and of the answers to it.
    pub(super) bytes: usize,
}

/// One batch on its way to the journal.
pub(crate) struct Batch {
    pub(super) journal: Arc<journal::Batch>,
    /// For each record, what each of its changes replaced.
    pub(super) previous: Vec<Vec<Option<Position>>>,
    /// The state after the batch.
    pub(super) view: View,
    pub(super) effects: Vec<Effect>,
    pub(super) answers: Vec<Answer>,
}

/// What else becomes true when the batch is durable.
pub(crate) enum Effect {
    LeaseGranted {
        id: LeaseId,
        ttl_s: i64,
    },
    LeaseRevoked {
        id: LeaseId,
    },
    Alarms(alarm::Alarms),
    Auth(Arc<auth::State>),
    /// Somebody asked for this moment: the batch is published and the next one has not begun.
    Snapshot(Reply<SnapshotPoint>),
}

/// The changes of one batch, durable and in order, for those who watch.
pub(crate) struct CommittedBatch {
    pub(crate) first: Revision,
    pub(crate) last: Revision,
    pub(crate) events: Vec<ChangeEvent>,
}

/// One change of one key.
pub(crate) struct ChangeEvent {
    pub(crate) position: Position,
    pub(crate) kv: KeyValue,
    pub(crate) previous: Previous,
}

/// The version a change replaced.
pub(crate) enum Previous {
    None,
    Known(KeyValue),
    /// To be read back if someone asks.
    At(Position),
}

// === impl Batch ===

impl Batch {
    /// Whether it leaves anything in the journal.
    pub(super) fn writes(&self) -> bool {
        !(self.journal.records.is_empty() && self.journal.meta.is_empty())
    }
}

// === impl Gathered ===

impl Gathered {
    pub(super) fn is_empty(&self) -> bool {
        self.answers.is_empty()
            && self.written.is_empty()
            && self.meta.is_empty()
            && self.effects.is_empty()
    }

    /// How many commands left something that waits, about.
    pub(super) fn commands(&self) -> usize {
        self.answers.len().max(self.effects.len())
    }

    pub(super) fn change_meta(&mut self, changes: impl IntoIterator<Item = journal::MetaChange>) {
        for change in changes {
            self.bytes += change.key.len() + change.value.as_ref().map_or(0, bytes::Bytes::len);
            self.meta.push(change);
        }
    }

    pub(super) fn add(&mut self, written: Written) {
        self.bytes += written.record.encoded_len();
        self.written.push(written);
    }
}
