//! A mix as an API server with many nodes makes it: mostly updates of objects it holds, some reads,
//! and watchers on everything.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use etcd_api::etcdserverpb::RangeRequest;
use tokio::task::JoinSet;

use super::{
    Bench, Client, lease, list, range, txn,
    watch::{Watchers, check},
};
use crate::{
    grpc::{Channel, Stream},
    shape,
    store::{answer, figures::Figures},
};

/// One watch cache for each kind of object, give or take.
const WATCHERS: usize = 10;

/// What the reading clients take of a list.
const PAGE_OBJECTS: i64 = 100;

/// Behind the objects that were there before.
const UPDATED_FROM: u64 = 500_000_000;

/// Behind those again, a range for each client.
const CREATED_FROM: u64 = 1_000_000_000;
const CREATED_PER_CLIENT: u64 = 1_000_000;

#[derive(Clone, Copy)]
enum Step {
    Update,
    Get,
    Create,
    Delete,
    Page,
    Count,
    Grant,
}

/// Twelve updates, three gets, and one of everything else; a delete follows its create.
const STEPS: [Step; 20] = {
    use Step::{Count, Create, Delete, Get, Grant, Page, Update};
    [
        Update, Update, Get, Update, Create, Update, Update, Page, Update, Get, Update, Delete,
        Update, Update, Get, Update, Count, Update, Grant, Update,
    ]
};

struct Mixer {
    channel: Channel,
    objects: txn::Owned,
    value: Bytes,
    /// Where in [`STEPS`] the client is; each begins elsewhere.
    turn: usize,
    next_created: u64,
    created: Option<(Bytes, i64)>,
}

pub(super) async fn measure(bench: &Bench<'_>) -> Result<Figures> {
    bench.put_objects(bench.scale.objects, 1).await?;
    let mut watchers = Watchers::open(bench, WATCHERS, true).await?;
    watchers.await_created(WATCHERS).await?;
    let (streams, _connections) = watchers.into_parts();
    let mut readers = JoinSet::new();
    for stream in streams {
        readers.spawn(drain(stream));
    }
    let pool = bench.pool().await?;
    let value = shape::value(shape::OBJECT_BYTES);
    let load = bench.load(&pool, |index, channel| Mixer::new(index, channel, value.clone()));
    tokio::select! {
        load = load => load?.figures(1),
        Some(ended) = readers.join_next() => {
            ended.context("a reader of watches panicked")?.context("a watch failed")?;
            bail!("a watch stream ended");
        }
    }
}

async fn drain(mut stream: Stream) -> Result<()> {
    while let Some(response) = stream.next::<answer::Watch>().await? {
        check(response)?;
    }
    Ok(())
}

// === impl Mixer ===

impl Mixer {
    fn new(index: usize, channel: Channel, value: Bytes) -> Self {
        Self {
            channel,
            objects: txn::Owned::of(index, UPDATED_FROM),
            value,
            turn: index,
            next_created: CREATED_FROM + index as u64 * CREATED_PER_CLIENT,
            created: None,
        }
    }

    async fn create(&mut self) -> Result<()> {
        let key = shape::object_key(self.next_created);
        self.next_created += 1;
        let request = shape::create(key.clone(), self.value.clone());
        self.created = Some((key, txn::commit(&self.channel, &request).await?));
        Ok(())
    }

    async fn delete(&mut self) -> Result<()> {
        // A client that began behind its create has nothing to delete yet.
        let Some((key, mod_revision)) = self.created.take() else { return self.create().await };
        txn::commit(&self.channel, &shape::delete(key, mod_revision)).await?;
        Ok(())
    }

    async fn read(&self, request: RangeRequest) -> Result<()> {
        range(&self.channel, &request).await?;
        Ok(())
    }
}

impl Client for Mixer {
    async fn operate(&mut self) -> Result<()> {
        self.turn = (self.turn + 1) % STEPS.len();
        match STEPS[self.turn] {
            Step::Update => self.objects.update(&self.channel, self.value.clone()).await,
            Step::Create => self.create().await,
            Step::Delete => self.delete().await,
            Step::Get => self.read(shape::get(self.objects.current())).await,
            Step::Page => {
                self.read(RangeRequest { limit: PAGE_OBJECTS, ..list::everything() }).await
            }
            Step::Count => self.read(RangeRequest { count_only: true, ..list::everything() }).await,
            Step::Grant => lease::grant_one(&self.channel).await.map(drop),
        }
    }
}
