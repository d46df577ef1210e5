//! Carrying out what the agent wants of the store. Each of these waits for its answer apart from the
//! agent, and comes back as an event.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sandbox::Host;
use tokio::sync::Semaphore;

use super::leftovers;
use crate::core::agent::{Event, Timing, Token};
use crate::core::id::Revision;
use crate::core::keys::Key;
use crate::core::node::Node;
use crate::core::txn::{Compare, LeaseId, Op, Txn};
use crate::metrics::Metrics;
use crate::store::{self, Granted, Store};

/// Transactions on their way at once. More wait here rather than in the connection, where keys that
/// are read for them would grow old.
const SENDS_MAX: usize = 256;
/// A lease that cannot be given up ends by itself, so there is no point in trying for ever.
const REVOKE_TRIES_MAX: usize = 5;
const REVOKE_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Why a registration failed.
#[derive(Debug, thiserror::Error)]
enum RegisterError {
    #[error("no lease was granted")]
    Grant(#[source] store::Error),
    #[error("the lease could not be remembered for the next start")]
    Remember(#[source] sandbox::host::Error),
    #[error("the node's key could not be put")]
    Put(#[source] store::Error),
    #[error("the node's key is there already")]
    Taken,
}

/// Sends what the agent wants sent.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    store: Store,
    metrics: Metrics,
    room: Arc<Semaphore>,
    /// Whether the last answer was a refusal, which is said once.
    is_refused: Arc<AtomicBool>,
    /// Whether the last attempt to register failed, which is said once.
    is_unregistered: Arc<AtomicBool>,
}

// === impl Sender ===

impl Sender {
    pub(super) fn new(store: Store, metrics: Metrics) -> Self {
        let room = Arc::new(Semaphore::new(SENDS_MAX));
        let (is_refused, is_unregistered) = Default::default();
        Self { store, metrics, room, is_refused, is_unregistered }
    }

    /// One transaction, once. The agent sends it again if its outcome is unknown.
    pub(super) async fn send(self, token: Token, txn: Txn) -> Event {
        let _room = self.room.acquire().await.expect("it is never closed");
        match self.store.txn(&txn).await {
            Ok(answer) => {
                self.is_refused.store(false, Ordering::Relaxed);
                self.metrics.on_answered(&txn, &answer);
                Event::Answered { token, answer }
            }
            Err(error) => {
                self.metrics.on_unanswered(&txn);
                self.say(&error);
                Event::Unanswered { token }
            }
        }
    }

    /// A refusal wrote nothing, but that does not tell whether the compares hold: to the agent it is
    /// no answer.
    fn say(&self, error: &store::Error) {
        let is_news = !error.is_unknown() && !self.is_refused.swap(true, Ordering::Relaxed);
        let error = error as &dyn std::error::Error;
        match is_news {
            true => tracing::warn!(error, "the store refuses a transaction"),
            false => tracing::debug!(error, "a transaction has no answer"),
        }
    }

    /// Gets a lease and puts the node's key under it. The lease is on disk before anything depends on
    /// it, so that the next start can give it up.
    pub(super) async fn register(self, node: Box<Node>, timing: Timing, host: Host) -> Event {
        let id = node.id;
        match self.try_register(&node, timing, &host).await {
            Ok((Granted { lease, sent }, revision)) => {
                self.is_unregistered.store(false, Ordering::Relaxed);
                tracing::info!(node = %id, "registered");
                Event::Registered { node: id, lease, revision, sent }
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                match self.is_unregistered.swap(true, Ordering::Relaxed) {
                    false => tracing::warn!(error, "the node is not registered; trying on"),
                    true => tracing::debug!(error, "the node is not registered"),
                }
                Event::NotRegistered { node: id }
            }
        }
    }

    async fn try_register(
        &self,
        node: &Node,
        timing: Timing,
        host: &Host,
    ) -> Result<(Granted, Revision), RegisterError> {
        let granted = self.store.grant(timing.ttl()).await.map_err(RegisterError::Grant)?;
        let remembered = host.remember(leftovers::remembrance(granted.lease)).await;
        remembered.map_err(RegisterError::Remember)?;
        let key = Key::Node(node.id);
        let put = Txn {
            compares: vec![Compare::Absent(key)],
            then: vec![Op::PutLeased(key, node.encode(), granted.lease)],
            otherwise: Vec::new(),
        };
        let answer = self.store.txn(&put).await.map_err(RegisterError::Put)?;
        answer.succeeded.then_some((granted, answer.revision)).ok_or(RegisterError::Taken)
    }

    /// Nobody waits for it.
    pub(super) async fn revoke(self, lease: LeaseId) -> Event {
        for _ in 0..REVOKE_TRIES_MAX {
            match self.store.revoke(lease).await {
                Ok(()) => return Event::Tick,
                Err(error) => tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    lease = lease.0,
                    "a lease is not given up yet"
                ),
            }
            tokio::time::sleep(REVOKE_AGAIN_AFTER).await;
        }
        tracing::warn!(lease = lease.0, "a lease is left to end by itself");
        Event::Tick
    }
}
