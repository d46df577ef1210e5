//! How much room writes may take.

use std::sync::atomic::{AtomicU64, Ordering};

use etcd_api::etcdserverpb::{PutRequest, TxnRequest, request_op::Request};
use journal::Size;

/// What a put is taken to cost besides its key and value.
const PUT_OVERHEAD_BYTES: usize = 256;

/// What a lease is taken to cost.
pub(crate) const LEASE_BYTES: usize = 64;

/// The bound on what the journal may take, and what it takes. Asking costs nothing, so what it
/// takes is as old as the last look of housekeeping.
#[derive(Debug)]
pub(crate) struct Quota {
    /// 0 means no bound.
    limit_bytes: u64,
    used_bytes: AtomicU64,
}

// === impl Quota ===

impl Quota {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, used_bytes: AtomicU64::new(0) }
    }

    pub(crate) fn note(&self, size: Size) {
        self.used_bytes.store(size.total_bytes, Ordering::Relaxed);
    }

    pub(crate) fn has_room(&self, cost_bytes: usize) -> bool {
        let used_bytes = self.used_bytes.load(Ordering::Relaxed);
        self.limit_bytes == 0 || used_bytes + cost_bytes as u64 <= self.limit_bytes
    }
}

pub(crate) fn put_cost(request: &PutRequest) -> usize {
    PUT_OVERHEAD_BYTES + request.key.len() + request.value.len()
}

/// The dearer of the two branches; 0 if neither puts anything.
pub(crate) fn txn_cost(request: &TxnRequest) -> usize {
    let branch = |ops: &[etcd_api::etcdserverpb::RequestOp]| -> usize {
        ops.iter()
            .map(|op| match &op.request {
                Some(Request::RequestPut(put)) => put_cost(put),
                Some(Request::RequestTxn(inner)) => txn_cost(inner),
                Some(Request::RequestRange(_) | Request::RequestDeleteRange(_)) | None => 0,
            })
            .sum()
    };
    branch(&request.success).max(branch(&request.failure))
}
