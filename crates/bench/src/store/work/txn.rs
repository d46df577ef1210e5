//! Creates and updates as an API server makes them.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use etcd_api::etcdserverpb::{TxnRequest, TxnResponse};

use super::{Bench, Client};
use crate::{grpc::Channel, shape, store::figures::Figures};

/// Objects each updating client owns, so that no update is in vain.
const OBJECTS_PER_CLIENT: usize = 20;

struct Creator {
    channel: Channel,
    next: Arc<AtomicU64>,
    value: Bytes,
}

struct Updater {
    channel: Channel,
    objects: Owned,
    value: Bytes,
}

/// The objects of one client, and where each was last written.
pub(super) struct Owned {
    first: u64,
    /// 0: not created yet.
    mod_revisions: Vec<i64>,
    turn: usize,
}

pub(super) async fn create(bench: &Bench<'_>) -> Result<Figures> {
    let pool = bench.pool().await?;
    let next = Arc::new(AtomicU64::new(0));
    let value = shape::value(shape::OBJECT_BYTES);
    let creator = |_, channel| Creator { channel, next: next.clone(), value: value.clone() };
    bench.load(&pool, creator).await?.figures(1)
}

pub(super) async fn update(bench: &Bench<'_>) -> Result<Figures> {
    let pool = bench.pool().await?;
    let value = shape::value(shape::OBJECT_BYTES);
    let updater =
        |index, channel| Updater { channel, objects: Owned::of(index, 0), value: value.clone() };
    bench.load(&pool, updater).await?.figures(1)
}

/// Runs a transaction that must succeed; its revision.
pub(super) async fn commit(channel: &Channel, request: &TxnRequest) -> Result<i64> {
    let answer: TxnResponse = channel.unary("/etcdserverpb.KV/Txn", request).await?;
    ensure!(answer.succeeded, "a transaction on an object that nobody else writes failed");
    Ok(answer.header.context("a transaction's answer has no header")?.revision)
}

// === impl Creator ===

impl Client for Creator {
    async fn operate(&mut self) -> Result<()> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let request = shape::create(shape::object_key(index), self.value.clone());
        commit(&self.channel, &request).await?;
        Ok(())
    }
}

// === impl Updater ===

impl Client for Updater {
    async fn operate(&mut self) -> Result<()> {
        self.objects.update(&self.channel, self.value.clone()).await
    }
}

// === impl Owned ===

impl Owned {
    /// The objects of a client, of which those of the first begin at `from`.
    pub(super) fn of(client: usize, from: u64) -> Self {
        let first = from + (client * OBJECTS_PER_CLIENT) as u64;
        Self { first, mod_revisions: vec![0; OBJECTS_PER_CLIENT], turn: 0 }
    }

    /// The key of the object whose turn it is.
    pub(super) fn current(&self) -> Bytes {
        shape::object_key(self.first + self.turn as u64)
    }

    /// Updates the next object, which creates it the first time.
    pub(super) async fn update(&mut self, channel: &Channel, value: Bytes) -> Result<()> {
        self.turn = (self.turn + 1) % self.mod_revisions.len();
        let key = self.current();
        let mod_revision = &mut self.mod_revisions[self.turn];
        *mod_revision = commit(channel, &shape::update(key, value, *mod_revision)).await?;
        Ok(())
    }
}
