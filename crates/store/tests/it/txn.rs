//! Transactions as a server refuses them. What they do is tested in `mvcc`.

use etcd_api::etcdserverpb::{
    Compare, DeleteRangeRequest, PutRequest, RequestOp, TxnRequest, compare::TargetUnion,
    request_op::Request as Op,
};

use crate::harness::{Store, refusal};

fn put(key: &'static str) -> RequestOp {
    let put = PutRequest { key: key.into(), ..Default::default() };
    RequestOp { request: Some(Op::RequestPut(put)) }
}

fn delete(key: &'static str) -> RequestOp {
    let delete = DeleteRangeRequest { key: key.into(), ..Default::default() };
    RequestOp { request: Some(Op::RequestDeleteRange(delete)) }
}

fn within(txn: TxnRequest) -> RequestOp {
    RequestOp { request: Some(Op::RequestTxn(txn)) }
}

/// Whichever branch would be taken: the first case is refused for the branch that is not.
#[tokio::test]
async fn l17_a_key_written_twice_is_refused_in_both_branches() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    let twice = || vec![put("a"), put("a")];
    let never = Compare {
        key: "a".into(),
        target_union: Some(TargetUnion::Version(9)),
        ..Default::default()
    };
    for txn in [
        TxnRequest { failure: twice(), ..Default::default() },
        TxnRequest { success: twice(), ..Default::default() },
        TxnRequest { compare: vec![never], success: twice(), ..Default::default() },
        TxnRequest { failure: vec![put("a"), delete("a")], ..Default::default() },
        TxnRequest {
            success: vec![
                put("a"),
                within(TxnRequest { failure: vec![put("a")], ..Default::default() }),
            ],
            ..Default::default()
        },
    ] {
        let refused = refusal(clients.kv.txn(txn).await);
        assert_eq!(refused, "InvalidArgument: etcdserver: duplicate key given in txn request");
    }
    assert_eq!(clients.put("b", "").await, 2, "nothing was written");
}
