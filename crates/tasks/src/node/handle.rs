//! What others can ask of a running node.

use sandbox::Host;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use super::audience::{Standing, TaskUpdate, Updates, UpdatesEnded};
use crate::core::cache::Cache;
use crate::core::fsck::Absences;
use crate::core::id::HostId;
use crate::core::time::Now;
use crate::metrics::Metrics;
use crate::store::Store;

/// Questions that wait for the node. More wait where they are asked.
pub(super) const REQUESTS_MAX: usize = 256;

/// A running node. A cheap clone.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(super) store: Store,
    pub(super) host: Host,
    pub(super) metrics: Metrics,
    pub(super) requests: mpsc::Sender<Request>,
    pub(super) updates: broadcast::WeakSender<TaskUpdate>,
    pub(super) standing: watch::Receiver<Standing>,
}

/// What a node knows now. Seen from within the node, between two of its decisions.
#[derive(Debug)]
pub struct View<'a> {
    /// All tasks and nodes; nothing before [`Standing::is_informed`].
    pub cache: &'a Cache,
    /// How long nodes with tasks are known to be gone, for fsck.
    pub absences: &'a Absences,
    pub now: Now,
}

/// The node has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the node has stopped")]
pub struct Gone;

pub(super) enum Request {
    Look(Box<dyn FnOnce(&View<'_>) + Send>),
    Drain,
}

// === impl Handle ===

impl Handle {
    /// For submitting, canceling and reading.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// For logs: attempts of this host are kept here.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    #[must_use]
    pub fn host_id(&self) -> HostId {
        HostId(self.host.host_id())
    }

    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    #[must_use]
    pub fn standing(&self) -> Standing {
        *self.standing.borrow()
    }

    /// Waits until the node stands as wanted.
    pub async fn until_standing(
        &self,
        is_wanted: impl FnMut(&Standing) -> bool,
    ) -> Result<Standing, Gone> {
        let mut standing = self.standing.clone();
        let seen = standing.wait_for(is_wanted).await;
        seen.map(|standing| *standing).or(Err(Gone))
    }

    /// Looks at what the node knows. `look` runs within the node, which waits for it: it is to be
    /// short.
    pub async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&View<'_>) -> T + Send + 'static,
    ) -> Result<T, Gone> {
        let (answer, answered) = oneshot::channel();
        let look = Box::new(move |view: &View<'_>| {
            // Whoever asked may have gone away meanwhile.
            drop(answer.send(look(view)));
        });
        self.requests.send(Request::Look(look)).await.or(Err(Gone))?;
        answered.await.or(Err(Gone))
    }

    /// News of all tasks from now on. Whoever wants to miss nothing listens first and reads then.
    pub fn updates(&self) -> Result<Updates, UpdatesEnded> {
        let updates = self.updates.upgrade().ok_or(UpdatesEnded::Stopped)?;
        Ok(Updates::new(&updates))
    }

    /// Tells the node to leave: it takes nothing more, and goes when what runs has ended, or after ten
    /// minutes. [`Standing::has_left`] tells when.
    pub async fn drain(&self) -> Result<(), Gone> {
        self.requests.send(Request::Drain).await.or(Err(Gone))
    }
}
