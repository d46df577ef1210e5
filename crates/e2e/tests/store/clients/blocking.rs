//! Locks and elections that somebody else holds: whoever comes second waits, in line, until the
//! holder lets go or its lease ends. On etcd and on windlass.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::client::Client;
use e2e::scene::{Scene, suite};
use e2e::store::{Lane, Store, StoreOptions};
use e2e::wait::{Level, wait_for};
use etcd_api::etcdserverpb as pb;
use etcd_api::v3electionpb::{CampaignRequest, LeaderKey, ResignRequest};
use etcd_api::v3lockpb::{LockRequest, UnlockRequest};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

/// Long enough not to end by itself; a holder's lease is revoked instead.
const TTL: i64 = 600;

/// How long a claim may take to reach the store, or to be granted once it can be.
const CLAIM_WAIT: Duration = Duration::from_secs(20);

macro_rules! lanes {
    ($($etcd:ident / $windlass:ident => $check:ident;)+) => {$(
        #[test]
        fn $etcd() {
            run(stringify!($etcd), Lane::Etcd, async |client| $check(client).await);
        }

        #[test]
        fn $windlass() {
            run(stringify!($windlass), Lane::Windlass, async |client| $check(client).await);
        }
    )+};
}

lanes! {
    etcd_lets_locks_wait / windlass_lets_locks_wait => check_locks;
    etcd_lets_candidates_wait / windlass_lets_candidates_wait => check_elections;
}

fn run(name: &'static str, lane: Lane, check: impl AsyncFnOnce(&Client) -> Result<()>) {
    suite(name, &[lane.asset()], async |scene: &Scene| {
        let options = StoreOptions::new(lane, "store").flags(lane.without_sync());
        let store = Store::start(scene, &options).await?;
        check(&store.client()?).await
    });
}

/// Four in line: the first unlocks, the third gives up waiting, the second's lease is revoked, the
/// fourth gets it.
async fn check_locks(client: &Client) -> Result<()> {
    let first = Claim::make(client, 1, lock(client.clone(), 1)).await?;
    let second = Claim::make(client, 2, lock(client.clone(), 2)).await?;
    let third = Claim::make(client, 3, lock(client.clone(), 3)).await?;
    let fourth = Claim::make(client, 4, lock(client.clone(), 4)).await?;
    let held = first.granted().await?;
    ensure!(held == "line/1", "{held}");
    ensure!(second.waits() && third.waits() && fourth.waits(), "nobody waited");
    client.lock().unlock(UnlockRequest { key: held.into() }).await?;
    ensure!(second.granted().await? == "line/2", "the second comes after the first");
    drop(third);
    wait_for_claims(client, 2).await.context("whoever gives up leaves the line")?;
    ensure!(fourth.waits(), "the second still holds it");
    client.lease().lease_revoke(pb::LeaseRevokeRequest { id: 2 }).await?;
    ensure!(fourth.granted().await? == "line/4", "the fourth comes after the second");
    Ok(())
}

/// Three candidates: the first resigns, the second's lease is revoked.
async fn check_elections(client: &Client) -> Result<()> {
    let first = Claim::make(client, 1, campaign(client.clone(), 1)).await?;
    let second = Claim::make(client, 2, campaign(client.clone(), 2)).await?;
    let third = Claim::make(client, 3, campaign(client.clone(), 3)).await?;
    let leader = first.granted().await?;
    ensure!(leader.lease == 1 && second.waits() && third.waits(), "{leader:?}");
    client.election().resign(ResignRequest { leader: Some(leader) }).await?;
    let leader = second.granted().await?;
    ensure!(leader.lease == 2 && third.waits(), "{leader:?}");
    client.lease().lease_revoke(pb::LeaseRevokeRequest { id: 2 }).await?;
    let leader = third.granted().await?;
    ensure!(leader.lease == 3, "{leader:?}");
    Ok(())
}

/// A call that is answered once whatever it claims is granted. Dropped, it gives up.
struct Claim<T> {
    call: JoinSet<Result<T>>,
    handle: AbortHandle,
}

// === impl Claim ===

impl<T: Send + 'static> Claim<T> {
    /// Claims with a lease of its own, and waits until the claim stands in line.
    async fn make(
        client: &Client,
        lease: i64,
        claim: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<Self> {
        client.lease().lease_grant(pb::LeaseGrantRequest { id: lease, ttl: TTL }).await?;
        let mut call = JoinSet::new();
        let handle = call.spawn(claim);
        wait_for_claims(client, lease).await?;
        Ok(Self { call, handle })
    }

    fn waits(&self) -> bool {
        !self.handle.is_finished()
    }

    async fn granted(mut self) -> Result<T> {
        let answer = timeout(CLAIM_WAIT, self.call.join_next()).await.context("not granted")?;
        answer.context("the call was taken before")??
    }
}

/// A claim is a key, the holder's and a waiting one's alike.
async fn wait_for_claims(client: &Client, expected: i64) -> Result<()> {
    wait_for("claims to stand in line", CLAIM_WAIT, async || {
        let request = pb::RangeRequest {
            key: "line/".into(),
            range_end: "line0".into(),
            count_only: true,
            ..Default::default()
        };
        let count = client.kv().range(request).await?.into_inner().count;
        Ok(if count == expected {
            Level::Reached(())
        } else {
            Level::Below(format!("{count} of {expected}"))
        })
    })
    .await
}

async fn lock(client: Client, lease: i64) -> Result<String> {
    let answer = client.lock().lock(LockRequest { name: "line".into(), lease }).await?;
    Ok(String::from_utf8_lossy(&answer.into_inner().key).into_owned())
}

async fn campaign(client: Client, lease: i64) -> Result<LeaderKey> {
    let request = CampaignRequest { name: "line".into(), lease, value: "v".into() };
    let answer = client.election().campaign(request).await?.into_inner();
    answer.leader.context("whoever is elected is told their key")
}
