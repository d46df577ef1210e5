//! Follows the metadata of the ConfigMaps in one namespace: a list, then a watch from it.

use std::sync::Arc;

use futures::stream::BoxStream;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubekit::follow::{End, Retry, Source};
use tokio::sync::mpsc;

use super::{Context, status::Watch};
use crate::{
    core::object::Document,
    kubernetes::{self, Change, Kind, Store, header},
    metrics::Watched,
};

/// What there is to know of ConfigMaps, without their data.
#[derive(Debug)]
pub(super) enum HeaderNews {
    /// Exactly these exist.
    Listed(Vec<Document>),
    Seen(Document),
    Gone(Document),
}

pub(super) struct HeaderFeed {
    context: Arc<Context>,
    store: Store,
    watch: Watch,
    news: mpsc::Sender<HeaderNews>,
    /// Up to where everything was told; without it, a list comes first.
    position: Option<String>,
}

/// Why something was not told.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("ConfigMaps cannot be followed")]
    Unreadable(#[from] kubernetes::Error),
    #[error("nobody takes the news any more")]
    Closed,
}

// === impl HeaderFeed ===

impl HeaderFeed {
    pub(super) fn transactions(context: Arc<Context>, news: mpsc::Sender<HeaderNews>) -> Self {
        let store = context.objects.transactions.clone();
        Self { context, store, watch: Watch::TransactionNames, news, position: None }
    }

    pub(super) fn checkpoints(context: Arc<Context>, news: mpsc::Sender<HeaderNews>) -> Self {
        let store = context.objects.checkpoints.clone();
        Self { context, store, watch: Watch::Checkpoints, news, position: None }
    }

    async fn list(&mut self) -> Result<String, Error> {
        let listing = self.store.list_headers().await?;
        self.send(HeaderNews::Listed(listing.items)).await?;
        self.position = Some(listing.rv.clone());
        Ok(listing.rv)
    }

    async fn send(&self, news: HeaderNews) -> Result<(), Error> {
        self.news.send(news).await.map_err(|_returned| Error::Closed)
    }

    fn watched(&self) -> Watched {
        match self.watch {
            Watch::TransactionNames => Watched::TransactionNames,
            Watch::Checkpoints => Watched::Checkpoints,
        }
    }
}

impl Source for HeaderFeed {
    type Item = Result<Change<ObjectMeta>, kubernetes::Error>;
    type Error = Error;

    fn name(&self) -> &str {
        self.store.namespace()
    }

    async fn begin(&mut self) -> Result<BoxStream<'static, Self::Item>, Error> {
        let position = match self.position.clone() {
            Some(position) if self.store.reaches(&position).await? => position,
            _ => self.list().await?,
        };
        let changes = self.store.watch_headers(&position).await?;
        self.context.status.on_watching(self.watch);
        Ok(changes)
    }

    async fn on_item(&mut self, change: Self::Item) -> Result<(), Error> {
        let news = match change? {
            Change::Added(metadata) | Change::Modified(metadata) => {
                HeaderNews::Seen(header(metadata))
            }
            Change::Deleted(metadata) => HeaderNews::Gone(header(metadata)),
            Change::Bookmark { rv } => {
                self.position = Some(rv);
                return Ok(());
            }
        };
        let position = news.rv();
        self.send(news).await?;
        self.position = position.or_else(|| self.position.take());
        Ok(())
    }

    fn on_end(&mut self, end: End) {
        self.context.metrics.on_watch_end(self.watched(), end);
    }

    fn on_failure(&mut self, error: &Error) -> Retry {
        self.context.metrics.on_watch_restart(self.watched(), error.reason());
        let Error::Unreadable(error) = error else { return Retry::Later };
        self.context.status.on_watch_failed(self.watch, error);
        match self.position.take_if(|_| error.kind == Kind::Expired) {
            Some(_) => Retry::Soon,
            None => Retry::Later,
        }
    }
}

// === impl Error ===

impl Error {
    /// As metrics name it.
    fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(error) if error.kind == Kind::Expired => "expired",
            Self::Unreadable(_) => "failed",
            Self::Closed => "closed",
        }
    }
}

// === impl HeaderNews ===

impl HeaderNews {
    fn rv(&self) -> Option<String> {
        match self {
            Self::Listed(_) => None,
            Self::Seen(document) | Self::Gone(document) => document.rv.clone(),
        }
    }
}
