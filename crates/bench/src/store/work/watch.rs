//! Watch fan-out: a put counts once every watcher saw it, so writers never run ahead of watchers.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use etcd_api::etcdserverpb::{WatchCreateRequest, WatchRequest, watch_request::RequestUnion};
use tokio::{sync::Notify, task::JoinSet};

use super::{Bench, Client};
use crate::{
    grpc::{Channel, NARROW, Pool, Stream},
    shape,
    store::{answer, figures::Figures},
};

/// Watches share streams, as those of one client do.
const STREAMS_MAX: usize = 16;

const VALUE_BYTES: usize = 256;

/// Watches of all objects, spread over streams.
pub(super) struct Watchers {
    streams: Vec<Stream>,
    /// Has to live as long as the streams.
    pool: Pool,
}

struct Writer {
    channel: Channel,
    key: Bytes,
    value: Bytes,
    sightings: Arc<Sightings>,
}

/// Counts how many watchers saw the last put of one writer.
struct Sightings {
    seen: AtomicUsize,
    watchers: usize,
    all_saw: Notify,
}

/// Watches that are being read, of one server or of several.
pub(crate) struct Audience {
    readers: JoinSet<Result<()>>,
    writers: Writers,
    /// Have to live as long as the streams.
    _pools: Vec<Pool>,
}

/// Makes the writers that an audience watches.
#[derive(Clone)]
pub(crate) struct Writers {
    sightings: Vec<Arc<Sightings>>,
    value: Bytes,
}

pub(super) async fn measure(bench: &Bench<'_>, watchers: usize) -> Result<Figures> {
    let clients = bench.row.clients;
    let mut audience = Audience::open(&[bench.server.address()], watchers, clients).await?;
    let writers = audience.writers();
    let pool = bench.pool().await?;
    let load = bench.load(&pool, |index, channel| writers.writer(index, channel));
    tokio::select! {
        load = load => load?.figures(watchers),
        ended = audience.end() => Err(ended),
    }
}

// === impl Audience ===

impl Audience {
    /// Opens watches of all objects, spread over the servers, and reads them.
    pub(crate) async fn open(
        servers: &[SocketAddr],
        watchers: usize,
        writers: usize,
    ) -> Result<Self> {
        let sightings: Vec<_> = (0..writers).map(|_| Arc::new(Sightings::new(watchers))).collect();
        let (mut readers, mut pools) = (JoinSet::new(), Vec::new());
        for (index, server) in servers.iter().enumerate() {
            let own = watchers / servers.len() + usize::from(index < watchers % servers.len());
            let pool = Pool::open(*server, own.clamp(1, STREAMS_MAX)).await?;
            let mut opened = Watchers::ask(pool, own, false).await?;
            opened.await_created(own).await?;
            let (streams, pool) = opened.into_parts();
            pools.push(pool);
            for stream in streams {
                readers.spawn(read(stream, sightings.clone()));
            }
        }
        let value = shape::value(VALUE_BYTES);
        Ok(Self { readers, writers: Writers { sightings, value }, _pools: pools })
    }

    pub(crate) fn writers(&self) -> Writers {
        self.writers.clone()
    }

    /// Why somebody does not watch any more, which nobody should.
    pub(crate) async fn end(&mut self) -> anyhow::Error {
        match self.readers.join_next().await {
            Some(Err(panicked)) => {
                anyhow::Error::new(panicked).context("a reader of watches panicked")
            }
            Some(Ok(Err(error))) => error.context("a watch failed"),
            Some(Ok(Ok(()))) | None => anyhow!("a watch stream ended"),
        }
    }
}

// === impl Writers ===

impl Writers {
    pub(crate) fn writer(&self, index: usize, channel: Channel) -> impl Client + use<> {
        let sightings = Arc::clone(&self.sightings[index]);
        let key = shape::object_key(index as u64);
        Writer { channel, key, value: self.value.clone(), sightings }
    }
}

/// Tells each writer of the events that are its own.
async fn read(mut stream: Stream, sightings: Vec<Arc<Sightings>>) -> Result<()> {
    while let Some(response) = stream.next::<answer::Watch>().await? {
        for event in check(response)?.events {
            let key = event.kv.context("an event has no key")?.key;
            let writer = shape::object_index(&key).context("an event of a strange key")?;
            sightings[usize::try_from(writer)?].on_event();
        }
    }
    Ok(())
}

pub(super) fn check(response: answer::Watch) -> Result<answer::Watch> {
    if response.canceled {
        bail!("the server cancelled a watch");
    }
    Ok(response)
}

// === impl Watchers ===

impl Watchers {
    /// Asks for the watches. Nothing is read yet.
    pub(super) async fn open(bench: &Bench<'_>, watchers: usize, prev_kv: bool) -> Result<Self> {
        let count = watchers.min(STREAMS_MAX);
        Self::ask(Pool::open(bench.server.address(), count).await?, watchers, prev_kv).await
    }

    /// Asks for watches that nobody will read.
    pub(super) async fn open_slow(bench: &Bench<'_>, watchers: usize) -> Result<Self> {
        let count = watchers.min(STREAMS_MAX);
        let pool = Pool::open_with(NARROW, bench.server.address(), count).await?;
        Self::ask(pool, watchers, true).await
    }

    async fn ask(pool: Pool, watchers: usize, prev_kv: bool) -> Result<Self> {
        let count = watchers.min(STREAMS_MAX);
        let mut streams = Vec::with_capacity(count);
        for index in 0..count {
            streams.push(pool.channel(index).begin("/etcdserverpb.Watch/Watch").await?);
        }
        for index in 0..watchers {
            streams[index % count].send(&everything(prev_kv), false)?;
        }
        Ok(Self { streams, pool })
    }

    pub(super) async fn await_created(&mut self, watchers: usize) -> Result<()> {
        let count = self.streams.len();
        for index in 0..watchers {
            let stream = &mut self.streams[index % count];
            let response = stream.next().await?.context("a watch stream ended")?;
            if !check(response)?.created {
                bail!("a watch began without being created");
            }
        }
        Ok(())
    }

    pub(super) fn into_parts(self) -> (Vec<Stream>, Pool) {
        (self.streams, self.pool)
    }
}

fn everything(prev_kv: bool) -> WatchRequest {
    let create = WatchCreateRequest {
        key: Bytes::from_static(shape::OBJECTS),
        range_end: Bytes::from_static(shape::OBJECTS_END),
        prev_kv,
        ..WatchCreateRequest::default()
    };
    WatchRequest { request_union: Some(RequestUnion::CreateRequest(create)) }
}

// === impl Writer ===

impl Client for Writer {
    async fn operate(&mut self) -> Result<()> {
        let request = shape::put(self.key.clone(), self.value.clone());
        super::put(&self.channel, &request).await?;
        self.sightings.all_saw.notified().await;
        Ok(())
    }
}

// === impl Sightings ===

impl Sightings {
    fn new(watchers: usize) -> Self {
        Self { seen: AtomicUsize::new(0), watchers, all_saw: Notify::new() }
    }

    /// The writer waits before it puts again, so the count is of one put alone.
    fn on_event(&self) {
        if self.seen.fetch_add(1, Ordering::AcqRel) + 1 == self.watchers {
            self.seen.store(0, Ordering::Release);
            self.all_saw.notify_one();
        }
    }
}
