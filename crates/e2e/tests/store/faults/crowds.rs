//! Very many of something: watches on a stream, slow watchers, leases. The store goes on.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::client::Client;
use e2e::http;
use e2e::report::say;
use e2e::scene::{Scene, bound, suite};
use e2e::store::{Lane, Store, StoreOptions};
use etcd_api::etcdserverpb as pb;
use futures::StreamExt;
use pb::watch_request::RequestUnion;
use tokio::time::{Instant, timeout};

const WATCHES: (usize, usize) = (2_000, 10_000);
const SLOW_WATCHERS: (usize, usize) = (200, 1_000);
const LEASES: (usize, usize) = (5_000, 100_000);

/// Requests in flight while leases are granted.
const GRANTS_AT_ONCE: usize = 64;

/// Puts that slow watchers do not read, of this size each: many times what their windows take, so
/// that all of them are behind for most of the puts.
const UNREAD_PUTS: usize = 200;
const UNREAD_BYTES: usize = 16 * 1024;

/// Puts on which every watcher's window runs full, before any is measured.
const FILLING_PUTS: usize = 80;

/// What a put may take beside slow watchers, compared with the same without them: generous, because
/// other tests share the machine. A store that waits for a slow watcher does not answer at all.
const SLOWER_MAX: u32 = 5;

/// How long a put may take beside slow watchers.
const PUT_WAIT: Duration = Duration::from_secs(5);

/// How long the whole of a crowd may take.
const CROWD_WAIT: Duration = Duration::from_secs(300);

#[test]
fn etcd_carries_many_watches_on_one_stream() {
    run("etcd_carries_many_watches_on_one_stream", Lane::Etcd, async |scene, lane| {
        check_watches(scene, lane).await
    });
}

#[test]
fn windlass_carries_many_watches_on_one_stream() {
    run("windlass_carries_many_watches_on_one_stream", Lane::Windlass, async |scene, lane| {
        check_watches(scene, lane).await
    });
}

#[test]
fn windlass_is_not_held_up_by_slow_watchers() {
    run("windlass_is_not_held_up_by_slow_watchers", Lane::Windlass, async |scene, lane| {
        check_slow_watchers(scene, lane).await
    });
}

#[test]
fn windlass_carries_many_leases() {
    run("windlass_carries_many_leases", Lane::Windlass, async |scene, lane| {
        check_leases(scene, lane).await
    });
}

fn run(name: &'static str, lane: Lane, check: impl AsyncFnOnce(&Scene, Lane) -> Result<()>) {
    suite(name, &[lane.asset()], async |scene| {
        timeout(CROWD_WAIT, check(scene, lane)).await.context("it took too long")?
    });
}

async fn start(scene: &Scene, lane: Lane) -> Result<Store> {
    Store::start(scene, &StoreOptions::new(lane, "store").flags(lane.without_sync())).await
}

/// Every watch is created, and one put reaches exactly the one that asked for its key.
async fn check_watches(scene: &Scene, lane: Lane) -> Result<()> {
    let store = start(scene, lane).await?;
    let client = store.client()?;
    let count = bound(WATCHES.0, WATCHES.1);
    let keys = (0..count).map(|number| create(format!("k{number:05}")));
    let requests = futures::stream::iter(keys).chain(futures::stream::pending());
    let mut stream = client.watch().watch(requests).await?.into_inner();
    for expected in 0..i64::try_from(count)? {
        let response = stream.message().await?.context("the stream ended")?;
        ensure!(response.created && response.watch_id == expected, "{response:?}");
    }
    for number in [0, count / 2, count - 1] {
        put(&client, &format!("k{number:05}"), 1).await?;
        let response = stream.message().await?.context("the stream ended")?;
        ensure!(response.watch_id == i64::try_from(number)?, "{response:?}");
        ensure!(response.events.len() == 1, "{response:?}");
    }
    Ok(())
}

/// Watchers that never read must not delay writes, and miss nothing once they do read.
async fn check_slow_watchers(scene: &Scene, lane: Lane) -> Result<()> {
    let store = start(scene, lane).await?;
    let writer = store.client()?;
    let calm = median_put(&writer, UNREAD_PUTS).await?;
    let mut slow = Vec::new();
    for _ in 0..bound(SLOW_WATCHERS.0, SLOW_WATCHERS.1) {
        let requests = futures::stream::iter([create("slow".to_owned())]);
        let requests = requests.chain(futures::stream::pending());
        // Each on a connection of its own: what one stream leaves unread holds up its neighbours.
        let client = Client::narrow_to(store.port())?;
        slow.push(client.watch().watch(requests).await?.into_inner());
    }
    median_put(&writer, FILLING_PUTS).await?;
    let beside = median_put(&writer, UNREAD_PUTS).await?;
    say(&format!("{}: a put took {calm:?}, beside slow watchers {beside:?}", scene.name()));
    let behind = http::metric(store.port(), "etcd_debugging_mvcc_slow_watcher_total").await?;
    ensure!(behind >= slow.len() as f64, "only {behind} of {} watchers are slow", slow.len());
    ensure!(beside <= calm * SLOWER_MAX, "a put took {calm:?}, beside slow watchers {beside:?}");
    for stream in [0, slow.len() / 2, slow.len() - 1] {
        let mut seen = 0;
        while seen < FILLING_PUTS + UNREAD_PUTS {
            seen += slow[stream].message().await?.context("the stream ended")?.events.len();
        }
        ensure!(seen == FILLING_PUTS + UNREAD_PUTS, "{seen} events");
    }
    Ok(())
}

/// Puts one after the other; how long the one in the middle took.
async fn median_put(writer: &Client, count: usize) -> Result<Duration> {
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let started = Instant::now();
        timeout(PUT_WAIT, put(writer, "slow", UNREAD_BYTES))
            .await
            .context("a put was held up")??;
        took.push(started.elapsed());
    }
    took.sort_unstable();
    Ok(took[count / 2])
}

/// Granted, listed, counted again after a restart, and all revoked.
async fn check_leases(scene: &Scene, lane: Lane) -> Result<()> {
    let mut store = start(scene, lane).await?;
    let count = bound(LEASES.0, LEASES.1);
    let client = store.client()?;
    let grants = futures::stream::iter(1..=i64::try_from(count)?).map(|id| {
        let client = client.clone();
        async move { client.lease().lease_grant(pb::LeaseGrantRequest { id, ttl: 6000 }).await }
    });
    let mut grants = grants.buffer_unordered(GRANTS_AT_ONCE);
    while let Some(grant) = grants.next().await {
        grant?;
    }
    ensure!(lease_count(&client).await? == count, "not all leases are listed");
    store.kill()?;
    store.restart().await?;
    ensure!(lease_count(&store.client()?).await? == count, "leases were lost by the restart");
    Ok(())
}

async fn lease_count(client: &Client) -> Result<usize> {
    let response = client.lease().lease_leases(pb::LeaseLeasesRequest {}).await?;
    Ok(response.into_inner().leases.len())
}

fn create(key: String) -> pb::WatchRequest {
    let create = pb::WatchCreateRequest { key: key.into(), ..Default::default() };
    pb::WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) }
}

async fn put(client: &Client, key: &str, bytes: usize) -> Result<()> {
    let value = vec![b'x'; bytes].into();
    let request = pb::PutRequest { key: key.to_owned().into(), value, ..Default::default() };
    client.kv().put(request).await?;
    Ok(())
}
