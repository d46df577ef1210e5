//! What the sequencer can be asked for.

use std::sync::Arc;

use bytes::Bytes;
use etcd_api::etcdserverpb::{
    DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse, TxnRequest, TxnResponse,
};
use mvcc::{LeaseId, Revision};
use tokio::sync::oneshot;

use crate::{
    Error, alarm,
    auth::{self, Caller},
    published::State,
    quota::Promise,
};

pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

/// One command. Every answer waits until all that was written before it is durable, so that nobody
/// learns of a write that a crash could still take back.
pub(crate) enum Command {
    Put {
        request: PutRequest,
        caller: Caller,
        room: Promise,
        reply: Reply<PutResponse>,
    },
    DeleteRange {
        request: DeleteRangeRequest,
        caller: Caller,
        reply: Reply<DeleteRangeResponse>,
    },
    Txn {
        request: Box<TxnRequest>,
        caller: Caller,
        /// None is needed if nothing is put.
        room: Option<Promise>,
        reply: Reply<TxnResponse>,
    },
    Compact {
        to: Revision,
        is_physical: bool,
        reply: Reply<Compacted>,
    },
    Grant {
        id: LeaseId,
        ttl_s: i64,
        room: Promise,
        reply: Reply<Revision>,
    },
    /// Without a caller it is the store's own doing.
    Revoke {
        id: LeaseId,
        caller: Option<Caller>,
        reply: Reply<Revision>,
    },
    Lease {
        id: LeaseId,
        reply: Reply<Option<LeaseContent>>,
    },
    LeasedKeys {
        reply: Reply<Vec<Bytes>>,
    },
    Alarm {
        change: alarm::Change,
        reply: Reply<Vec<alarm::Alarm>>,
    },
    Auth {
        change: auth::Change,
        caller: Caller,
        reply: Reply<Revision>,
    },
    /// Asks for a moment between two batches.
    Snapshot {
        reply: Reply<SnapshotPoint>,
    },
    /// Nothing to do but to look whether the committer is free.
    Wake,
    /// The last command.
    Stop,
}

/// The answer to a compaction.
pub(crate) struct Compacted {
    /// The store's revision, not the compacted one.
    pub(crate) revision: Revision,
}

/// Where a snapshot is taken: a durable state, and the meta table that belongs to it.
pub(crate) struct SnapshotPoint {
    pub(crate) state: Arc<State>,
    pub(crate) meta: Vec<(Bytes, Bytes)>,
}

/// What hangs on a lease.
pub(crate) struct LeaseContent {
    pub(crate) keys: Vec<Bytes>,
}
