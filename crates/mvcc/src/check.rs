//! What can be said of a request without looking at any state.

use std::collections::BTreeSet;

use etcd_api::etcdserverpb::{
    DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest,
    range_request::{SortOrder, SortTarget},
    request_op::Request,
};

use crate::key::KeyRange;

/// Why a request makes no sense in any state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("the key is empty")]
    EmptyKey,
    #[error("the sort order or target is unknown")]
    InvalidSort,
    #[error("a put that keeps the old value brings one")]
    ValueProvided,
    #[error("a put that keeps the old lease brings one")]
    LeaseProvided,
    #[error("the transaction has too many operations")]
    TooManyOps,
    #[error("the transaction writes a key twice")]
    DuplicateKey,
    #[error("the transaction has an operation without content")]
    EmptyOp,
}

pub fn range(request: &RangeRequest) -> Result<(), RequestError> {
    check_key(&request.key)?;
    let is_known = SortOrder::try_from(request.sort_order).is_ok()
        && SortTarget::try_from(request.sort_target).is_ok();
    if is_known { Ok(()) } else { Err(RequestError::InvalidSort) }
}

pub fn put(request: &PutRequest) -> Result<(), RequestError> {
    check_key(&request.key)?;
    if request.ignore_value && !request.value.is_empty() {
        return Err(RequestError::ValueProvided);
    }
    if request.ignore_lease && request.lease != 0 {
        return Err(RequestError::LeaseProvided);
    }
    Ok(())
}

pub fn delete_range(request: &DeleteRangeRequest) -> Result<(), RequestError> {
    check_key(&request.key)
}

/// `ops_max` bounds each list of the outermost transaction; what its longest list leaves of it
/// bounds the transactions inside.
pub fn txn(request: &TxnRequest, ops_max: usize) -> Result<(), RequestError> {
    check_shape(request, ops_max)?;
    writes_of(&request.success)?;
    writes_of(&request.failure)?;
    Ok(())
}

fn check_key(key: &[u8]) -> Result<(), RequestError> {
    if key.is_empty() { Err(RequestError::EmptyKey) } else { Ok(()) }
}

fn check_shape(request: &TxnRequest, ops_max: usize) -> Result<(), RequestError> {
    let ops = request.compare.len().max(request.success.len()).max(request.failure.len());
    let left = ops_max.checked_sub(ops).ok_or(RequestError::TooManyOps)?;
    request.compare.iter().try_for_each(|compare| check_key(&compare.key))?;
    request.success.iter().chain(&request.failure).try_for_each(|op| match &op.request {
        Some(Request::RequestRange(request)) => range(request),
        Some(Request::RequestPut(request)) => put(request),
        Some(Request::RequestDeleteRange(request)) => delete_range(request),
        Some(Request::RequestTxn(request)) => check_shape(request, left),
        None => Err(RequestError::EmptyOp),
    })
}

/// What a list of operations may write, whichever branches are taken.
#[derive(Default)]
struct Writes<'r> {
    puts: BTreeSet<&'r [u8]>,
    deletes: Vec<KeyRange<'r>>,
}

/// Collects what `ops` may write, and refuses a key that could be put twice, or put and deleted.
/// The two branches of an inner transaction exclude each other, so they may write the same keys.
///
/// Inner transactions are looked at in order, before this level's own puts: etcd lets a later inner
/// transaction delete what an earlier one put, and so do we.
fn writes_of(ops: &[RequestOp]) -> Result<Writes<'_>, RequestError> {
    let mut writes = Writes { puts: BTreeSet::new(), deletes: deletes_of(ops) };
    for op in ops {
        if let Some(Request::RequestTxn(inner)) = &op.request {
            let then = writes_of(&inner.success)?;
            let otherwise = writes_of(&inner.failure)?;
            writes.add_puts(then.puts.union(&otherwise.puts).copied())?;
            writes.deletes.extend(then.deletes);
            writes.deletes.extend(otherwise.deletes);
        }
    }
    for op in ops {
        if let Some(Request::RequestPut(put)) = &op.request {
            writes.add_puts([&*put.key])?;
        }
    }
    Ok(writes)
}

fn deletes_of(ops: &[RequestOp]) -> Vec<KeyRange<'_>> {
    ops.iter()
        .filter_map(|op| match &op.request {
            Some(Request::RequestDeleteRange(delete)) => {
                Some(KeyRange::new(&delete.key, &delete.range_end))
            }
            _ => None,
        })
        .collect()
}

// === impl Writes ===

impl<'r> Writes<'r> {
    fn add_puts(&mut self, keys: impl IntoIterator<Item = &'r [u8]>) -> Result<(), RequestError> {
        for key in keys {
            let is_deleted = self.deletes.iter().any(|range| range.contains(key));
            if is_deleted || !self.puts.insert(key) {
                return Err(RequestError::DuplicateKey);
            }
        }
        Ok(())
    }
}
