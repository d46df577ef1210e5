//! One node's turn: under its lock, batch after batch, until nothing is left to do for it.

use std::{error, time::Duration};

use kubekit::{
    backoff::Backoff,
    lock::{Attempt, Lock},
};

use super::{
    Context,
    hand::{Cover, Failure},
    round::{Round, read},
    tell::tell,
};
use crate::{
    core::{
        command::{Event, EventReason},
        names::NodeHash,
        queue::{Batch, TurnEnd},
        settle::Cause,
    },
    kubernetes::Error,
    metrics::Locked,
};

/// How often what was read may turn out to be old before the node has to wait for another turn.
const CONFLICTS_MAX: u32 = 5;

/// The waits between such attempts.
const CONFLICT_WAIT_FIRST: Duration = Duration::from_millis(20);
const CONFLICT_WAIT_MAX: Duration = Duration::from_millis(200);

/// No turn takes longer; one that does is given up as if the process had died, which every step is
/// made for.
const TURN_MAX: Duration = Duration::from_mins(2);

/// A worker with a node.
pub(super) struct Turn<'c> {
    context: &'c Context,
    hash: NodeHash,
    conflicts: Backoff,
}

// === impl Turn ===

impl<'c> Turn<'c> {
    pub(super) fn new(context: &'c Context, hash: NodeHash) -> Self {
        let conflicts = Backoff::new(CONFLICT_WAIT_FIRST, CONFLICT_WAIT_MAX);
        Self { context, hash, conflicts }
    }

    pub(super) async fn run(mut self) -> TurnEnd {
        match tokio::time::timeout(TURN_MAX, self.take()).await {
            Ok(end) => end,
            Err(_elapsed) => {
                tracing::error!(node = %self.hash, "a turn took too long and was given up");
                TurnEnd::Failed
            }
        }
    }

    async fn take(&mut self) -> TurnEnd {
        let batch = self.context.backlog.batch(&self.hash);
        match self.name(&batch).await {
            Ok(Some(node)) if self.context.is_dry_run => self.work_off(&node, None).await,
            Ok(Some(node)) => self.lock(&node).await,
            Ok(None) => self.set_apart(&batch).await,
            Err(error) => self.on_unavailable(None, &error),
        }
    }

    /// The node's name, which only the content of a transaction tells.
    async fn name(&self, batch: &Batch) -> Result<Option<String>, Error> {
        if let Some(wish) = &batch.wish {
            return Ok(Some(wish.node.clone()));
        }
        for entry in &batch.entries {
            if let Some(Ok(transaction)) = read(self.context, entry).await? {
                return Ok(Some(transaction.node));
            }
        }
        Ok(None)
    }

    /// Transactions of which none names its node concern no node, so no lock either.
    async fn set_apart(&self, batch: &Batch) -> TurnEnd {
        let cover = if self.context.is_dry_run { Cover::DryRun } else { Cover::Nothing };
        let mut round = Round::unnamed(self.context, cover);
        match round.set_apart(batch).await {
            Ok(()) => TurnEnd::Done,
            Err(failure) => self.on_failure(None, failure),
        }
    }

    async fn lock(&mut self, node: &str) -> TurnEnd {
        match self.context.locks.acquire(node).await {
            Ok(Attempt::Held(lock)) => self.work_off_locked(node, lock).await,
            Ok(Attempt::Refused(refusal)) => {
                self.context.metrics.on_lock(Locked::Refused);
                tracing::debug!(node, holder = ?refusal.holder, "locked by another");
                if let Some(holder) = &refusal.holder {
                    self.context.backlog.on_met(holder);
                }
                TurnEnd::Refused
            }
            Err(error) => {
                self.context.metrics.on_lock(Locked::Failed);
                tracing::warn!(node, error = &error as &dyn error::Error, "cannot lock the node");
                TurnEnd::Failed
            }
        }
    }

    async fn work_off_locked(&mut self, node: &str, mut lock: Lock) -> TurnEnd {
        self.context.metrics.on_lock(Locked::Acquired);
        let end = self.work_off(node, Some(&mut lock)).await;
        if let Err(error) = lock.release().await {
            // It lapses, but its Lease stays. A later turn finds it lapsed and gives it back, even
            // if nothing else is left to do.
            tracing::debug!(node, error = &error as &dyn error::Error, "cannot unlock");
            self.context.backlog.on_wish(node, Cause::Queue);
        }
        end
    }

    async fn work_off(&mut self, node: &str, mut lock: Option<&mut Lock>) -> TurnEnd {
        loop {
            // The batch before the reading: only then is that as new as the batch's events.
            let batch = self.context.backlog.batch(&self.hash);
            if batch.is_empty() {
                return TurnEnd::Done;
            }
            let cover = lock.as_deref_mut().map_or(Cover::DryRun, Cover::Lock);
            match self.work_off_batch(node, &batch, cover).await {
                Ok(()) => self.context.status.on_worked(),
                Err(Failure::Stale(error)) if self.conflicts.failures() < CONFLICTS_MAX => {
                    tracing::debug!(node, error = &error as &dyn error::Error, "deciding anew");
                    self.context.metrics.on_conflict();
                    let wait = self.conflicts.on_failure(rand::random());
                    tokio::time::sleep(wait).await;
                }
                Err(failure) => return self.on_failure(Some(node), failure),
            }
        }
    }

    async fn work_off_batch(
        &self,
        node: &str,
        batch: &Batch,
        cover: Cover<'_>,
    ) -> Result<(), Failure> {
        let mut round = Round::begin(self.context, node, cover).await?;
        round.work_off(batch).await?;
        if batch.wish.is_some() {
            self.context.backlog.on_settled(&self.hash);
        }
        Ok(())
    }

    fn on_failure(&self, node: Option<&str>, failure: Failure) -> TurnEnd {
        match failure {
            Failure::Stale(error) => self.on_contended(node, &error),
            Failure::Impossible(error) | Failure::Unavailable(error) => {
                self.on_unavailable(node, &error)
            }
            Failure::Unlocked(_) | Failure::LockRanOut => {
                let error = &failure as &dyn error::Error;
                tracing::warn!(node, error, "stopped in the middle of a node");
                TurnEnd::Refused
            }
        }
    }

    /// Someone changes the node or its record again and again; others have their turn meanwhile.
    fn on_contended(&self, node: Option<&str>, error: &Error) -> TurnEnd {
        self.context.metrics.on_conflict();
        tracing::warn!(node, error = error as &dyn error::Error, "changed too often, later again");
        if let Some(node) = node {
            let note = format!("changed {CONFLICTS_MAX} times while its labels were worked on");
            let event = Event::new(EventReason::RestoreConflict, note);
            tell(&self.context.events, node, None, &event);
        }
        TurnEnd::Refused
    }

    fn on_unavailable(&self, node: Option<&str>, error: &Error) -> TurnEnd {
        self.context.status.on_failed(error);
        tracing::warn!(node, error = error as &dyn error::Error, "cannot go on with a node");
        TurnEnd::Failed
    }
}
