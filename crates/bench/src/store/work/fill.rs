//! Many objects, updated many times: what that takes in memory and on disk, how long a restart and
//! a compaction of it last.

use std::time::Duration;

use anyhow::{Context, Result};
use etcd_api::etcdserverpb::{
    CompactionRequest, CompactionResponse, DefragmentRequest, DefragmentResponse, RangeRequest,
};
use tokio::time::Instant;

use super::{Bench, Putter, list, put::Walk, range};
use crate::{
    grpc::{Channel, Pool},
    process,
    store::{
        figures::{Figures, Metric},
        load,
    },
};

pub(super) async fn measure(bench: &mut Bench<'_>) -> Result<Figures> {
    let mut figures = fill(bench).await?;
    bench.weigh(&mut figures)?;
    let restart = bench.server.restart().await?;
    figures.set(Metric::RestartMillis, millis(restart));
    if let Some(pid) = bench.server.pid() {
        let resident = process::resident_bytes(pid)?;
        figures.set(Metric::ResidentAfterRestartBytes, resident as f64);
    }
    let pool = Pool::open(bench.server.address(), 1).await?;
    tidy(&pool.channel(0), &mut figures).await?;
    if let Some(folder) = bench.server.data_dir() {
        let disk = process::disk_use(&folder)?;
        figures.set(Metric::DiskAfterCompactionBytes, disk.allocated_bytes as f64);
    }
    Ok(figures)
}

async fn fill(bench: &Bench<'_>) -> Result<Figures> {
    let pool = bench.pool().await?;
    let objects = bench.scale.fill_objects;
    let walk = Walk::objects(objects);
    let clients = (0..bench.row.clients)
        .map(|index| Putter::in_order(pool.channel(index), walk.clone()))
        .collect();
    let total = objects * (1 + bench.scale.fill_updates);
    load::counted(clients, total, bench.server.pid()).await?.figures(1)
}

/// Forgets all history and gives its space back.
async fn tidy(channel: &Channel, figures: &mut Figures) -> Result<()> {
    let revision = current_revision(channel).await?;
    let began = Instant::now();
    compact(channel, revision).await?;
    figures.set(Metric::CompactMillis, millis(began.elapsed()));
    let began = Instant::now();
    let path = "/etcdserverpb.Maintenance/Defragment";
    let _answer: DefragmentResponse = channel.unary(path, &DefragmentRequest {}).await?;
    figures.set(Metric::DefragmentMillis, millis(began.elapsed()));
    Ok(())
}

pub(super) async fn current_revision(channel: &Channel) -> Result<i64> {
    let request = RangeRequest { count_only: true, ..list::everything() };
    let header = range(channel, &request).await?.header;
    Ok(header.context("a count has no header")?.revision)
}

/// Forgets history below a revision; done when its space is released.
pub(super) async fn compact(channel: &Channel, revision: i64) -> Result<()> {
    let request = CompactionRequest { revision, physical: true };
    let _answer: CompactionResponse = channel.unary("/etcdserverpb.KV/Compact", &request).await?;
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
