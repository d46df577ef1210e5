//! What is kept, and how it is proved: hashes and snapshots, by the numbers of their lines in the
//! specification.

use etcd_api::etcdserverpb::{
    HashKvRequest, HashKvResponse, LeaseGrantRequest, LeaseTimeToLiveRequest, PutRequest,
    SnapshotRequest,
};
use journal::Journal;
use sha2::{Digest, Sha256};
use store::snapshot::{self, ReadError};
use tonic::Status;

use crate::harness::{Clients, Store, new_folder, open_journal, refusal, soon};

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
