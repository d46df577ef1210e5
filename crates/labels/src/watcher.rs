//! The watcher: sees nodes come and go, and posts a transaction for each. It reads, lets the core
//! decide, and carries that out; it never decides itself, and never touches a node or a record.
//!
//! | module | owns |
//! |---|---|
//! | [`node_feed`] | the watch on nodes, from where it ended last |
//! | [`header_feed`] | the watches on transactions and checkpoints |
//! | [`desk`] | the core, and everything under way |
//! | [`posting`] | one transaction, until the server has it |
//! | [`upkeep`] | checkpoints and the position to resume from |
//! | [`reading`] | lists of everything, for relist and sweep |
//! | [`status`], [`tell`] | probes, Events |

mod desk;
mod header_feed;
mod node_feed;
mod posting;
mod reading;
mod status;
mod tell;
#[cfg(test)]
mod tests;
mod upkeep;

use std::{convert::Infallible, sync::Arc, time::Duration};

use jiff::SignedDuration;
use kubekit::{
    events::Handle as Events,
    follow::follow,
    lease::WallClock,
    lifecycle::Tasks,
    presence::{self, InvalidOptions},
};
use tokio::{sync::mpsc, time::Instant};

use self::{
    desk::{Desk, Inbox},
    header_feed::HeaderFeed,
    node_feed::NodeFeed,
    status::Status,
};
use crate::{
    core::{
        keys::{MANAGED_BY, MANAGER},
        watch::engine::Engine,
    },
    kubernetes::Objects,
    lifecycle::until_end,
    metrics::Metrics,
    options::Options,
    surroundings::Surroundings,
};

/// What the names of watchers' Leases begin with.
const PRESENCE_PREFIX: &str = "watcher-";

/// A watcher that is silent for so long is no longer waited for.
const PRESENCE_DURATION: Duration = Duration::from_secs(15);
const PRESENCE_RENEW_EVERY: Duration = Duration::from_secs(5);

/// What was read and not yet taken in. The core keeps what waits to be posted; here is only what
/// smooths reading.
const NEWS_MAX: usize = 256;

/// What its tasks share.
pub(crate) struct Context {
    objects: Objects,
    metrics: Metrics,
    events: Events,
    status: Status,
    clock: WallClock,
    retention: SignedDuration,
    /// Whether to say what would be written, and write nothing.
    is_dry_run: bool,
}

/// A watcher that has not begun.
pub(crate) struct Watcher {
    context: Arc<Context>,
    engine: Engine,
    presence: (presence::Service, presence::Handle),
}

// === impl Watcher ===

impl Watcher {
    pub(crate) fn new(
        options: &Options,
        surroundings: Surroundings,
    ) -> Result<Self, InvalidOptions> {
        let Surroundings { objects, lease_client, metrics, events, health, clock, .. } =
            surroundings;
        let presence = presence::new(lease_client, presence_options(options, clock))?;
        let context = Arc::new(Context {
            objects,
            metrics,
            events,
            status: Status::new(&health, surroundings.access_in_doubt),
            clock,
            retention: options.policy.retention,
            is_dry_run: options.is_dry_run,
        });
        let now = Instant::now().into_std();
        let engine = Engine::new(options.identity.clone(), options.checkpoint_delay, now);
        Ok(Self { context, engine, presence })
    }

    /// Its tasks, each until shutdown.
    pub(crate) fn spawn_into(self, tasks: &mut Tasks<Infallible>) {
        let Self { context, engine, presence: (presence, members) } = self;
        let shutdown = tasks.shutdown();
        let (nodes_in, nodes) = mpsc::channel(NEWS_MAX);
        let (transactions_in, transactions) = mpsc::channel(NEWS_MAX);
        let (checkpoints_in, checkpoints) = mpsc::channel(NEWS_MAX);

        let feed = NodeFeed::new(context.clone(), nodes_in);
        tasks.spawn("nodes-watch", until_end(follow(feed, shutdown.clone())));
        let feed = HeaderFeed::transactions(context.clone(), transactions_in);
        tasks.spawn("transaction-names-watch", until_end(follow(feed, shutdown.clone())));
        let feed = HeaderFeed::checkpoints(context.clone(), checkpoints_in);
        tasks.spawn("checkpoints-watch", until_end(follow(feed, shutdown.clone())));
        if !context.is_dry_run {
            let presence = presence.run(shutdown.clone());
            tasks.spawn("watcher-presence", until_end(presence));
        }
        let inbox = Inbox { nodes, transactions, checkpoints, members };
        let desk = Desk::new(context, engine, inbox).run(shutdown);
        tasks.spawn("watcher", until_end(desk));
    }
}

fn presence_options(options: &Options, clock: WallClock) -> presence::Options {
    presence::Options {
        namespace: options.namespaces.checkpoints.clone(),
        prefix: PRESENCE_PREFIX.to_owned(),
        id: options.identity.clone(),
        labels: [(MANAGED_BY.to_owned(), MANAGER.to_owned())].into(),
        duration: PRESENCE_DURATION,
        renew_every: PRESENCE_RENEW_EVERY,
        clock,
    }
}
