//! The regular look at everything, by one processor at a time: queues the nodes that an accident
//! passed over, and removes what nobody needs any more.

use std::{error, sync::Arc, time::Duration};

use kubekit::election;
use tokio::time::{Instant, interval};
use tokio_util::sync::CancellationToken;

use super::Context;
use crate::{
    core::{
        object::Document,
        resync::{Abandoned, Plan, Resync, World},
        settle::Cause,
    },
    kubernetes::{Error, Guard, Kind},
    metrics::Store,
};

pub(super) struct Resyncing {
    context: Arc<Context>,
    standing: election::Handle,
    every: Duration,
    resync: Resync,
    abandoned: Abandoned,
}

// === impl Resyncing ===

impl Resyncing {
    pub(super) fn new(context: Arc<Context>, standing: election::Handle, every: Duration) -> Self {
        let (resync, abandoned) = (Resync::default(), Abandoned::default());
        Self { context, standing, every, resync, abandoned }
    }

    pub(super) async fn run(mut self, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.stand_by() => {}
        }
    }

    /// One term after the other. What was remembered in an earlier term says nothing about now.
    async fn stand_by(&mut self) {
        while let Some(term) = self.standing.elected().await {
            (self.resync, self.abandoned) = (Resync::default(), Abandoned::default());
            let mut standing = self.standing.clone();
            tokio::select! {
                () = standing.lost(term) => {}
                () = self.serve() => {}
            }
            self.context.metrics.forget_resync();
        }
        // The election ends only when all is asked to end.
        std::future::pending().await
    }

    async fn serve(&mut self) {
        let mut passes = interval(self.every);
        passes.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            passes.tick().await;
            match self.pass().await {
                Ok(()) => self.context.status.on_worked(),
                Err(error) => {
                    self.context.status.on_failed(&error);
                    tracing::warn!(error = &error as &dyn error::Error, "resync was cut short");
                }
            }
        }
    }

    /// A reading that failed ends the pass before anything is concluded from it.
    async fn pass(&mut self) -> Result<(), Error> {
        let context = self.context.clone();
        let objects = &context.objects;
        let records = objects.records.list_headers().await?;
        let bytes = records.items.iter().map(Document::bytes).sum();
        context.metrics.set_store_bytes(Store::Records, bytes);
        let nodes = objects.nodes.list().await?;
        let plan = self.resync.pass(&World {
            nodes: &nodes.items,
            records: &records.items,
            queued: &|hash| context.backlog.has_transactions(hash),
            retention: context.policy.retention,
            now: (context.clock)(),
        });
        self.on_plan(&plan).await?;
        let locks = objects.locks.list_headers().await?;
        let abandoned = self.abandoned.pass(&locks.items, Instant::now().into_std());
        for lock in abandoned {
            tracing::info!(lock = lock.name, "removing an abandoned lock");
            removed(objects.locks.delete(&lock.name, Guard::of(&lock)).await)?;
        }
        Ok(())
    }

    async fn on_plan(&self, plan: &Plan) -> Result<(), Error> {
        let Plan { settle, collect, known, restored } = plan;
        tracing::info!(known, restored, settle = settle.len(), collect = collect.len(), "resync");
        if let Some(ratio) = ratio(*restored, *known) {
            self.context.metrics.set_nodes_restored_ratio(ratio);
        }
        settle.iter().for_each(|node| self.context.backlog.on_wish(node, Cause::Resync));
        for record in collect {
            tracing::info!(node = record.name, "removing a record past its retention");
            let records = &self.context.objects.records;
            removed(records.delete(&record.name, Guard::of(record)).await)?;
        }
        Ok(())
    }
}

/// What has changed or gone meanwhile is no longer what was to be removed.
fn removed(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(error) if !matches!(error.kind, Kind::Conflict | Kind::NotFound) => Err(error),
        _ => Ok(()),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of nodes are far below 2^52")]
fn ratio(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
