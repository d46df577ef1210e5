//! Follows the metadata of the ConfigMaps in one namespace: a list, then a watch from it.

use std::{convert::Infallible, sync::Arc, time::Duration};

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubekit::backoff::Backoff;
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Context,
    status::{SILENCE_MAX, Watch},
};
use crate::{
    core::object::Document,
    kubernetes::{self, Change, Kind, Store, header},
};

/// The first wait after a failure, and the longest.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(30);

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
    /// When the watch began.
    began: Instant,
    backoff: Backoff,
}

/// Why a watch has to be begun anew.
#[derive(Debug, thiserror::Error)]
enum Interruption {
    #[error("the API server ended the watch")]
    Ended,
    #[error("the watch has fallen silent")]
    Silent,
    #[error("the watch failed")]
    Failed(#[from] kubernetes::Error),
    #[error("nobody takes the news any more")]
    Closed,
}

// === impl HeaderFeed ===

impl HeaderFeed {
    pub(super) fn transactions(context: Arc<Context>, news: mpsc::Sender<HeaderNews>) -> Self {
        let store = context.objects.transactions.clone();
        Self::new(context, store, Watch::TransactionNames, news)
    }

    pub(super) fn checkpoints(context: Arc<Context>, news: mpsc::Sender<HeaderNews>) -> Self {
        let store = context.objects.checkpoints.clone();
        Self::new(context, store, Watch::Checkpoints, news)
    }

    fn new(
        context: Arc<Context>,
        store: Store,
        watch: Watch,
        news: mpsc::Sender<HeaderNews>,
    ) -> Self {
        let backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MAX);
        Self { context, store, watch, news, position: None, began: Instant::now(), backoff }
    }

    pub(super) async fn run(mut self, shutdown: CancellationToken) {
        let follow = async {
            loop {
                let Err(interruption) = self.follow().await;
                tokio::time::sleep(self.on_interruption(&interruption)).await;
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            never = follow => never,
        }
    }

    async fn follow(&mut self) -> Result<Infallible, Interruption> {
        let position = match self.position.clone() {
            Some(position) if self.store.reaches(&position).await? => position,
            _ => self.list().await?,
        };
        let mut changes = self.store.watch_headers(&position).await?;
        self.began = Instant::now();
        self.context.status.on_watching(self.watch);
        loop {
            let change = timeout(SILENCE_MAX, changes.next()).await;
            let change = change.map_err(|_elapsed| Interruption::Silent)?;
            self.on_change(change.ok_or(Interruption::Ended)??).await?;
            self.backoff.on_success();
        }
    }

    async fn list(&mut self) -> Result<String, Interruption> {
        let listing = self.store.list_headers().await?;
        self.send(HeaderNews::Listed(listing.items)).await?;
        self.position = Some(listing.rv.clone());
        Ok(listing.rv)
    }

    async fn on_change(&mut self, change: Change<ObjectMeta>) -> Result<(), Interruption> {
        let news = match change {
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

    async fn send(&self, news: HeaderNews) -> Result<(), Interruption> {
        self.news.send(news).await.map_err(|_returned| Interruption::Closed)
    }

    /// How long to wait before the next watch. The server ends every watch after some minutes; only
    /// failures make the service unready.
    fn on_interruption(&mut self, interruption: &Interruption) -> Duration {
        let namespace = self.store.namespace();
        let reason = interruption as &dyn std::error::Error;
        let is_usual = matches!(interruption, Interruption::Ended | Interruption::Silent);
        if is_usual && self.began.elapsed() > BACKOFF_MAX {
            tracing::debug!(namespace, reason, "watching ConfigMaps anew");
            return Duration::ZERO;
        }
        if let Interruption::Failed(error) = interruption {
            self.context.status.on_watch_failed(self.watch, error);
            if error.kind == Kind::Expired {
                self.position = None;
            }
        }
        let wait = self.backoff.on_failure(rand::random());
        tracing::warn!(namespace, reason, ?wait, "watching ConfigMaps anew");
        wait
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
