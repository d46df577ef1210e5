//! Keeps the backlog equal to the transactions in the cluster: a list, then a watch from it. Never
//! works on them.

use std::{convert::Infallible, error, sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kubekit::backoff::Backoff;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Context;
use crate::{
    core::{keys::QUARANTINED, names::TransactionName, object::Uid, queue::Seen},
    kubernetes::{self, Change, Kind, document},
};

/// The server sends a bookmark about every minute; a watch that says nothing for so long is dead.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// The first wait after a failure, and the longest.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// What a ConfigMap takes in memory besides its texts, about.
const OVERHEAD_BYTES: usize = 512;

pub(super) struct Feed {
    context: Arc<Context>,
    /// Up to where everything is in the backlog; without it, a list comes first.
    position: Option<String>,
    backoff: Backoff,
}

/// Why a watch has to be begun anew.
#[derive(Debug, thiserror::Error)]
enum Interruption {
    #[error("the API server ended the watch")]
    Ended,
    #[error("the watch has fallen silent")]
    Silent,
    #[error("the backlog had no room for everything")]
    Overflow,
    #[error("transactions cannot be followed")]
    Failed(#[from] kubernetes::Error),
}

// === impl Feed ===

impl Feed {
    pub(super) fn new(context: Arc<Context>) -> Self {
        Self { context, position: None, backoff: Backoff::new(BACKOFF_FIRST, BACKOFF_MAX) }
    }

    pub(super) async fn run(mut self, shutdown: CancellationToken) {
        let follow = async {
            loop {
                let Err(interruption) = self.follow().await;
                self.on_interruption(&interruption).await;
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            never = follow => never,
        }
    }

    async fn follow(&mut self) -> Result<Infallible, Interruption> {
        let position = match self.position.clone() {
            Some(position) if self.context.objects.transactions.reaches(&position).await? => {
                position
            }
            _ => self.list().await?,
        };
        let mut changes = self.context.objects.transactions.watch(&position).await?;
        self.context.status.on_watching();
        loop {
            let change = timeout(SILENCE_MAX, changes.next()).await;
            let change = change.map_err(|_elapsed| Interruption::Silent)?;
            self.on_change(change.ok_or(Interruption::Ended)??);
            self.backoff.on_success();
            if self.context.backlog.needs_listing() {
                return Err(Interruption::Overflow);
            }
        }
    }

    async fn list(&mut self) -> Result<String, Interruption> {
        let listing = self.context.objects.transactions.list().await?;
        self.context.backlog.on_listed(listing.items.into_iter().filter_map(seen).collect());
        self.position = Some(listing.rv.clone());
        Ok(listing.rv)
    }

    fn on_change(&mut self, change: Change<ConfigMap>) {
        let position = match change {
            Change::Bookmark { rv } => Some(rv),
            Change::Added(object) | Change::Modified(object) => {
                let rv = object.metadata.resource_version.clone();
                if let Some(seen) = seen(object) {
                    self.context.backlog.on_seen(seen);
                }
                rv
            }
            Change::Deleted(object) => {
                if let Some(name) = transaction_name(&object) {
                    self.context.backlog.on_gone(&name, object.metadata.uid.map(Uid).as_ref());
                }
                object.metadata.resource_version
            }
        };
        self.position = position.or_else(|| self.position.take());
    }

    /// The server ends every watch after some minutes; only failures make the service unready.
    async fn on_interruption(&mut self, interruption: &Interruption) {
        self.context.metrics.on_watch_restart(interruption.reason());
        match interruption {
            Interruption::Ended | Interruption::Silent => {
                tracing::debug!(%interruption, "watching transactions anew");
            }
            Interruption::Overflow => {
                tracing::warn!(%interruption, "listing transactions anew");
                self.position = None;
            }
            Interruption::Failed(error) => {
                self.context.status.on_watch_failed(error);
                if error.kind == Kind::Expired {
                    self.position = None;
                }
                let wait = self.backoff.on_failure(rand::random());
                tracing::warn!(
                    error = error as &dyn error::Error,
                    ?wait,
                    "watching transactions anew"
                );
                tokio::time::sleep(wait).await;
            }
        }
    }
}

// === impl Interruption ===

impl Interruption {
    /// As metrics name it.
    fn reason(&self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Silent => "silent",
            Self::Overflow => "overflow",
            Self::Failed(error) if error.kind == Kind::Expired => "expired",
            Self::Failed(_) => "failed",
        }
    }
}

/// Other ConfigMaps may lie in the namespace, as `kube-root-ca.crt` does in every one.
fn seen(object: ConfigMap) -> Option<Seen> {
    let name = transaction_name(&object)?;
    let created = object.metadata.creation_timestamp.as_ref()?.0;
    let document = document(object);
    let texts = document.data.iter().chain(&document.annotations).chain(&document.labels);
    let bytes = texts.map(|(key, value)| key.len() + value.len()).sum::<usize>() + OVERHEAD_BYTES;
    let is_quarantined = document.labels.contains_key(QUARANTINED);
    Some(Seen { name, document, created, is_quarantined, bytes })
}

fn transaction_name(object: &ConfigMap) -> Option<TransactionName> {
    object.metadata.name.as_ref()?.parse().ok()
}
