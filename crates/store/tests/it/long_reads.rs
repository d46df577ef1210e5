//! Reads of very many keys, on a runtime with as few threads as a small machine has.

use std::{future::Future, sync::Arc};

use etcd_api::etcdserverpb::{
    PutRequest, RangeRequest, RequestOp, TxnRequest, request_op::Request as Op,
};
use futures::future::join_all;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinSet,
    time::timeout,
};

use crate::{
    harness::{Clients, PATIENCE, Store, new_folder, open_journal, soon},
    held::HeldJournal,
};

/// Threads of the runtime that serves.
const THREADS: usize = 2;

/// More than are read in passing.
const KEYS: usize = 1500;

/// Puts at once while the keys are written.
const PUTS_AT_ONCE: usize = 100;

/// A store with many keys, none of them in memory, whose reads are held. Clients have a runtime of
/// their own, so that they notice when the store's has no thread left.
struct Stage {
    serving: Runtime,
    asking: Runtime,
    journal: Arc<HeldJournal>,
    store: Store,
}

// === impl Stage ===

impl Stage {
    fn new() -> Self {
        let serving = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
        let asking = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let (serving, asking) = (serving.unwrap(), asking.unwrap());
        let folder = new_folder();
        let journal = HeldJournal::new(open_journal(&folder));
        let cold = Store::start_over(journal.clone(), folder, |options| options.cache_bytes = 0);
        let store = serving.block_on(cold);
        asking.block_on(fill(&store));
        journal.hold_reads();
        Self { serving, asking, journal, store }
    }

    /// Begins as many reads as there are threads, and puts a key while they wait for the disk.
    fn check<R: Future<Output = usize> + Send + 'static>(self, read: impl Fn(Clients) -> R) {
        let Self { serving, asking, journal, store } = self;
        asking.block_on(async {
            let mut reads = JoinSet::new();
            for _ in 0..THREADS {
                reads.spawn(read(store.clients().await));
                soon(journal.arrival()).await;
            }
            let mut writer = store.clients().await;
            let put = PutRequest { key: "other".into(), ..Default::default() };
            let answered = timeout(PATIENCE, writer.kv.put(put)).await;
            journal.release();
            answered.expect("a put is answered while lists are read").unwrap();
            while let Some(read) = soon(reads.join_next()).await {
                assert_eq!(read.unwrap(), KEYS);
            }
        });
        serving.block_on(store.stop());
    }
}

async fn fill(store: &Store) {
    let clients = store.clients().await;
    let keys: Vec<usize> = (0..KEYS).collect();
    for some in keys.chunks(PUTS_AT_ONCE) {
        let puts = some.iter().map(|number| {
            let key = format!("k{number}").into();
            let mut kv = clients.kv.clone();
            async move { kv.put(PutRequest { key, ..Default::default() }).await.map(drop) }
        });
        for put in join_all(puts).await {
            put.unwrap();
        }
    }
}

fn everything() -> RangeRequest {
    RangeRequest { key: "k".into(), range_end: "l".into(), ..Default::default() }
}

#[test]
fn lists_do_not_hold_up_writes() {
    Stage::new().check(|mut clients| async move {
        clients.kv.range(everything()).await.unwrap().into_inner().kvs.len()
    });
}

#[test]
fn transactions_that_list_do_not_hold_up_writes() {
    Stage::new().check(|mut clients| async move {
        let list = RequestOp { request: Some(Op::RequestRange(everything())) };
        let txn = TxnRequest { success: vec![list], ..Default::default() };
        let mut answer = clients.kv.txn(txn).await.unwrap().into_inner();
        match answer.responses.pop().and_then(|op| op.response) {
            Some(etcd_api::etcdserverpb::response_op::Response::ResponseRange(range)) => {
                range.kvs.len()
            }
            other => panic!("{other:?}"),
        }
    });
}
