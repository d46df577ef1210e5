//! Puts while something else goes on that they should not notice, in units of the same puts in calm.

use std::convert::Infallible;

use anyhow::Result;
use etcd_api::etcdserverpb::SnapshotRequest;
use tokio::time::{Duration, sleep};

use super::{
    Bench, Putter,
    fill::{compact, current_revision},
    put::Walk,
    watch::Watchers,
};
use crate::{
    grpc::{Channel, Pool},
    store::{
        answer,
        figures::{Figures, Metric},
        row::Disturbance,
    },
};

const SLOW_WATCHERS: usize = 100;

/// For the load to move on between two compactions.
const COMPACTION_PAUSE: Duration = Duration::from_millis(10);

pub(super) async fn measure(bench: &Bench<'_>, disturbance: Disturbance) -> Result<Figures> {
    let objects = bench.scale.objects;
    bench.put_objects(objects, 1 + bench.scale.history_updates).await?;
    let calm = puts(bench).await?;
    let mut disturbed = tokio::select! {
        load = puts(bench) => load?,
        endless = disturb(bench, disturbance) => match endless? {},
    };
    let ratios = disturbed.ratios(&calm);
    for (of, to) in
        [(Metric::RatePerSecond, Metric::RateOfCalm), (Metric::P99Micros, Metric::P99OfCalm)]
    {
        if let Some(ratio) = ratios.get(of) {
            disturbed.set(to, ratio);
        }
    }
    Ok(disturbed)
}

async fn puts(bench: &Bench<'_>) -> Result<Figures> {
    let pool = bench.pool().await?;
    let walk = Walk::objects(bench.scale.objects);
    bench.load(&pool, |_, channel| Putter::in_order(channel, walk.clone())).await?.figures(1)
}

/// Goes on until it is dropped.
async fn disturb(bench: &Bench<'_>, disturbance: Disturbance) -> Result<Infallible> {
    let pool = Pool::open(bench.server.address(), 1).await?;
    let channel = pool.channel(0);
    match disturbance {
        Disturbance::Compaction => keep_compacting(&channel).await,
        Disturbance::Snapshot => keep_snapshotting(&channel).await,
        Disturbance::SlowWatchers => {
            let _never_read = Watchers::open_slow(bench, SLOW_WATCHERS).await?;
            Ok(std::future::pending().await)
        }
    }
}

async fn keep_compacting(channel: &Channel) -> Result<Infallible> {
    let mut last = 0;
    loop {
        let revision = current_revision(channel).await?;
        if revision > last {
            compact(channel, revision).await?;
            last = revision;
        }
        sleep(COMPACTION_PAUSE).await;
    }
}

async fn keep_snapshotting(channel: &Channel) -> Result<Infallible> {
    loop {
        let path = "/etcdserverpb.Maintenance/Snapshot";
        let mut pieces = channel.server_stream(path, &SnapshotRequest {}).await?;
        while pieces.next::<answer::Snapshot>().await?.is_some() {}
    }
}
