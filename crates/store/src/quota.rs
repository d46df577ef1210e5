//! How much room writes may take.

use std::sync::atomic::{AtomicU64, Ordering};

use etcd_api::etcdserverpb::{PutRequest, TxnRequest, request_op::Request};
use journal::Size;

/// What a put is taken to cost besides its key and value.
const PUT_OVERHEAD_BYTES: usize = 256;

/// Writes are refused while the medium has less room than this, because a journal that finds none
/// has to stop. It is enough for what can arrive between two looks, and for compaction to copy what
/// it keeps.
const RESERVE_BYTES: u64 = 32 * 1024 * 1024;

/// What a lease is taken to cost.
pub(crate) const LEASE_BYTES: usize = 64;

/// The bound on what the journal may take, and what it takes. Asking costs nothing, so what it
/// takes is as old as the last look of housekeeping.
#[derive(Debug)]
pub(crate) struct Quota {
    /// 0 means no bound.
    limit_bytes: u64,
    used_bytes: AtomicU64,
    /// Of those, what is not waiting to be given back. Only told.
    in_use_bytes: AtomicU64,
    available_bytes: AtomicU64,
}

// === impl Quota ===

impl Quota {
    pub(crate) fn new(limit_bytes: u64, size: Size) -> Self {
        Self {
            limit_bytes,
            used_bytes: AtomicU64::new(size.total_bytes),
            in_use_bytes: AtomicU64::new(size.in_use_bytes),
            available_bytes: AtomicU64::new(size.available_bytes),
        }
    }

    pub(crate) fn note(&self, size: Size) {
        self.used_bytes.store(size.total_bytes, Ordering::Relaxed);
        self.in_use_bytes.store(size.in_use_bytes, Ordering::Relaxed);
        self.available_bytes.store(size.available_bytes, Ordering::Relaxed);
    }

    /// What was noted last.
    pub(crate) fn size(&self) -> Size {
        Size {
            total_bytes: self.used_bytes.load(Ordering::Relaxed),
            in_use_bytes: self.in_use_bytes.load(Ordering::Relaxed),
            available_bytes: self.available_bytes.load(Ordering::Relaxed),
            ..Size::default()
        }
    }

    pub(crate) fn has_room(&self, cost_bytes: usize) -> bool {
        let used_bytes = self.used_bytes.load(Ordering::Relaxed);
        let is_within = self.limit_bytes == 0 || used_bytes + cost_bytes as u64 <= self.limit_bytes;
        is_within && self.available_bytes.load(Ordering::Relaxed) >= RESERVE_BYTES
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

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(limit_bytes: u64, total_bytes: u64, available_bytes: u64) -> Quota {
        let in_use_bytes = total_bytes;
        Quota::new(
            limit_bytes,
            Size { total_bytes, in_use_bytes, available_bytes, ..Size::default() },
        )
    }

    #[test]
    fn the_limit_counts_what_is_there_and_what_comes() {
        assert!(quota(1000, 900, u64::MAX).has_room(100));
        assert!(!quota(1000, 900, u64::MAX).has_room(101));
        assert!(quota(0, u64::MAX / 2, u64::MAX).has_room(1 << 30));
    }

    #[test]
    fn a_nearly_full_medium_takes_no_writes_whatever_the_limit() {
        assert!(quota(0, 0, RESERVE_BYTES).has_room(1));
        assert!(!quota(0, 0, RESERVE_BYTES - 1).has_room(1));
    }
}
