//! Reads: one object, all objects in three ways, and their number.

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use etcd_api::etcdserverpb::RangeRequest;
use prost::Message;

use super::{Bench, Client, range};
use crate::{
    grpc::Channel,
    shape,
    store::{answer, figures::Figures, row::Listing},
};

/// What an API server asks for at once.
const PAGE_OBJECTS: i64 = 500;

/// Prime, so that the gets of one client are spread over all objects.
const STRIDE: u64 = 7_919;

struct Getter {
    channel: Channel,
    position: u64,
    objects: u64,
}

struct Lister {
    channel: Channel,
    listing: Listing,
    objects: usize,
}

struct Counter {
    channel: Channel,
    objects: u64,
}

pub(super) async fn get(bench: &Bench<'_>) -> Result<Figures> {
    let objects = bench.scale.objects;
    bench.put_objects(objects, 1).await?;
    let pool = bench.pool().await?;
    let getter = |index, channel| Getter { channel, position: index as u64, objects };
    bench.load(&pool, getter).await?.figures(1)
}

pub(super) async fn list(bench: &Bench<'_>, listing: Listing) -> Result<Figures> {
    bench.put_objects(bench.scale.objects, 1).await?;
    let pool = bench.pool().await?;
    let objects = usize::try_from(bench.scale.objects)?;
    let lister = |_, channel| Lister { channel, listing, objects };
    bench.load(&pool, lister).await?.figures(1)
}

pub(super) async fn count(bench: &Bench<'_>) -> Result<Figures> {
    let objects = bench.scale.objects;
    bench.put_objects(objects, 1).await?;
    let pool = bench.pool().await?;
    bench.load(&pool, |_, channel| Counter { channel, objects }).await?.figures(1)
}

pub(super) fn everything() -> RangeRequest {
    shape::list(Bytes::from_static(shape::OBJECTS))
}

// === impl Getter ===

impl Client for Getter {
    async fn operate(&mut self) -> Result<()> {
        self.position = (self.position + STRIDE) % self.objects;
        let found = range(&self.channel, &shape::get(shape::object_key(self.position))).await?;
        ensure!(found.kvs.len() == 1, "an object was not found");
        Ok(())
    }
}

// === impl Lister ===

impl Client for Lister {
    async fn operate(&mut self) -> Result<()> {
        let found = match self.listing {
            Listing::Pages => self.pages().await,
            Listing::Whole => Ok(range(&self.channel, &everything()).await?.kvs.len()),
            Listing::Stream => self.stream().await,
        }?;
        ensure!(found == self.objects, "a list has {found} objects instead of {}", self.objects);
        Ok(())
    }
}

impl Lister {
    /// Page after page, all at the revision of the first.
    async fn pages(&self) -> Result<usize> {
        let mut request = RangeRequest { limit: PAGE_OBJECTS, ..everything() };
        let mut found = 0;
        loop {
            let page = range(&self.channel, &request).await?;
            found += page.kvs.len();
            if !page.more {
                return Ok(found);
            }
            let last = page.kvs.last().context("a page that is not the last is empty")?;
            request.key = following(answer::Key::decode(last.clone())?.key);
            request.revision = page.header.context("a page has no header")?.revision;
        }
    }

    async fn stream(&self) -> Result<usize> {
        let path = "/etcdserverpb.KV/RangeStream";
        let mut chunks = self.channel.server_stream(path, &everything()).await?;
        let mut found = 0;
        while let Some(chunk) = chunks.next::<answer::RangeChunk>().await? {
            found += chunk.range.map_or(0, |range| range.kvs.len());
        }
        Ok(found)
    }
}

// === impl Counter ===

impl Client for Counter {
    async fn operate(&mut self) -> Result<()> {
        let request = RangeRequest { count_only: true, ..everything() };
        let found = range(&self.channel, &request).await?.count;
        ensure!(u64::try_from(found)? == self.objects, "{found} objects were counted");
        Ok(())
    }
}

/// The smallest key behind `key`.
fn following(key: Bytes) -> Bytes {
    [&key[..], b"\0"].concat().into()
}
