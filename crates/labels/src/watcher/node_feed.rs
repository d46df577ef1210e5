//! Follows nodes: every change once, in order, from where the last watch ended, however that was.
//! Where changes are missing, a list of everything stands in for them. Never posts.

use std::sync::Arc;

use futures::stream::BoxStream;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubekit::follow::{End, Retry, Source};
use tokio::sync::mpsc;

use super::{
    Context,
    reading::{self, listing, position},
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
    metrics::Watched,
};

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
    /// Nowhere: the server no longer has what follows this.
    Lost(ResourceVersion),
}

pub(super) struct NodeFeed {
    context: Arc<Context>,
    news: mpsc::Sender<NodeNews>,
    start: Start,
}

/// Why something was not told.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
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
        Self { context, news, start: Start::Kept }
    }

    /// Where to watch from. The server is asked for its position first, each time: a watch from a
    /// position in its future would wait in silence.
    async fn position(&mut self) -> Result<ResourceVersion, Error> {
        let (last, begin) = match self.start.clone() {
            Start::Lost(last) => (Some(last), Begin::Relist(Reason::Expired)),
            Start::At(at) => self.begin_after(Some(at)).await?,
            Start::Kept => {
                let kept = self.kept().await?;
                self.begin_after(kept).await?
            }
        };
        let from = match begin {
            Begin::Watch { from } => from,
            Begin::Relist(reason) => self.relist(reason, last.as_ref()).await?,
        };
        self.start = Start::At(from.clone());
        Ok(from)
    }

    async fn begin_after(
        &self,
        last: Option<ResourceVersion>,
    ) -> Result<(Option<ResourceVersion>, Begin), Error> {
        let server = position(&self.context.objects).await?;
        let begin = resume::begin(last.clone(), &server);
        Ok((last, begin))
    }

    async fn kept(&self) -> Result<Option<ResourceVersion>, Error> {
        let kept = self.context.objects.checkpoints.get(resume::NAME).await;
        let Some(document) = kept.map_err(Error::Failed)? else { return Ok(None) };
        Ok(resume::decode(&document).unwrap_or_else(|error| {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the kept position is none; listing everything instead");
            None
        }))
    }

    /// Stands in for the events after `last`.
    async fn relist(
        &mut self,
        reason: Reason,
        last: Option<&ResourceVersion>,
    ) -> Result<ResourceVersion, Error> {
        self.context.metrics.on_watch_restart(Watched::Nodes, reason.as_str());
        let listing = listing(&self.context.objects).await?;
        let position = listing.position.clone();
        self.send(NodeNews::Relisted { listing, reason }).await?;
        self.on_listed(reason, last, &position);
        Ok(position)
    }

    /// Events were missed, unless these are the first: an incarnation may have come and gone that
    /// nobody will ever know of.
    fn on_listed(
        &self,
        reason: Reason,
        last: Option<&ResourceVersion>,
        position: &ResourceVersion,
    ) {
        let Some(last) = last else {
            tracing::info!(reason = reason.as_str(), %position, "listed all nodes");
            return;
        };
        let reason_text = reason.as_str();
        tracing::warn!(
            reason = reason_text, %last, %position,
            "events of nodes were missed; only checkpoints tell of who was deleted meanwhile"
        );
        let Context { events, objects, is_dry_run, .. } = &*self.context;
        if !is_dry_run {
            tell::missed(events, objects.checkpoints.namespace(), reason, [last, position]);
        }
    }

    async fn send(&self, news: NodeNews) -> Result<(), Error> {
        self.news.send(news).await.map_err(|_returned| Error::Closed)
    }

    fn report(&self, error: &Error) {
        let Context { status, events, objects, is_dry_run, .. } = &*self.context;
        match error {
            Error::Failed(error) | Error::Reading(reading::Error::Read(error))
                if error.kind != Kind::Unreadable =>
            {
                status.on_nodes_failed(error);
            }
            Error::Closed => {}
            // Posting in an order that we do not understand would be worse than not posting.
            unusable => {
                let note = format!("{unusable}: nothing is posted");
                status.on_nodes_unusable(note.clone());
                if !is_dry_run {
                    tell::unusable(events, objects.checkpoints.namespace(), note);
                }
            }
        }
    }
}

impl Source for NodeFeed {
    type Item = Result<Change<ObjectMeta>, kubernetes::Error>;
    type Error = Error;

    fn name(&self) -> &'static str {
        "nodes"
    }

    async fn begin(&mut self) -> Result<BoxStream<'static, Self::Item>, Error> {
        let from = self.position().await?;
        let changes = self.context.objects.nodes.watch(from.as_str()).await;
        let changes = changes.map_err(Error::Failed)?;
        self.context.status.on_heard_of_nodes();
        Ok(changes)
    }

    async fn on_item(&mut self, change: Self::Item) -> Result<(), Error> {
        let (position, news) = read(change.map_err(Error::Failed)?)?;
        // Waits while too much is to be posted; meanwhile the server keeps what follows.
        self.send(news).await?;
        self.start = Start::At(position);
        self.context.status.on_heard_of_nodes();
        Ok(())
    }

    fn on_end(&mut self, end: End) {
        self.context.metrics.on_watch_end(Watched::Nodes, end);
    }

    fn on_failure(&mut self, error: &Error) -> Retry {
        self.context.metrics.on_watch_restart(Watched::Nodes, error.reason());
        self.report(error);
        match &self.start {
            Start::At(last) if error.is_expired() => {
                self.start = Start::Lost(last.clone());
                Retry::Soon
            }
            _ => Retry::Later,
        }
    }
}

/// The change, and where it leaves us.
fn read(change: Change<ObjectMeta>) -> Result<(ResourceVersion, NodeNews), Error> {
    let (kind, metadata) = match change {
        Change::Added(metadata) => (EventKind::Added, metadata),
        Change::Modified(metadata) => (EventKind::Modified, metadata),
        Change::Deleted(metadata) => (EventKind::Deleted, metadata),
        Change::Bookmark { rv } => {
            let position: ResourceVersion = rv.parse().map_err(Error::Bookmark)?;
            return Ok((position.clone(), NodeNews::Bookmark(position)));
        }
    };
    let node = live_node(metadata).map_err(Error::Event)?;
    Ok((node.rv.clone(), NodeNews::Event(NodeEvent { kind, node })))
}

// === impl Error ===

impl Error {
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
            Self::Failed(_) | Self::Reading(reading::Error::Read(_)) => "failed",
            Self::Event(_) | Self::Bookmark(_) | Self::Reading(reading::Error::Position(_)) => {
                "unusable"
            }
            Self::Closed => "closed",
        }
    }
}
