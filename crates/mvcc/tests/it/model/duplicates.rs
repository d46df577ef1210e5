//! Keys that a transaction writes twice, found the slow way.

use bytes::Bytes;
use etcd_api::etcdserverpb::{RequestOp, TxnRequest, request_op::Request};

use super::is_in_range;

/// A write and the way to it: which operation of its level, and below an inner transaction in which
/// of its branches.
struct Write {
    way: Vec<(usize, Branch)>,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Branch {
    Then,
    Else,
}

enum What {
    Put(Bytes),
    Delete(Bytes, Bytes),
}

/// Whether a transaction could put a key twice, or put and delete it: all pairs of writes are compared.
pub(crate) fn are_in(txn: &TxnRequest) -> bool {
    [&txn.success, &txn.failure].into_iter().any(|ops| {
        let mut writes = Vec::new();
        collect(ops, &[], &mut writes);
        let pairs = writes.iter().enumerate();
        pairs.flat_map(|(i, a)| writes[..i].iter().map(move |b| (b, a))).any(|(a, b)| collide(a, b))
    })
}

fn collect(ops: &[RequestOp], way: &[(usize, Branch)], writes: &mut Vec<Write>) {
    for (i, op) in ops.iter().enumerate() {
        let way_in = |branch| [way, &[(i, branch)]].concat();
        match op.request.as_ref() {
            Some(Request::RequestPut(put)) => {
                writes.push(Write { way: way_in(Branch::Then), what: What::Put(put.key.clone()) });
            }
            Some(Request::RequestDeleteRange(delete)) => {
                let what = What::Delete(delete.key.clone(), delete.range_end.clone());
                writes.push(Write { way: way_in(Branch::Then), what });
            }
            Some(Request::RequestTxn(inner)) => {
                collect(&inner.success, &way_in(Branch::Then), writes);
                collect(&inner.failure, &way_in(Branch::Else), writes);
            }
            Some(Request::RequestRange(_)) | None => {}
        }
    }
}

/// `a` stands before `b`.
fn collide(a: &Write, b: &Write) -> bool {
    let parting = a.way.iter().zip(&b.way).position(|(a, b)| a != b);
    let parting = parting.expect("two writes part somewhere");
    if a.way[parting].0 == b.way[parting].0 {
        // The two branches of one transaction: only one of them is taken.
        return false;
    }
    match (&a.what, &b.what) {
        (What::Put(a), What::Put(b)) => a == b,
        (What::Delete(start, end), What::Put(key)) => is_in_range(key, start, end),
        (What::Put(key), What::Delete(start, end)) => {
            // etcd lets a later inner transaction delete what an earlier inner one puts.
            let are_both_inner = a.way.len() > parting + 1 && b.way.len() > parting + 1;
            !are_both_inner && is_in_range(key, start, end)
        }
        (What::Delete(..), What::Delete(..)) => false,
    }
}
