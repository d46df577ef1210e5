//! How much room writes may take.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use etcd_api::etcdserverpb::{PutRequest, TxnRequest, request_op::Request};
use journal::Size;

/// What a put is taken to cost besides its key and value.
const PUT_OVERHEAD_BYTES: usize = 256;

/// Writes are refused when they would leave the medium with less than this, beside what the journal's
/// upkeep needs: a journal that finds no room has to stop. It is for what is never refused, such as
/// deletes, the ends of leases and compaction itself.
const RESERVE_BYTES: u64 = 16 * 1024 * 1024;

/// What a lease is taken to cost.
pub(crate) const LEASE_BYTES: usize = 64;

/// The bound on what the journal may take, and what it takes. Asking costs nothing, so what it
/// takes is as old as the last look of housekeeping, and what was promised since comes on top.
#[derive(Debug)]
pub(crate) struct Quota {
    /// 0 means no bound.
    limit_bytes: u64,
    used_bytes: AtomicU64,
    /// Of those, what is not waiting to be given back. Only told.
    in_use_bytes: AtomicU64,
    available_bytes: AtomicU64,
    upkeep_bytes: AtomicU64,
    /// Promised to writes that no look has seen written.
    promised_bytes: AtomicU64,
    /// Of those, of writes that are answered: the next look sees them.
    answered_bytes: AtomicU64,
}

/// Room for one write. To be kept until the write is durable or was given up.
#[derive(Debug)]
pub(crate) struct Promise {
    quota: Arc<Quota>,
    bytes: u64,
}

// === impl Quota ===

impl Quota {
    pub(crate) fn new(limit_bytes: u64, size: Size) -> Self {
        Self {
            limit_bytes,
            used_bytes: AtomicU64::new(size.total_bytes),
            in_use_bytes: AtomicU64::new(size.in_use_bytes),
            available_bytes: AtomicU64::new(size.available_bytes),
            upkeep_bytes: AtomicU64::new(size.upkeep_bytes),
            promised_bytes: AtomicU64::new(0),
            answered_bytes: AtomicU64::new(0),
        }
    }

    /// Notes a size that was measured just now.
    pub(crate) fn note(&self, size: Size) {
        let noted = self.look(|| Ok::<_, std::convert::Infallible>(size));
        noted.unwrap_or_else(|never| match never {});
    }

    /// Measures and notes. What was answered before is in the new size; what is answered meanwhile may
    /// be or not, and goes on to be counted.
    pub(crate) fn look<E>(&self, measure: impl FnOnce() -> Result<Size, E>) -> Result<(), E> {
        let answered_bytes = self.answered_bytes.swap(0, Ordering::AcqRel);
        let size = measure().inspect_err(|_| {
            self.answered_bytes.fetch_add(answered_bytes, Ordering::AcqRel);
        })?;
        self.used_bytes.store(size.total_bytes, Ordering::Relaxed);
        self.in_use_bytes.store(size.in_use_bytes, Ordering::Relaxed);
        self.available_bytes.store(size.available_bytes, Ordering::Relaxed);
        self.upkeep_bytes.store(size.upkeep_bytes, Ordering::Relaxed);
        // Last, so that nobody misses these bytes in both places.
        self.promised_bytes.fetch_sub(answered_bytes, Ordering::AcqRel);
        Ok(())
    }

    /// What was noted last.
    pub(crate) fn size(&self) -> Size {
        Size {
            total_bytes: self.used_bytes.load(Ordering::Relaxed),
            in_use_bytes: self.in_use_bytes.load(Ordering::Relaxed),
            available_bytes: self.available_bytes.load(Ordering::Relaxed),
            upkeep_bytes: self.upkeep_bytes.load(Ordering::Relaxed),
        }
    }

    /// Room for a write of so many bytes, if there is some beside all that was promised before.
    pub(crate) fn promise(self: &Arc<Self>, cost_bytes: usize) -> Option<Promise> {
        let bytes = cost_bytes as u64;
        let promise = |promised: u64| {
            let promised = promised + bytes;
            self.has_room(promised).then_some(promised)
        };
        self.promised_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, promise).ok()?;
        Some(Promise { quota: self.clone(), bytes })
    }

    fn has_room(&self, bytes: u64) -> bool {
        let Size { total_bytes, available_bytes, upkeep_bytes, .. } = self.size();
        let is_within = self.limit_bytes == 0 || total_bytes + bytes <= self.limit_bytes;
        is_within && available_bytes.saturating_sub(bytes) >= RESERVE_BYTES + upkeep_bytes
    }
}

// === impl Promise ===

impl Drop for Promise {
    fn drop(&mut self) {
        self.quota.answered_bytes.fetch_add(self.bytes, Ordering::AcqRel);
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

    const UPKEEP_BYTES: u64 = 100;

    fn size(total_bytes: u64, available_bytes: u64) -> Size {
        Size { total_bytes, in_use_bytes: total_bytes, available_bytes, upkeep_bytes: UPKEEP_BYTES }
    }

    fn quota(limit_bytes: u64, total_bytes: u64, available_bytes: u64) -> Arc<Quota> {
        Arc::new(Quota::new(limit_bytes, size(total_bytes, available_bytes)))
    }

    #[test]
    fn the_limit_counts_what_is_there_and_what_comes() {
        assert!(quota(1000, 900, u64::MAX).promise(100).is_some());
        assert!(quota(1000, 900, u64::MAX).promise(101).is_none());
        assert!(quota(0, u64::MAX / 2, u64::MAX).promise(1 << 30).is_some());
    }

    #[test]
    fn a_nearly_full_medium_takes_no_writes_whatever_the_limit() {
        let reserve_bytes = RESERVE_BYTES + UPKEEP_BYTES;
        assert!(quota(0, 0, reserve_bytes + 1).promise(1).is_some());
        assert!(quota(0, 0, reserve_bytes).promise(1).is_none());
    }

    /// Every one of many large puts that came between two looks was measured against the same room, so
    /// all were let in where there was room for one.
    #[test]
    fn writes_that_come_together_are_promised_the_same_room() {
        let quota = quota(1000, 900, u64::MAX);
        let first = quota.promise(60).expect("there is room");
        assert!(quota.promise(60).is_none());
        let second = quota.promise(40).expect("there is room for both");
        quota.note(size(900, u64::MAX));
        assert!(quota.promise(1).is_none(), "neither was seen written");
        drop(first);
        assert!(quota.promise(1).is_none(), "written, but not seen yet");
        quota.note(size(960, u64::MAX));
        assert!(quota.promise(1).is_none(), "the second is still to come");
        drop(second);
        quota.note(size(960, u64::MAX));
        assert!(quota.promise(40).is_some(), "the second was given up");
    }

    #[test]
    fn what_is_answered_during_a_look_counts_until_the_next() {
        let quota = quota(1000, 0, u64::MAX);
        let promise = quota.promise(600).expect("there is room");
        let look = quota.look(|| {
            drop(promise);
            Ok::<_, ()>(size(0, u64::MAX))
        });
        assert_eq!(look, Ok(()));
        assert!(quota.promise(600).is_none());
        assert_eq!(quota.look(|| Err("not now")), Err("not now"));
        assert!(quota.promise(600).is_none(), "a look that failed saw nothing");
        quota.note(size(600, u64::MAX));
        assert!(quota.promise(400).is_some());
    }
}
