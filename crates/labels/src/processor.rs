//! The processor: works off the queued transactions, node by node, and looks after what was passed
//! over. It reads, lets the core decide, and carries that out; it never decides itself.
//!
//! | module | owns |
//! |---|---|
//! | [`feed`] | the backlog's agreement with the cluster |
//! | [`backlog`] | the queue, shared |
//! | [`worker`] | one node after the other |
//! | [`turn`] | one node, under its lock, until nothing is left to do for it |
//! | [`round`] | one batch of its transactions, under one reading |
//! | [`hand`] | carrying out commands, or saying that one would |
//! | [`resync`] | the regular look at everything |
//! | [`status`], [`census`], [`tell`] | probes, numbers, Events |

mod backlog;
mod census;
mod feed;
mod hand;
mod resync;
mod round;
mod status;
mod tell;
#[cfg(test)]
mod tests;
mod turn;
mod worker;

use std::{convert::Infallible, sync::Arc, time::Duration};

use kubekit::{
    election,
    events::Handle as Events,
    follow::follow,
    lease::{
        WallClock,
        core::{InvalidTimings, Timings},
    },
    lifecycle::Tasks,
    lock::{self, Locks},
};
use prometheus_client::registry::Registry;

use self::{backlog::Backlog, census::Census, feed::Feed, resync::Resyncing, status::Status};
use crate::{
    core::{
        keys::{MANAGED_BY, MANAGER},
        policy::Policy,
    },
    kubernetes::Objects,
    lifecycle::until_end,
    metrics::Metrics,
    options::Options,
    surroundings::Surroundings,
};

/// The Lease whose holder looks after everything.
const RESYNC_LEASE: &str = "resync";

/// Nobody waits for a resync, so its election is a quiet one.
const RESYNC_TIMINGS: Timings = Timings {
    duration: Duration::from_secs(60),
    renew_after: Duration::from_secs(15),
    write_until: Duration::from_secs(40),
    request_timeout: Duration::from_secs(5),
};

/// What its tasks share.
pub(crate) struct Context {
    objects: Objects,
    locks: Locks,
    backlog: Backlog,
    policy: Policy,
    metrics: Metrics,
    events: Events,
    status: Status,
    clock: WallClock,
    is_dry_run: bool,
}

/// A processor that has not begun.
pub(crate) struct Processor {
    context: Arc<Context>,
    workers: usize,
    resync_every: Duration,
    election: (election::Service, election::Handle),
}

// === impl Processor ===

impl Processor {
    pub(crate) fn new(
        options: &Options,
        surroundings: Surroundings,
        registry: &mut Registry,
    ) -> Result<Self, InvalidTimings> {
        let Surroundings { objects, lease_client, metrics, events, health, .. } = surroundings;
        let clock = surroundings.clock;
        let locks = Locks::new(lease_client.clone(), lock_options(options, clock))?;
        let election = election::new(lease_client, election_options(options, clock))?;
        let context = Arc::new(Context {
            objects,
            locks,
            backlog: Backlog::new(&options.identity),
            policy: options.policy.clone(),
            metrics,
            events,
            status: Status::new(&health, surroundings.access_in_doubt),
            clock,
            is_dry_run: options.is_dry_run,
        });
        registry.register_collector(Box::new(Census::new(context.clone())));
        Ok(Self { context, workers: options.workers, resync_every: options.resync, election })
    }

    /// Its tasks, each until shutdown.
    pub(crate) fn spawn_into(self, tasks: &mut Tasks<Infallible>) {
        let Self { context, workers, resync_every, election } = self;
        let shutdown = tasks.shutdown();
        let feed = follow(Feed::new(context.clone()), shutdown.clone());
        tasks.spawn("transactions-watch", until_end(feed));
        for _ in 0..workers {
            let work = worker::run(context.clone(), shutdown.clone());
            tasks.spawn("worker", until_end(work));
        }
        if context.is_dry_run {
            return;
        }
        let (election, standing) = election;
        tasks.spawn("resync-election", until_end(election.run(shutdown.clone())));
        let resync = Resyncing::new(context, standing, resync_every).run(shutdown);
        tasks.spawn("resync", until_end(resync));
    }
}

fn lock_options(options: &Options, clock: WallClock) -> lock::Options {
    lock::Options {
        namespace: options.namespaces.transactions.clone(),
        holder: options.identity.clone(),
        labels: [(MANAGED_BY.to_owned(), MANAGER.to_owned())].into(),
        timings: Timings::LOCK,
        clock,
    }
}

fn election_options(options: &Options, clock: WallClock) -> election::Options {
    election::Options {
        namespace: options.namespaces.checkpoints.clone(),
        lease: RESYNC_LEASE.to_owned(),
        holder: options.identity.clone(),
        labels: [(MANAGED_BY.to_owned(), MANAGER.to_owned())].into(),
        timings: RESYNC_TIMINGS,
        clock,
    }
}
