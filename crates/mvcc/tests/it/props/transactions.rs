//! Transactions do all that they say, or nothing: answers, revisions and the state after them are
//! the model's, whether they succeed, take their else-branch, or are refused.

use etcd_api::etcdserverpb::{RangeRequest, TxnRequest};
use mvcc::{is_read_only, story::Command};
use proptest::{collection::vec, prelude::*};

use super::Pair;
use crate::arbitrary;

proptest! {
    #[test]
    fn all_or_nothing(life in arbitrary::life(), txns in vec(arbitrary::valid_txn(), 1..6)) {
        let mut pair = Pair::after(&life)?;
        for txn in txns {
            pair.check(&Command::Txn(txn))?;
        }
        pair.check_all()?;
    }

    /// A transaction that cannot write is answered the same by a view.
    #[test]
    fn reading_needs_no_keyspace(
        life in arbitrary::life(),
        txns in vec(arbitrary::valid_txn(), 1..6),
        ranges in vec(arbitrary::range(), 1..4),
    ) {
        let mut pair = Pair::after(&life)?;
        for mut txn in txns {
            without_writes(&mut txn, &ranges);
            prop_assert!(is_read_only(&txn));
            let view = pair.world.keyspace.view();
            let of_view = view.txn(&txn, &pair.world.memory);
            let of_keyspace = pair.world.keyspace.txn(&txn, &pair.world.memory);
            match (of_view, of_keyspace) {
                (Ok(of_view), Ok(outcome)) => {
                    prop_assert_eq!(of_view, outcome.response);
                    prop_assert_eq!(outcome.written, None);
                }
                (Err(of_view), Err(of_keyspace)) => {
                    prop_assert_eq!(of_view.to_string(), of_keyspace.to_string());
                }
                (of_view, of_keyspace) => {
                    prop_assert!(false, "{:?} but {:?}", of_view, of_keyspace);
                }
            }
        }
        pair.check_all()?;
    }
}

/// Puts ranges in the place of all writes.
fn without_writes(txn: &mut TxnRequest, ranges: &[RangeRequest]) {
    use etcd_api::etcdserverpb::request_op::Request;
    let ops = txn.success.iter_mut().chain(&mut txn.failure);
    for (op, range) in ops.zip(ranges.iter().cycle()) {
        match &mut op.request {
            Some(Request::RequestTxn(inner)) => without_writes(inner, ranges),
            Some(Request::RequestPut(_) | Request::RequestDeleteRange(_)) => {
                op.request = Some(Request::RequestRange(range.clone()));
            }
            Some(Request::RequestRange(_)) | None => {}
        }
    }
}
