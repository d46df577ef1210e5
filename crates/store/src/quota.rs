//! How much room writes may take.

use etcd_api::etcdserverpb::{PutRequest, TxnRequest, request_op::Request};
use journal::Journal;

/// What a put is taken to cost besides its key and value.
const PUT_OVERHEAD_BYTES: usize = 256;

/// What a lease is taken to cost.
pub(crate) const LEASE_BYTES: usize = 64;

/// The bound on what the journal may take.
#[derive(Debug)]
pub(crate) struct Quota {
    /// 0 means no bound.
    limit_bytes: u64,
}

// === impl Quota ===

impl Quota {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes }
    }

    pub(crate) fn has_room(
        &self,
        journal: &dyn Journal,
        cost_bytes: usize,
    ) -> Result<bool, journal::Error> {
        if self.limit_bytes == 0 {
            return Ok(true);
        }
        Ok(journal.size()?.total_bytes + cost_bytes as u64 <= self.limit_bytes)
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
