//! A watch over the objects of the ring, while something is measured that only labels show.

use std::{
    collections::BTreeSet,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Result, ensure};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, ResourceExt,
    core::PartialObjectMeta,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{
    ledger::{Ledger, Moved, Rest},
    setting::Setting,
};

/// Nothing has changed for this long: what was to happen has happened.
const QUIET: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Far beyond any Lease and any move.
const SETTLE_MAX: Duration = Duration::from_mins(10);

/// A running watch; dropping it ends it.
pub(super) struct Sight {
    ledger: Arc<Mutex<Ledger>>,
    _watch: JoinSet<()>,
}

/// Which labels are looked at.
struct Labels {
    shard: String,
    drain: String,
}

// === impl Sight ===

impl Sight {
    pub(super) fn open(setting: &Setting) -> Result<Self> {
        let ledger = Arc::new(Mutex::new(Ledger::new(Instant::now())));
        let names = setting.names()?;
        let labels = Labels { shard: names.shard_label(), drain: names.drain_label() };
        let mut watch = JoinSet::new();
        watch.spawn(follow(setting.metadata(), labels, ledger.clone()));
        Ok(Self { ledger, _watch: watch })
    }

    /// Waits until so many objects are these instances' and nothing changes any more; when the last
    /// change was.
    pub(super) async fn wait_settled(&self, count: usize, members: &[String]) -> Result<Instant> {
        let members: BTreeSet<String> = members.iter().cloned().collect();
        let until = Instant::now() + SETTLE_MAX;
        loop {
            let (rest, changed_at) = {
                let ledger = lock(&self.ledger);
                (ledger.rest(count, &members), ledger.changed_at())
            };
            if rest == Rest::Settled && changed_at.elapsed() >= QUIET {
                return Ok(changed_at);
            }
            ensure!(Instant::now() < until, "not settled after {SETTLE_MAX:?}: {rest:?}");
            sleep(LOOK_EVERY).await;
        }
    }

    pub(super) fn moves_since(&self, since: Instant) -> Vec<Moved> {
        lock(&self.ledger).moves_since(since)
    }
}

/// For as long as it is polled. A watch that breaks begins anew, and what is seen twice counts once.
async fn follow(
    secrets: Api<PartialObjectMeta<Secret>>,
    labels: Labels,
    ledger: Arc<Mutex<Ledger>>,
) {
    let mut events = pin!(watcher(secrets, watcher::Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        let now = Instant::now();
        match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => {
                labels.tell(now, &object, &mut lock(&ledger));
            }
            Ok(Event::Delete(object)) => lock(&ledger).on_gone(&object.name_any()),
            Ok(Event::Init | Event::InitDone) | Err(_) => {}
        }
    }
}

// === impl Labels ===

impl Labels {
    fn tell(&self, now: Instant, object: &PartialObjectMeta<Secret>, ledger: &mut Ledger) {
        let shard = object.labels().get(&self.shard).map(String::as_str);
        let is_draining = object.labels().contains_key(&self.drain);
        ledger.on_seen(now, &object.name_any(), shard, is_draining);
    }
}

/// Nothing in here can panic halfway.
fn lock(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}
