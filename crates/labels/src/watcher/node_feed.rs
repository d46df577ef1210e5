//! Follows nodes: every change once, in order, from where the last watch ended, however that was.
//! Where changes are missing, a list of everything stands in for them. Never posts.

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
    reading::{self, listing, position},
    status::SILENCE_MAX,
    tell,
};
use crate::{
    core::{
        rv::{ResourceVersion, RvError},
        watch::{
            index::{EventKind, NodeEvent},
            relist::Listing,
            resume::{self, Begin, Reason},
        },
    },
    kubernetes::{self, Change, Kind, Unreadable, live_node},
};

/// The first wait after a failure, and the longest.
const BACKOFF_FIRST: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// What there is to know of nodes, in order.
#[derive(Debug)]
pub(super) enum NodeNews {
    Event(NodeEvent),
    /// Nothing happened up to here.
    Bookmark(ResourceVersion),
    /// Some events are missing; this is what they led to.
    Relisted {
        listing: Listing,
        reason: Reason,
    },
}

/// Where the next watch begins.
#[derive(Clone, Debug)]
enum Start {
    /// At the position that some watcher kept: the first watch of this process.
    Kept,
    /// Where the last watch ended.
    At(ResourceVersion),
    /// Nowhere: the server no longer has what follows.
    Lost,
}

pub(super) struct NodeFeed {
    context: Arc<Context>,
    news: mpsc::Sender<NodeNews>,
    start: Start,
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
    #[error("nodes cannot be watched")]
    Failed(#[source] kubernetes::Error),
    #[error("nodes cannot be listed")]
    Reading(#[from] reading::Error),
    #[error("an event cannot be used")]
    Event(#[source] Unreadable),
    #[error("a bookmark cannot be used")]
    Bookmark(#[source] RvError),
    #[error("nobody takes the news any more")]
    Closed,
}

// === impl NodeFeed ===

impl NodeFeed {
    pub(super) fn new(context: Arc<Context>, news: mpsc::Sender<NodeNews>) -> Self {
        let backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MAX);
        Self { context, news, start: Start::Kept, began: Instant::now(), backoff }
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
        let from = self.begin().await?;
        let watch = self.context.objects.nodes.watch(from.as_str()).await;
        let mut changes = watch.map_err(Interruption::Failed)?;
        self.began = Instant::now();
        self.context.status.on_heard_of_nodes();
        loop {
            let change = timeout(SILENCE_MAX, changes.next()).await;
            let change = change.map_err(|_elapsed| Interruption::Silent)?;
            let change = change.ok_or(Interruption::Ended)?.map_err(Interruption::Failed)?;
            let (position, news) = read(change)?;
            // Waits while too much is to be posted; meanwhile the server keeps what follows.
            self.send(news).await?;
            self.start = Start::At(position);
            self.context.status.on_heard_of_nodes();
            self.backoff.on_success();
        }
    }

    /// Where to watch from. The server is asked for its position first, each time: a watch from a
    /// position in its future would wait in silence.
    async fn begin(&mut self) -> Result<ResourceVersion, Interruption> {
        let begin = match self.start.clone() {
            Start::Lost => Begin::Relist(Reason::Expired),
            Start::At(at) => resume::begin(Some(at), &self.server().await?),
            Start::Kept => resume::begin(self.kept().await?, &self.server().await?),
        };
        let from = match begin {
            Begin::Watch { from } => from,
            Begin::Relist(reason) => self.relist(reason).await?,
        };
        self.start = Start::At(from.clone());
        Ok(from)
    }

    /// Where the server is. Its answer ends a row of failures to reach it.
    async fn server(&mut self) -> Result<ResourceVersion, Interruption> {
        let position = position(&self.context.objects).await?;
        self.backoff.on_success();
        Ok(position)
    }

    async fn kept(&self) -> Result<Option<ResourceVersion>, Interruption> {
        let kept = self.context.objects.checkpoints.get(resume::NAME).await;
        let Some(document) = kept.map_err(Interruption::Failed)? else { return Ok(None) };
        Ok(resume::decode(&document).unwrap_or_else(|error| {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the kept position is none; listing everything instead");
            None
        }))
    }

    async fn relist(&mut self, reason: Reason) -> Result<ResourceVersion, Interruption> {
        self.context.metrics.on_watch_restart(reason.as_str());
        let listing = listing(&self.context.objects).await?;
        let position = listing.position.clone();
        tracing::info!(reason = reason.as_str(), %position, "listed all nodes");
        self.send(NodeNews::Relisted { listing, reason }).await?;
        Ok(position)
    }

    async fn send(&self, news: NodeNews) -> Result<(), Interruption> {
        self.news.send(news).await.map_err(|_returned| Interruption::Closed)
    }

    /// How long to wait before the next watch. The server ends every watch after some minutes; that
    /// is no failure.
    fn on_interruption(&mut self, interruption: &Interruption) -> Duration {
        self.context.metrics.on_watch_restart(interruption.reason());
        let error = interruption as &dyn std::error::Error;
        if interruption.is_usual() && self.began.elapsed() > BACKOFF_MAX {
            tracing::debug!(error, "watching nodes anew");
            return Duration::ZERO;
        }
        if interruption.is_expired() {
            self.start = Start::Lost;
        }
        self.report(interruption);
        let wait = self.backoff.on_failure(rand::random());
        tracing::warn!(error, ?wait, "watching nodes anew");
        wait
    }

    fn report(&self, interruption: &Interruption) {
        let Context { status, events, objects, .. } = &*self.context;
        match interruption {
            Interruption::Failed(error) | Interruption::Reading(reading::Error::Read(error))
                if error.kind != Kind::Unreadable =>
            {
                status.on_nodes_failed(error);
            }
            Interruption::Ended | Interruption::Silent | Interruption::Closed => {}
            // Posting in an order that we do not understand would be worse than not posting.
            unusable => {
                let note = format!("{unusable}: nothing is posted");
                status.on_nodes_unusable(note.clone());
                tell::unusable(events, objects.checkpoints.namespace(), note);
            }
        }
    }
}

/// The change, and where it leaves us.
fn read(change: Change<ObjectMeta>) -> Result<(ResourceVersion, NodeNews), Interruption> {
    let (kind, metadata) = match change {
        Change::Added(metadata) => (EventKind::Added, metadata),
        Change::Modified(metadata) => (EventKind::Modified, metadata),
        Change::Deleted(metadata) => (EventKind::Deleted, metadata),
        Change::Bookmark { rv } => {
            let position: ResourceVersion = rv.parse().map_err(Interruption::Bookmark)?;
            return Ok((position.clone(), NodeNews::Bookmark(position)));
        }
    };
    let node = live_node(metadata).map_err(Interruption::Event)?;
    Ok((node.rv.clone(), NodeNews::Event(NodeEvent { kind, node })))
}

// === impl Interruption ===

impl Interruption {
    /// What happens to every watch sooner or later.
    fn is_usual(&self) -> bool {
        matches!(self, Self::Ended | Self::Silent)
    }

    fn is_expired(&self) -> bool {
        match self {
            Self::Failed(error) | Self::Reading(reading::Error::Read(error)) => {
                error.kind == Kind::Expired
            }
            _ => false,
        }
    }

    /// As metrics name it.
    fn reason(&self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Silent => "silent",
            Self::Failed(_) | Self::Reading(reading::Error::Read(_)) => "failed",
            Self::Event(_) | Self::Bookmark(_) | Self::Reading(reading::Error::Position(_)) => {
                "unusable"
            }
            Self::Closed => "closed",
        }
    }
}
