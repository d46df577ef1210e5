//! What is kept, and how it is proved: hashes and snapshots, by the numbers of their lines in the
//! specification.

use etcd_api::{
    etcdserverpb::{
        DefragmentRequest, HashKvRequest, HashKvResponse, LeaseGrantRequest,
        LeaseTimeToLiveRequest, PutRequest, RangeRequest, SnapshotRequest,
    },
    mvccpb::KeyValue,
};
use futures::TryStreamExt;
use journal::Journal;
use sha2::{Digest, Sha256};
use store::snapshot::{self, ReadError};
use tonic::Status;

use crate::harness::{Clients, Store, new_folder, open_journal, refusal, soon};

/// Far more than what fits between a store and a client that does not read.
const MANY_KEYS: usize = 100;
const LARGE_VALUE_BYTES: usize = 64 * 1024;

async fn hash(clients: &mut Clients, revision: i64) -> Result<HashKvResponse, Status> {
    let answer = clients.maintenance.hash_kv(HashKvRequest { revision }).await?;
    Ok(HashKvResponse { header: None, ..answer.into_inner() })
}

/// A key that changes, one that goes and comes back, one with a lease, one that went; revision 9.
async fn fill(clients: &mut Clients) {
    clients.lease.lease_grant(LeaseGrantRequest { id: 7, ttl: 600 }).await.unwrap();
    clients.put("a", "2").await;
    clients.put("b", "3").await;
    clients.put("a", "4").await;
    clients.delete("b", "").await;
    clients.put("b", "6").await;
    let leased = PutRequest { key: "c".into(), lease: 7, ..Default::default() };
    clients.kv.put(leased).await.unwrap();
    clients.put("d", "8").await;
    assert_eq!(clients.delete("d", "").await, 9);
}

/// Puts many keys, each with a large value of one byte repeated; returns the revision.
async fn put_many(clients: &mut Clients, content: u8) -> i64 {
    let mut revision = 0;
    for number in 0..MANY_KEYS {
        revision = clients.put(&number.to_string(), vec![content; LARGE_VALUE_BYTES]).await;
    }
    revision
}

async fn save(clients: &mut Clients) -> Vec<u8> {
    let mut file = Vec::new();
    let mut pieces = clients.maintenance.snapshot(SnapshotRequest {}).await.unwrap().into_inner();
    while let Some(piece) = soon(pieces.message()).await.unwrap() {
        file.extend_from_slice(&piece.blob);
    }
    file
}

#[tokio::test]
async fn l44_equal_data_has_equal_hashes() {
    let (one, other) = (Store::start().await, Store::start().await);
    let (mut one, mut other) = (one.clients().await, other.clients().await);
    fill(&mut one).await;
    fill(&mut other).await;
    for revision in [0, 2, 5, 9] {
        let hashes = (hash(&mut one, revision).await, hash(&mut other, revision).await);
        assert_eq!(hashes.0.unwrap(), hashes.1.unwrap(), "at {revision}");
    }
    one.compact(5).await;
    other.compact(5).await;
    for revision in [5, 9] {
        let hashes = (hash(&mut one, revision).await, hash(&mut other, revision).await);
        assert_eq!(hashes.0.unwrap(), hashes.1.unwrap(), "at {revision}");
    }
    one.put("a", "x").await;
    other.put("a", "y").await;
    assert_ne!(hash(&mut one, 0).await.unwrap().hash, hash(&mut other, 0).await.unwrap().hash);
}

#[tokio::test]
async fn l44_the_hash_of_a_revision_stays() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    fill(&mut clients).await;
    clients.compact(5).await;
    let before = hash(&mut clients, 7).await.unwrap();
    assert_eq!((before.compact_revision, before.hash_revision), (5, 7));
    clients.put("a", "later").await;
    assert_eq!(hash(&mut clients, 7).await.unwrap(), before);
    drop(clients);
    let store = store.restart().await;
    let mut clients = store.clients().await;
    assert_eq!(hash(&mut clients, 7).await.unwrap(), before);
    assert_eq!(
        refusal(hash(&mut clients, 4).await),
        "OutOfRange: etcdserver: mvcc: required revision has been compacted"
    );
    assert_eq!(
        refusal(hash(&mut clients, 11).await),
        "OutOfRange: etcdserver: mvcc: required revision is a future revision"
    );
}

#[tokio::test]
async fn l45_a_snapshot_ends_with_the_digest_of_all_before_it() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    fill(&mut clients).await;
    let file = save(&mut clients).await;
    let (content, digest) = file.split_at(file.len() - 32);
    assert_eq!(content.len() % 512, 0, "which is how etcd's tools know of the digest");
    assert_eq!(*digest, *Sha256::digest(content));
    let summary = snapshot::verify(&file[..]).unwrap();
    assert_eq!((summary.revision, summary.compacted, summary.leases), (9, None, 1));

    let mut damaged = file.clone();
    damaged[content.len() / 2] ^= 1;
    snapshot::verify(&damaged[..]).unwrap_err();
    let cut = snapshot::verify(content).unwrap_err();
    assert!(matches!(cut, ReadError::Truncated { .. }), "{cut}");
}

/// What a stream has not sent yet is kept for it, but nobody waits for its client.
#[tokio::test]
async fn l22_slow_readers_neither_hold_up_a_compaction_nor_lose_by_it() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    put_many(&mut clients, b'1').await;
    let all = RangeRequest { key: "\0".into(), range_end: "\0".into(), ..Default::default() };
    let chunks = clients.kv.range_stream(all).await.unwrap().into_inner();
    let pieces = clients.maintenance.snapshot(SnapshotRequest {}).await.unwrap().into_inner();
    let newest = put_many(&mut clients, b'2').await;
    soon(clients.compact(newest)).await;
    clients.maintenance.defragment(DefragmentRequest {}).await.unwrap();

    let chunks: Vec<_> = soon(chunks.try_collect()).await.unwrap();
    let ranges = chunks.into_iter().filter_map(|chunk| chunk.range_response);
    let kvs: Vec<KeyValue> = ranges.flat_map(|range| range.kvs).collect();
    assert_eq!(kvs.len(), MANY_KEYS);
    let first = [b'1'; LARGE_VALUE_BYTES];
    assert!(kvs.iter().all(|kv| *kv.value() == first), "as when it was asked");
    let pieces: Vec<_> = soon(pieces.try_collect()).await.unwrap();
    let file: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.blob).collect();
    let summary = snapshot::verify(&file[..]).unwrap();
    assert_eq!((summary.changes, summary.compacted), (MANY_KEYS as u64, None));
}

#[tokio::test]
async fn l45_a_restored_store_has_the_same_history() {
    let store = Store::start().await;
    let mut clients = store.clients().await;
    fill(&mut clients).await;
    clients.compact(4).await;
    let file = save(&mut clients).await;
    clients.put("later", "").await;

    let folder = new_folder();
    let journal = open_journal(&folder);
    let epoch = journal.claim().unwrap();
    snapshot::restore(&file[..], &journal, epoch).unwrap();
    drop(journal);
    let restored = Store::start_on(folder).await;
    let mut copy = restored.clients().await;
    for revision in 4..=9 {
        let (was, is) = (clients.all_at(revision).await, copy.all_at(revision).await);
        assert_eq!((was.kvs, was.count), (is.kvs, is.count), "at {revision}");
        assert_eq!(is.header.unwrap().revision, 9);
        let hashes = (hash(&mut clients, revision).await, hash(&mut copy, revision).await);
        assert_eq!(hashes.0.unwrap(), hashes.1.unwrap(), "at {revision}");
    }
    let request = LeaseTimeToLiveRequest { id: 7, keys: true };
    let lease = copy.lease.lease_time_to_live(request).await.unwrap().into_inner();
    assert_eq!((lease.granted_ttl, lease.keys), (600, vec!["c".into()]));
    let (was, is) = (clients.all_at(0).await.header.unwrap(), copy.all_at(0).await.header.unwrap());
    assert_ne!(was.cluster_id, is.cluster_id, "it is another store");
    assert_eq!(copy.put("a", "on").await, 10);
}
