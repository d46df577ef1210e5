//! A disk that takes its time: writes wait for it, and nothing else does.

mod throttle;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::client::Client;
use e2e::report::say;
use e2e::scene::{Scene, skip, suite};
use e2e::store::{Lane, Store, StoreOptions};
use etcd_api::etcdserverpb as pb;
use futures::StreamExt;
use pb::watch_request::RequestUnion;
use tokio::time::{Instant, timeout};
use tonic::Streaming;

use self::throttle::Throttle;

/// So few that every put waits, and so many that the test ends.
const WRITES_PER_SECOND: u32 = 4;
const PUTS: usize = 8;

/// With that many puts, one after another, a disk that slow takes at least this long.
const PUTS_TIME_MIN: Duration = Duration::from_secs(1);

/// How long a put may take on such a disk.
const PUT_WAIT: Duration = Duration::from_secs(60);

/// What needs no disk is never as slow as the disk, even beside a compiler.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

const LEASE: i64 = 7;

#[test]
fn windlass_answers_beside_a_slow_disk() {
    let name = "windlass_answers_beside_a_slow_disk";
    suite(name, &[Lane::Windlass.asset()], async |scene| {
        let mut store = Store::start(scene, &StoreOptions::new(Lane::Windlass, "store")).await?;
        let folder = store.data_dir().clone();
        let process = store.process()?.id();
        match Throttle::on(process, &folder, WRITES_PER_SECOND)? {
            Ok(throttle) => check(scene, &mut store, throttle).await,
            Err(reason) => {
                skip(name, &reason);
                Ok(())
            }
        }
    });
}

/// Puts one by one. While each waits for the disk, reads, keep-alives and progress go on, and none
/// of them sees it; what was acknowledged survives a kill.
async fn check(scene: &Scene, store: &mut Store, throttle: Throttle) -> Result<()> {
    let client = store.client()?;
    // The grant is a write too, and pays for what the throttle let pass so far.
    client.lease().lease_grant(pb::LeaseGrantRequest { id: LEASE, ttl: 600 }).await?;
    let mut others = Others::begin(&client).await?;
    let began = Instant::now();
    for number in 0..PUTS {
        let put = timeout(PUT_WAIT, put(&client, number));
        tokio::pin!(put);
        loop {
            tokio::select! {
                biased;
                done = &mut put => break done.context("the put was lost")??,
                round = others.round(number) => round?,
            }
        }
        others.expect_event(number).await?;
    }
    let elapsed = began.elapsed();
    ensure!(elapsed >= PUTS_TIME_MIN, "the disk was not slow: {PUTS} puts in {elapsed:?}");
    ensure!(others.rounds >= PUTS, "only {} rounds of answers beside {PUTS} puts", others.rounds);
    say(&format!(
        "{}: {PUTS} puts in {elapsed:?}, {} rounds of answers meanwhile, the slowest in {:?}",
        scene.name(),
        others.rounds,
        others.slowest
    ));
    store.kill()?;
    drop(throttle);
    store.restart().await?;
    let kept = count(&store.client()?).await?;
    ensure!(kept == PUTS, "{PUTS} were acknowledged, {kept} kept");
    Ok(())
}

/// Everything that goes on beside a put.
struct Others {
    client: Client,
    watch: Streaming<pb::WatchResponse>,
    rounds: usize,
    slowest: Duration,
}

// === impl Others ===

impl Others {
    async fn begin(client: &Client) -> Result<Self> {
        let create =
            pb::WatchCreateRequest { key: "k".into(), range_end: "l".into(), ..Default::default() };
        let create = pb::WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) };
        let requests = futures::stream::iter([create]).chain(futures::stream::pending());
        let mut watch = client.watch().watch(requests).await?.into_inner();
        let created = watch.message().await?.context("the stream ended")?;
        ensure!(created.created, "{created:?}");
        Ok(Self { client: client.clone(), watch, rounds: 0, slowest: Duration::ZERO })
    }

    /// One of each, while so many puts are acknowledged and the next one waits. That one may be
    /// kept by the time it is looked for, but only just: its answer is then on its way.
    async fn round(&mut self, acknowledged: usize) -> Result<()> {
        let began = Instant::now();
        let answers = async {
            let seen = count(&self.client).await?;
            ensure!((acknowledged..=acknowledged + 1).contains(&seen), "{seen} keys are seen");
            keep_alive(&self.client).await
        };
        timeout(ANSWER_WAIT, answers).await.context("an answer waited for the disk")??;
        self.slowest = self.slowest.max(began.elapsed());
        self.rounds += 1;
        Ok(())
    }

    /// Events come after the disk, each once and in order.
    async fn expect_event(&mut self, number: usize) -> Result<()> {
        let answer = timeout(ANSWER_WAIT, self.watch.message()).await.context("no event")??;
        let answer = answer.context("the stream ended")?;
        let keys: Vec<_> = answer.events.iter().map(|event| event.kv().key().to_vec()).collect();
        ensure!(keys == [format!("k{number}").into_bytes()], "{answer:?}");
        Ok(())
    }
}

async fn put(client: &Client, number: usize) -> Result<()> {
    let key = format!("k{number}").into();
    client.kv().put(pb::PutRequest { key, ..Default::default() }).await?;
    Ok(())
}

async fn count(client: &Client) -> Result<usize> {
    let request = pb::RangeRequest {
        key: "k".into(),
        range_end: "l".into(),
        count_only: true,
        ..Default::default()
    };
    let count = client.kv().range(request).await?.into_inner().count;
    usize::try_from(count).context("a count is not negative")
}

async fn keep_alive(client: &Client) -> Result<()> {
    let request = pb::LeaseKeepAliveRequest { id: LEASE };
    let requests = futures::stream::iter([request]).chain(futures::stream::pending());
    let mut stream = client.lease().lease_keep_alive(requests).await?.into_inner();
    let answer = stream.message().await?.context("the stream ended")?;
    ensure!(answer.ttl > 0, "the lease is gone");
    Ok(())
}
