//! Carrying out commands, one after the other, until one fails. Starts no write that the lock does
//! not cover, and keeps what was read in line with what was written.

use kubekit::lock::{self, Lock};
use serde_json::json;

use super::{Context, tell::tell};
use crate::{
    core::{
        command::{Command, Decision, Event, NodePatch, QuarantineReason, Row},
        keys::QUARANTINED,
        names::TransactionName,
        object::{Document, Marker},
        queue::Entry,
        reading::Reading,
        record::Stored,
    },
    kubernetes::{Error, Guard, Kind},
    metrics::Locked,
};

/// What carries out a node's commands.
pub(super) struct Hand<'t> {
    pub(super) context: &'t Context,
    pub(super) node: &'t str,
    pub(super) cover: Cover<'t>,
    pub(super) reading: Reading,
    /// Whether the record was stored since the node was read.
    pub(super) is_node_stale: bool,
}

/// Under what writes are started.
pub(super) enum Cover<'t> {
    /// Nothing is written; it is only said.
    DryRun,
    /// For what concerns no node.
    Nothing,
    Lock(&'t mut Lock),
}

/// Why not all commands were carried out.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("what was read is no longer so")]
    Stale(#[source] Error),
    #[error("what was decided can never be")]
    Impossible(#[source] Error),
    #[error("the API server does not do its part")]
    Unavailable(#[source] Error),
    #[error("the lock is lost")]
    Unlocked(#[source] lock::Error),
    #[error("the lock has run out")]
    LockRanOut,
}

// === impl Hand ===

impl Hand<'_> {
    /// Everything but the deletion of the transaction, whose time is not always come.
    pub(super) async fn carry_out(&mut self, decision: &Decision) -> Result<(), Failure> {
        for command in &decision.commands {
            match command {
                Command::StoreRecord(record) => {
                    self.write_record(record).await?;
                    // A dry run goes on from what it has imagined.
                    self.is_node_stale = !matches!(self.cover, Cover::DryRun);
                }
                Command::MarkRestored(record) => self.write_record(record).await?,
                Command::PatchNode(patch) => self.patch_node(patch, decision).await?,
                Command::DeleteTransaction(_) => {}
                Command::Quarantine { transaction, reason } => {
                    self.quarantine(transaction, *reason).await?;
                }
                Command::Event(event) => self.tell(event),
            }
        }
        Ok(())
    }

    /// Takes a transaction out of the queue for good. Who was faster did the same.
    pub(super) async fn delete(&mut self, entry: &Entry) -> Result<(), Failure> {
        if self.may_write().await? {
            let guard = Guard { uid: entry.uid.clone(), rv: None };
            let name = entry.name.to_string();
            match self.context.objects.transactions.delete(&name, guard).await {
                Ok(()) => {}
                Err(error) if error.kind == Kind::NotFound => {}
                Err(error) => return Err(Failure::of(error)),
            }
        } else {
            tracing::info!(node = self.node, transaction = %entry.name, "would delete");
        }
        self.context.backlog.on_gone(&entry.name, entry.uid.as_ref());
        Ok(())
    }

    /// Labels a transaction so that nobody takes it up again. One that is gone needs no label.
    pub(super) async fn quarantine(
        &mut self,
        name: &TransactionName,
        reason: QuarantineReason,
    ) -> Result<(), Failure> {
        if self.may_write().await? {
            let patch = json!({"metadata": {"labels": {QUARANTINED: reason.as_str()}}});
            match self.context.objects.transactions.patch(&name.to_string(), &patch).await {
                Ok(_) => {}
                Err(error) if error.kind == Kind::NotFound => {}
                Err(error) => return Err(Failure::of(error)),
            }
            tracing::warn!(node = self.node, transaction = %name, %reason, "quarantined");
        } else {
            tracing::info!(node = self.node, transaction = %name, %reason, "would quarantine");
        }
        self.context.backlog.on_quarantined(name);
        Ok(())
    }

    async fn write_record(&mut self, record: &Document) -> Result<(), Failure> {
        let written = if !self.may_write().await? {
            tracing::info!(node = self.node, data = ?record.data, "would write the record");
            record.clone()
        } else if record.rv.is_some() {
            self.context.objects.records.replace(record).await.map_err(Failure::of)?
        } else {
            self.context.objects.records.create(record).await.map_err(Failure::of)?
        };
        self.reading.stored = Stored::read(Some(&written));
        Ok(())
    }

    /// The answer is what was read and our change, because the patch is guarded: the node is seen
    /// to be there, and not to be newer than its record.
    async fn patch_node(&mut self, patch: &NodePatch, decision: &Decision) -> Result<(), Failure> {
        let body = patch.body();
        if self.may_write().await? {
            let patched = self.context.objects.nodes.patch(self.node, &body).await;
            self.reading.live = Some(patched.map_err(Failure::of)?);
            self.on_patched(decision);
        } else {
            tracing::info!(node = self.node, patch = %body, "would patch the node");
            self.pretend(patch);
        }
        self.is_node_stale = false;
        Ok(())
    }

    fn on_patched(&self, decision: &Decision) {
        let is_restore = [Some(decision.row), decision.then].contains(&Some(Row::S6));
        if let Some(live) = self.reading.live.as_ref().filter(|_| is_restore) {
            let age = (self.context.clock)().duration_since(live.created);
            self.context.metrics.on_restored(age.as_secs_f64().max(0.0));
        }
    }

    /// On the node, if one is known.
    pub(super) fn tell(&self, event: &Event) {
        tracing::info!(node = self.node, reason = event.reason.as_str(), note = event.note, "told");
        if !matches!(self.cover, Cover::DryRun) && !self.node.is_empty() {
            tell(&self.context.events, self.node, self.reading.live.as_ref(), event);
        }
    }

    /// Whether to write at all; fails where a write would come too late.
    async fn may_write(&mut self) -> Result<bool, Failure> {
        let lock = match &mut self.cover {
            Cover::DryRun => return Ok(false),
            Cover::Nothing => return Ok(true),
            Cover::Lock(lock) => lock,
        };
        let kept = lock.keep().await.map_err(Failure::Unlocked);
        let kept =
            kept.and_then(|()| if lock.may_write() { Ok(true) } else { Err(Failure::LockRanOut) });
        if kept.is_err() {
            self.context.metrics.on_lock(Locked::Lost);
        }
        kept
    }

    /// What a patch would have made of the node, so that a dry run goes on as the real one would.
    fn pretend(&mut self, patch: &NodePatch) {
        let Some(live) = self.reading.live.as_mut() else { return };
        for (key, value) in &patch.labels {
            live.labels.remove(key);
            live.labels.extend(value.clone().map(|value| (key.clone(), value)));
        }
        let annotations = patch
            .annotations
            .iter()
            .filter_map(|(key, value)| value.clone().map(|value| (key.clone(), value)));
        live.marker = Marker::take(&mut live.labels, &annotations.collect());
    }
}

// === impl Failure ===

impl Failure {
    /// A 404 is an answer here only for what existed when it was read.
    pub(super) fn of(error: Error) -> Self {
        match error.kind {
            Kind::Conflict | Kind::AlreadyExists | Kind::OtherIncarnation | Kind::NotFound => {
                Self::Stale(error)
            }
            Kind::Invalid => Self::Impossible(error),
            Kind::NamespaceMissing
            | Kind::Forbidden
            | Kind::Expired
            | Kind::Unreadable
            | Kind::Unknown => Self::Unavailable(error),
        }
    }
}
