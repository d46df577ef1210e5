//! Our marks off all nodes, and with `purge` everything out of the stores. Restored labels stay.

use std::{collections::BTreeMap, time::Duration};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api,
    api::{DeleteParams, ListParams},
};
use serde::Serialize;
use tokio::time::Instant;

use super::{Admin, Error, Mode};
use crate::{
    core::{
        command::NodePatch,
        keys::{MANAGED_BY, MANAGER, MARKER, MARKER_ANNOTATION},
        names::TransactionName,
        object::{Document, LiveNode},
        record::{Stored, Unreadable},
    },
    kubernetes::{self, Guard, Kind, Store, Verb},
};

/// How the Leases begin that watchers hold while they run.
const WATCHER_PREFIX: &str = "watcher-";

/// How often they are looked at: a running watcher renews its own every few seconds.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// No Lease is waited for longer, whatever it says of itself.
const LEASE_DURATION_MAX: Duration = Duration::from_mins(1);

/// Writes under way at once.
const INFLIGHT_MAX: usize = 16;

/// How often a node that others keep changing is tried again.
const ATTEMPTS_MAX: usize = 5;

/// What was, or would be, removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Uninstalled {
    /// Nodes that carried a mark.
    pub nodes: Vec<String>,
    /// Absent without `purge`.
    pub purged: Option<Purged>,
}

/// How many objects of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Purged {
    pub records: usize,
    pub transactions: usize,
    pub checkpoints: usize,
    pub leases: usize,
}

// === impl Admin ===

impl Admin {
    /// Refused while a watcher runs: it would fill the stores again.
    pub async fn uninstall(&self, purge: bool, mode: Mode) -> Result<Uninstalled, Error> {
        self.check_unwatched().await?;
        let nodes = self.objects.nodes.list().await?.items;
        let marked: Vec<LiveNode> =
            nodes.into_iter().filter(|node| node.marker.is_some()).collect();
        let names = marked.iter().map(|node| node.name.clone()).collect();
        if mode == Mode::Write {
            let unmarked = stream::iter(marked.into_iter().map(|node| self.unmark(node)));
            unmarked.buffer_unordered(INFLIGHT_MAX).try_collect::<()>().await?;
        }
        let purged = if purge { Some(self.purge(mode).await?) } else { None };
        Ok(Uninstalled { nodes: names, purged })
    }

    /// A Lease that nobody renews for as long as it lasts is a dead watcher's. Its `renewTime` is of
    /// another machine's clock and proves nothing; that it changes does.
    async fn check_unwatched(&self) -> Result<(), Error> {
        let found = self.watchers().await?;
        let Some(longest) = found.values().map(duration).max() else { return Ok(()) };
        let until = Instant::now() + longest.min(LEASE_DURATION_MAX);
        while Instant::now() < until {
            tokio::time::sleep_until(until.min(Instant::now() + LOOK_EVERY)).await;
            let names = renewed(&found, &self.watchers().await?);
            if !names.is_empty() {
                return Err(Error::Watched { names });
            }
        }
        Ok(())
    }

    async fn watchers(&self) -> Result<BTreeMap<String, Lease>, Error> {
        let named = managed(&self.life_leases).await?.into_iter().filter_map(|mut lease| {
            let name = lease.metadata.name.take()?;
            name.starts_with(WATCHER_PREFIX).then_some((name, lease))
        });
        Ok(named.collect())
    }

    async fn unmark(&self, node: LiveNode) -> Result<(), Error> {
        let name = node.name.clone();
        let mut found = Some(node);
        for _ in 0..ATTEMPTS_MAX {
            let Some(node) = found else { return Ok(()) };
            match self.objects.nodes.patch(&name, &without_marks(&node).body()).await {
                Ok(_) => return Ok(()),
                Err(error) if is_outdated(&error) => {
                    found = self.objects.nodes.get(&name).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Contended { node: name, attempts: ATTEMPTS_MAX })
    }

    async fn purge(&self, mode: Mode) -> Result<Purged, Error> {
        let objects = &self.objects;
        let records = self.records().await?;
        let records: Vec<Document> = records.into_iter().filter(is_record).collect();
        let transactions = of_ours(&objects.transactions, |document| {
            is_managed(&document.labels) || document.name.parse::<TransactionName>().is_ok()
        });
        let checkpoints = of_ours(&objects.checkpoints, |document| is_managed(&document.labels));
        let (transactions, checkpoints) = (transactions.await?, checkpoints.await?);
        let mut purged = Purged {
            records: records.len(),
            transactions: transactions.len(),
            checkpoints: checkpoints.len(),
            leases: 0,
        };
        if mode == Mode::Write {
            delete_all(&objects.transactions, transactions).await?;
            delete_all(&objects.records, records).await?;
            delete_all(&objects.checkpoints, checkpoints).await?;
        }
        for leases in [&self.lock_leases, &self.life_leases] {
            purged.leases += purge_leases(leases, mode).await?;
        }
        Ok(purged)
    }
}

fn without_marks(node: &LiveNode) -> NodePatch {
    NodePatch {
        node: node.name.clone(),
        uid: node.uid.clone(),
        rv: node.rv.clone(),
        labels: [(MARKER.to_owned(), None)].into(),
        annotations: [(MARKER_ANNOTATION.to_owned(), None)].into(),
    }
}

/// Whether what was read is no longer so.
fn is_outdated(error: &kubernetes::Error) -> bool {
    matches!(error.kind, Kind::Conflict | Kind::OtherIncarnation | Kind::NotFound)
}

/// One that cannot be read too; what is somebody else's never.
fn is_record(document: &Document) -> bool {
    !matches!(Stored::read(Some(document)), Stored::Unreadable(Unreadable::Foreign))
}

fn is_managed(labels: &BTreeMap<String, String>) -> bool {
    labels.get(MANAGED_BY).is_some_and(|manager| manager == MANAGER)
}

async fn of_ours(
    store: &Store,
    is_ours: impl Fn(&Document) -> bool,
) -> Result<Vec<Document>, Error> {
    let headers = store.list_headers().await?.items;
    Ok(headers.into_iter().filter(is_ours).collect())
}

async fn delete_all(store: &Store, documents: Vec<Document>) -> Result<(), Error> {
    let deletions = documents.into_iter().map(async |document| {
        let guard = Guard { uid: document.uid, rv: None };
        match store.delete(&document.name, guard).await {
            Err(error) if error.kind != Kind::NotFound => Err(Error::from(error)),
            _ => Ok(()),
        }
    });
    stream::iter(deletions).buffer_unordered(INFLIGHT_MAX).try_collect().await
}

async fn purge_leases(leases: &Api<Lease>, mode: Mode) -> Result<usize, Error> {
    let found = managed(leases).await?;
    let count = found.len();
    if mode == Mode::DryRun {
        return Ok(count);
    }
    for name in found.into_iter().filter_map(|lease| lease.metadata.name) {
        match leases.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(source) => return Err(failed(Verb::Delete)(source)),
            Ok(_) => {}
        }
    }
    Ok(count)
}

/// Those that the services made.
async fn managed(leases: &Api<Lease>) -> Result<Vec<Lease>, Error> {
    let params = ListParams::default().labels(&format!("{MANAGED_BY}={MANAGER}"));
    Ok(leases.list(&params).await.map_err(failed(Verb::List))?.items)
}

fn failed(verb: Verb) -> impl Fn(kube::Error) -> Error {
    move |source| Error::Leases { verb, source: source.into() }
}

/// How long it lasts without being renewed.
fn duration(lease: &Lease) -> Duration {
    let seconds = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
    Duration::from_secs(seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0))
}

/// Those that were written since, or are new.
fn renewed(before: &BTreeMap<String, Lease>, now: &BTreeMap<String, Lease>) -> Vec<String> {
    let version = |lease: &Lease| lease.metadata.resource_version.clone();
    let is_same = |name: &String, lease: &Lease| {
        before.get(name).is_some_and(|before| version(before) == version(lease))
    };
    let renewed = now.iter().filter(|(name, lease)| !is_same(name, lease));
    renewed.map(|(name, _)| name.clone()).collect()
}
