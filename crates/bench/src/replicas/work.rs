//! The loads, dealt over all members, and what happens to members.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result};
use bytes::Bytes;
use tokio::time::{Instant, sleep, timeout};

use super::{Loaded, Scale, crew::Crew};
use crate::{
    grpc::{Channel, Pool},
    process, shape,
    store::{
        figures::Metric,
        load::{self, Client, Load},
        work::{self, Putter, put::Walk, watch},
    },
};

const VALUE_BYTES: usize = 256;
const GETTERS: usize = 100;
const WATCHED_WRITERS: usize = 100;
const FILLERS: usize = 1000;
/// To each member.
const CONNECTIONS: usize = 8;
/// An attempt to write while nobody may.
const ATTEMPT_MAX: Duration = Duration::from_millis(500);
const ATTEMPT_PAUSE: Duration = Duration::from_millis(5);

/// Refusals of one load until it is given up: the role may change on a machine that is busy, and what
/// is refused meanwhile is tried again, which its time tells.
const REFUSALS_MAX: u64 = 100_000;
const REFUSED_PAUSE: Duration = Duration::from_millis(50);

/// Connections to all members; clients are dealt over them in turn.
struct Pools {
    pools: Vec<Pool>,
}

struct Getter {
    channel: Channel,
    walk: Walk,
}

pub(super) async fn puts(
    crew: &Crew,
    engine: &[u32],
    scale: &Scale,
    clients: usize,
) -> Result<Loaded> {
    let pools = Pools::open(crew).await?;
    let walk = Walk::short_keys(scale.keys);
    let value = shape::value(VALUE_BYTES);
    let client = |index| Putter::new(pools.channel(index), walk.clone(), value.clone());
    let measured = Measured { crew, engine, scale, weight: 1 };
    measured.load(format!("put-{VALUE_BYTES}B-c{clients}"), clients, client).await
}

/// A client that tries again what was refused.
struct Steady<C> {
    client: C,
    refused: Arc<AtomicU64>,
}

/// Puts every key once.
pub(super) async fn fill(crew: &Crew, scale: &Scale) -> Result<()> {
    let pools = Pools::open(crew).await?;
    let walk = Walk::short_keys(scale.keys);
    let value = shape::value(VALUE_BYTES);
    let refused = Arc::new(AtomicU64::new(0));
    let client = |index| Steady {
        client: Putter::new(pools.channel(index), walk.clone(), value.clone()),
        refused: refused.clone(),
    };
    load::counted((0..FILLERS).map(client).collect(), scale.keys, None).await?;
    Ok(())
}

pub(super) async fn gets(crew: &Crew, engine: &[u32], scale: &Scale) -> Result<Loaded> {
    let pools = Pools::open(crew).await?;
    let walk = Walk::short_keys(scale.keys);
    let client = |index| Getter { channel: pools.channel(index), walk: walk.clone() };
    let measured = Measured { crew, engine, scale, weight: 1 };
    measured.load(format!("get-c{GETTERS}"), GETTERS, client).await
}

/// A put counts once every watcher, of every member, saw it.
pub(super) async fn watches(crew: &Crew, engine: &[u32], scale: &Scale) -> Result<Loaded> {
    let pools = Pools::open(crew).await?;
    let members = crew.addresses();
    let audience = watch::Audience::open(&members, scale.watchers, WATCHED_WRITERS);
    let mut audience = audience.await.context("open the watches")?;
    let writers = audience.writers();
    let client = |index: usize| writers.writer(index, pools.channel(index));
    let measured = Measured { crew, engine, scale, weight: scale.watchers };
    let work = format!("watch-{}-c{WATCHED_WRITERS}", scale.watchers);
    tokio::select! {
        loaded = measured.load(work, WATCHED_WRITERS, client) => loaded,
        ended = audience.end() => Err(ended),
    }
}

/// Kills the member that writes and starts it again: how long nobody could write through the next one,
/// and how long it took to answer again.
pub(super) async fn change(crew: &mut Crew) -> Result<(Duration, Duration)> {
    crew.settle().await?;
    let writer = crew.writer().await?;
    let addresses = crew.addresses();
    let other = addresses[(writer + 1) % addresses.len()];
    crew.kill(writer).await?;
    let began = Instant::now();
    loop {
        let attempt = async {
            let pool = Pool::open(other, 1).await?;
            let request = shape::put(shape::short_key(0), Bytes::from_static(b"after"));
            work::put(&pool.channel(0), &request).await
        };
        if timeout(ATTEMPT_MAX, attempt).await.is_ok_and(|put| put.is_ok()) {
            let failover = began.elapsed();
            return Ok((failover, crew.restart(writer).await?));
        }
        sleep(ATTEMPT_PAUSE).await;
    }
}

pub(super) fn resident_bytes(pids: &[u32]) -> Result<u64> {
    Ok(pids.iter().map(|pid| process::resident_bytes(*pid)).sum::<Result<u64, _>>()?)
}

/// Where a load runs, and whose processor time is read.
struct Measured<'a> {
    crew: &'a Crew,
    engine: &'a [u32],
    scale: &'a Scale,
    /// What one operation counts for.
    weight: usize,
}

// === impl Measured ===

impl Measured<'_> {
    async fn load<C: Client>(
        &self,
        work: String,
        clients: usize,
        client: impl Fn(usize) -> C,
    ) -> Result<Loaded> {
        let refused = Arc::new(AtomicU64::new(0));
        let steady = |index| Steady { client: client(index), refused: refused.clone() };
        let all = || (0..clients).map(&steady).collect();
        load::timed(all(), self.scale.warm_up(), None).await.context("warm up")?;
        refused.store(0, Ordering::Relaxed);
        let members = self.crew.pids();
        let before = (cpu_time(&members)?, cpu_time(self.engine)?);
        let load = load::timed(all(), self.scale.timed(), None).await.context(work.clone())?;
        let after = (cpu_time(&members)?, cpu_time(self.engine)?);
        let loaded = self.loaded(work, &load, after.0 - before.0, after.1 - before.1)?;
        Ok(Loaded { refused: refused.load(Ordering::Relaxed), ..loaded })
    }

    fn loaded(
        &self,
        work: String,
        load: &Load,
        members_cpu: Duration,
        engine_cpu: Duration,
    ) -> Result<Loaded> {
        let figures = load.figures(self.weight)?;
        let of = |metric| figures.get(metric).context("every load has it");
        let count = (load.operations() * self.weight) as f64;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / count;
        Ok(Loaded {
            work,
            rate_per_second: of(Metric::RatePerSecond)?,
            p50_micros: of(Metric::P50Micros)?,
            p99_micros: of(Metric::P99Micros)?,
            refused: 0,
            members_cpu_micros: each(members_cpu),
            engine_cpu_micros: (!self.engine.is_empty()).then(|| each(engine_cpu)),
        })
    }
}

fn cpu_time(pids: &[u32]) -> Result<Duration> {
    Ok(pids.iter().map(|pid| process::cpu_time(*pid)).sum::<Result<Duration, _>>()?)
}

// === impl Pools ===

impl Pools {
    async fn open(crew: &Crew) -> Result<Self> {
        let mut pools = Vec::new();
        for address in crew.addresses() {
            pools.push(Pool::open(address, CONNECTIONS).await?);
        }
        Ok(Self { pools })
    }

    fn channel(&self, index: usize) -> Channel {
        let count = self.pools.len();
        self.pools[index % count].channel(index / count)
    }
}

// === impl Steady ===

impl<C: Client> Client for Steady<C> {
    async fn operate(&mut self) -> Result<()> {
        loop {
            let Err(error) = self.client.operate().await else { return Ok(()) };
            if self.refused.fetch_add(1, Ordering::Relaxed) >= REFUSALS_MAX {
                return Err(error);
            }
            sleep(REFUSED_PAUSE).await;
        }
    }
}

// === impl Getter ===

impl Client for Getter {
    async fn operate(&mut self) -> Result<()> {
        work::range(&self.channel, &shape::get(self.walk.next())).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    struct Failing;

    impl Client for Failing {
        async fn operate(&mut self) -> Result<()> {
            bail!("refused")
        }
    }

    /// Refuses the first times.
    struct Late(u32);

    impl Client for Late {
        async fn operate(&mut self) -> Result<()> {
            self.0 = self.0.saturating_sub(1);
            if self.0 > 0 { bail!("no leader") } else { Ok(()) }
        }
    }

    /// One request that met a change of the role ended the whole run.
    #[tokio::test]
    async fn what_is_refused_is_tried_again_and_told() {
        let refused = Arc::new(AtomicU64::new(0));
        let mut late = Steady { client: Late(4), refused: refused.clone() };
        late.operate().await.unwrap();
        assert_eq!(refused.load(Ordering::Relaxed), 3);
        refused.store(REFUSALS_MAX, Ordering::Relaxed);
        let mut failing = Steady { client: Failing, refused };
        assert_eq!(failing.operate().await.unwrap_err().to_string(), "refused");
    }
}
