//! Leases: granting, and keeping alive over a stream.

use anyhow::{Context, Result, ensure};
use etcd_api::etcdserverpb::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
};

use super::{Bench, Client};
use crate::{
    grpc::{Channel, Stream},
    store::{figures::Figures, load},
};

/// Longer than any row takes, so that none expires under it.
const TTL_SECONDS: i64 = 3600;

struct Granter(Channel);

struct Keeper {
    stream: Stream,
    id: i64,
}

pub(super) async fn grant(bench: &Bench<'_>) -> Result<Figures> {
    let pool = bench.pool().await?;
    bench.load(&pool, |_, channel| Granter(channel)).await?.figures(1)
}

pub(super) async fn keep_alive(bench: &Bench<'_>) -> Result<Figures> {
    let pool = bench.pool().await?;
    let mut keepers = Vec::with_capacity(bench.row.clients);
    for index in 0..bench.row.clients {
        let channel = pool.channel(index);
        let id = grant_one(&channel).await?;
        let stream = channel.begin("/etcdserverpb.Lease/LeaseKeepAlive").await?;
        keepers.push(Keeper { stream, id });
    }
    load::timed(keepers, bench.scale.span(), bench.server.pid()).await?.figures(1)
}

pub(super) async fn grant_one(channel: &Channel) -> Result<i64> {
    let request = LeaseGrantRequest { ttl: TTL_SECONDS, id: 0 };
    let answer: LeaseGrantResponse =
        channel.unary("/etcdserverpb.Lease/LeaseGrant", &request).await?;
    Ok(answer.id)
}

// === impl Granter ===

impl Client for Granter {
    async fn operate(&mut self) -> Result<()> {
        grant_one(&self.0).await?;
        Ok(())
    }
}

// === impl Keeper ===

impl Client for Keeper {
    async fn operate(&mut self) -> Result<()> {
        self.stream.send(&LeaseKeepAliveRequest { id: self.id }, false)?;
        let answer: LeaseKeepAliveResponse =
            self.stream.next().await?.context("a keep-alive stream ended")?;
        ensure!(answer.ttl > 0, "a lease was lost");
        Ok(())
    }
}
