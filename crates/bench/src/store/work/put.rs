//! Plain puts.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use anyhow::Result;
use bytes::Bytes;

use super::{Bench, Client};
use crate::{grpc::Channel, shape, store::figures::Figures};

/// Keys that plain puts are spread over.
const SHORT_KEYS: u64 = 100_000;

/// Prime, so that every walk meets every key before it meets one again.
const STRIDE: u64 = 7_919;

/// Puts one key after the other.
pub(crate) struct Putter {
    channel: Channel,
    walk: Walk,
    value: Bytes,
}

/// The order in which keys are visited; clones share it, so that no two meet.
#[derive(Clone)]
pub(crate) struct Walk {
    position: Arc<AtomicU64>,
    keys: u64,
    stride: u64,
    key: fn(u64) -> Bytes,
}

pub(super) async fn measure(bench: &Bench<'_>, value_bytes: usize) -> Result<Figures> {
    let pool = bench.pool().await?;
    let walk = Walk::short_keys(SHORT_KEYS);
    let value = shape::value(value_bytes);
    let putter = |_, channel| Putter::new(channel, walk.clone(), value.clone());
    bench.load(&pool, putter).await?.figures(1)
}

// === impl Putter ===

impl Putter {
    /// Puts the same value along `walk`.
    pub(crate) fn new(channel: Channel, walk: Walk, value: Bytes) -> Self {
        Self { channel, walk, value }
    }

    /// Puts objects of the usual size along `walk`.
    pub(crate) fn in_order(channel: Channel, walk: Walk) -> Self {
        Self::new(channel, walk, shape::value(shape::OBJECT_BYTES))
    }
}

impl Client for Putter {
    async fn operate(&mut self) -> Result<()> {
        let request = shape::put(self.walk.next(), self.value.clone());
        super::put(&self.channel, &request).await?;
        Ok(())
    }
}

// === impl Walk ===

impl Walk {
    /// Objects in key order, again and again.
    pub(crate) fn objects(count: u64) -> Self {
        Self { position: Arc::default(), keys: count, stride: 1, key: shape::object_key }
    }

    /// Short keys, scattered.
    pub(crate) fn short_keys(keys: u64) -> Self {
        Self { position: Arc::default(), keys, stride: STRIDE, key: shape::short_key }
    }

    pub(crate) fn next(&self) -> Bytes {
        let position = self.position.fetch_add(1, Ordering::Relaxed);
        (self.key)((position * self.stride) % self.keys)
    }
}
