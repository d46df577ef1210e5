//! Keeps the backlog equal to the transactions in the cluster: a list, then a watch from it. Never
//! works on them.

use std::sync::Arc;

use futures::stream::BoxStream;
use k8s_openapi::api::core::v1::ConfigMap;
use kubekit::follow::{End, Retry, Source};

use super::Context;
use crate::{
    core::{
        keys::QUARANTINED,
        names::TransactionName,
        object::Uid,
        queue::{Listed, Seen},
    },
    kubernetes::{self, Change, Kind, document},
    metrics::{Store, Watched},
};

pub(super) struct Feed {
    context: Arc<Context>,
    /// Up to where everything is in the backlog; without it, a list comes first.
    position: Option<String>,
}

/// Why the backlog is not what the cluster has.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("transactions cannot be followed")]
    Unreadable(#[from] kubernetes::Error),
    #[error("the backlog had no room for everything")]
    Overflow,
}

// === impl Feed ===

impl Feed {
    pub(super) fn new(context: Arc<Context>) -> Self {
        Self { context, position: None }
    }

    async fn list(&mut self) -> Result<String, Error> {
        let mut listed = Listed::default();
        let take = |object| seen(object).into_iter().for_each(|seen| listed.push(seen));
        let position = self.context.objects.transactions.list_each(take).await?;
        self.context.backlog.on_listed(listed);
        self.report_size();
        self.position = Some(position.clone());
        Ok(position)
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
        self.report_size();
        self.position = position.or_else(|| self.position.take());
    }

    fn report_size(&self) {
        let Context { metrics, backlog, .. } = &*self.context;
        metrics.set_store_bytes(Store::Transactions, backlog.bytes());
    }
}

impl Source for Feed {
    type Item = Result<Change<ConfigMap>, kubernetes::Error>;
    type Error = Error;

    fn name(&self) -> &'static str {
        "transactions"
    }

    async fn begin(&mut self) -> Result<BoxStream<'static, Self::Item>, Error> {
        let position = match self.position.clone() {
            Some(position) if self.context.objects.transactions.reaches(&position).await? => {
                position
            }
            _ => self.list().await?,
        };
        let changes = self.context.objects.transactions.watch(&position).await?;
        self.context.status.on_watching();
        Ok(changes)
    }

    async fn on_item(&mut self, change: Self::Item) -> Result<(), Error> {
        self.on_change(change?);
        if self.context.backlog.needs_listing() {
            return Err(Error::Overflow);
        }
        Ok(())
    }

    fn on_end(&mut self, end: End) {
        self.context.metrics.on_watch_end(Watched::Transactions, end);
    }

    fn on_failure(&mut self, error: &Error) -> Retry {
        self.context.metrics.on_watch_restart(Watched::Transactions, error.reason());
        if let Error::Unreadable(error) = error {
            self.context.status.on_watch_failed(error);
        }
        match self.position.take_if(|_| error.is_mended_by_list()) {
            Some(_) => Retry::Soon,
            None => Retry::Later,
        }
    }
}

// === impl Error ===

impl Error {
    fn is_mended_by_list(&self) -> bool {
        match self {
            Self::Overflow => true,
            Self::Unreadable(error) => error.kind == Kind::Expired,
        }
    }

    /// As metrics name it.
    fn reason(&self) -> &'static str {
        match self {
            Self::Overflow => "overflow",
            Self::Unreadable(error) if error.kind == Kind::Expired => "expired",
            Self::Unreadable(_) => "failed",
        }
    }
}

/// Other ConfigMaps may lie in the namespace, as `kube-root-ca.crt` does in every one.
fn seen(object: ConfigMap) -> Option<Seen> {
    let name = transaction_name(&object)?;
    let created = object.metadata.creation_timestamp.as_ref()?.0;
    let document = document(object);
    let is_quarantined = document.labels.contains_key(QUARANTINED);
    let (uid, bytes) = (document.uid.clone(), document.bytes());
    Some(Seen { name, uid, document: Some(document), created, is_quarantined, bytes })
}

fn transaction_name(object: &ConfigMap) -> Option<TransactionName> {
    object.metadata.name.as_ref()?.parse().ok()
}
