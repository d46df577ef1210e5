//! The parts of one ring, together: its Leases are watched by every process, so that whoever is elected
//! knows since when each instance has been silent; the rest works while we lead.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kubekit::election;
use kubekit::follow::follow;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::Context;
use super::driver::Driver;
use super::feed::Feed;
use super::feeds::{LeaseFeed, UnassignedFeed};
use super::hand::LEASE_TIMEOUT;
use super::plan::{Watched, Work};
use super::supervisor::View;
use super::upkeep::{Arranged, Upkeep};
use crate::core::key::Kinds;
use crate::core::names::Names;
use crate::core::sharder::Event;
use crate::kubernetes::{Leases, Objects};

/// What watches have brought and the core has not taken in: enough to smooth reading.
const EVENTS_MAX: usize = 256;

pub(super) struct RingTask {
    context: Arc<Context>,
    standing: election::Handle,
    view: watch::Receiver<View>,
}

/// The watches on objects without an owner, which follow what the ring has.
struct ObjectFeeds {
    context: Arc<Context>,
    names: Names,
    arranged: watch::Receiver<Arranged>,
    events: mpsc::Sender<Event>,
}

/// What is watched. Another arrangement may watch the same.
#[derive(Clone, PartialEq)]
struct Scope {
    kinds: Kinds,
    watched: Vec<Watched>,
}

// === impl RingTask ===

impl RingTask {
    pub(super) fn new(
        context: Arc<Context>,
        standing: election::Handle,
        view: watch::Receiver<View>,
    ) -> Self {
        Self { context, standing, view }
    }

    pub(super) async fn run(self, stop: CancellationToken) {
        let Self { context, standing, view } = self;
        let ring = view.borrow().ring.clone();
        let name = ring.name().expect("the supervisor has read the name");
        let names = ring.spec.names(name.clone());
        tracing::info!(ring = %name, "watching the ring");
        let (events_in, events) = mpsc::channel(EVENTS_MAX);
        let (arranged_in, arranged) = watch::channel(None);
        let in_doubt = Arc::new(Notify::new());

        let leases = Leases::new(context.lease_client.clone(), names.clone(), LEASE_TIMEOUT);
        let feed = LeaseFeed::new(name.as_str(), leases.clone(), events_in.clone());
        let lease_feed = follow(Feed::new(context.clone(), feed), stop.clone());
        let upkeep = Upkeep::new(
            context.clone(),
            names.clone(),
            (view.clone(), standing.clone()),
            (arranged_in, in_doubt.clone()),
        );
        let feeds = ObjectFeeds {
            context: context.clone(),
            names: names.clone(),
            arranged: arranged.clone(),
            events: events_in,
        };
        let driver = Driver::new(context.clone(), (names, leases), (view, standing), in_doubt);
        tokio::join!(
            lease_feed,
            upkeep.run(stop.clone()),
            feeds.run(stop.clone()),
            driver.run(events, arranged, stop),
        );
        context.metrics.forget(name.as_str());
    }
}

// === impl ObjectFeeds ===

impl ObjectFeeds {
    async fn run(mut self, stop: CancellationToken) {
        loop {
            let scope = Scope::of(&self.arranged.borrow_and_update());
            let end = stop.child_token();
            let feeds: FuturesUnordered<_> =
                scope.watched.iter().map(|it| follow(self.feed(&scope, it), end.clone())).collect();
            let feeds = feeds.collect::<Vec<()>>();
            let is_over = tokio::select! {
                () = changed(&mut self.arranged, &scope) => false,
                () = stop.cancelled() => true,
                () = run_on(feeds) => true,
            };
            if is_over {
                return;
            }
        }
    }

    fn feed(&self, scope: &Scope, watched: &Watched) -> Feed<UnassignedFeed> {
        let client = self.context.client.clone();
        let objects = Objects::new(client, self.names.clone(), watched.served.clone());
        let unassigned = format!("!{}", self.names.shard_label());
        let selector = match &watched.narrowing {
            Some(narrowing) => format!("{unassigned},{narrowing}"),
            None => unassigned,
        };
        let (ring, kinds) = (self.names.ring().as_str(), scope.kinds.clone());
        let subject = UnassignedFeed::new(ring, (objects, selector), kinds, self.events.clone());
        Feed::new(self.context.clone(), subject)
    }
}

/// Waits until something else is to be watched.
async fn changed(arranged: &mut watch::Receiver<Arranged>, scope: &Scope) {
    loop {
        if arranged.changed().await.is_err() {
            return std::future::pending().await;
        }
        if Scope::of(&arranged.borrow_and_update()) != *scope {
            return;
        }
    }
}

/// Watches end when they are stopped; where there are none, there is nothing to wait for.
async fn run_on(feeds: impl Future<Output = Vec<()>>) {
    feeds.await;
    std::future::pending().await
}

// === impl Scope ===

impl Scope {
    fn of(arranged: &Arranged) -> Self {
        let work = arranged.as_ref().and_then(|arrangement| arrangement.work.as_ref());
        let Some(Work { options, main, controlled, .. }) = work else {
            return Self { kinds: Kinds::default(), watched: Vec::new() };
        };
        let watched = main.iter().chain(controlled).cloned().collect();
        Self { kinds: options.kinds.clone(), watched }
    }
}
