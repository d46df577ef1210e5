//! The tasks and the thread of one node: who owns them, and what their end means. The only place that
//! spawns.

use std::io;
use std::thread::JoinHandle;

use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::store::{ConnectError, Keeper};

/// Why a part of a node ended without being asked to.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    #[error("`{0}` panicked")]
    Panicked(&'static str),
    #[error("`{0}` ended without being asked to")]
    Ended(&'static str),
    #[error("the thread for keep-alives could not be started")]
    Spawn(#[source] io::Error),
    #[error("keep-alives cannot be sent")]
    Keeper(#[source] ConnectError),
}

/// Tasks that each come to one result, all of them taken by their owner. Dropping it ends them.
#[derive(Debug)]
pub(crate) struct Work<T> {
    name: &'static str,
    running: JoinSet<T>,
}

/// The thread that keeps the lease alive. It ends when its orders do.
#[derive(Debug)]
pub(crate) struct KeeperThread {
    ended: oneshot::Receiver<Result<(), PartError>>,
    thread: JoinHandle<()>,
}

// === impl Work ===

impl<T: Send + 'static> Work<T> {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, running: JoinSet::new() }
    }

    pub(crate) fn spawn(&mut self, task: impl Future<Output = T> + Send + 'static) {
        self.running.spawn(task);
    }

    /// On a thread where waiting for a disk is no harm.
    pub(crate) fn spawn_blocking(&mut self, task: impl FnOnce() -> T + Send + 'static) {
        self.running.spawn_blocking(task);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// The next result; waits for ever if there is nothing to wait for. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<T, PartError> {
        match self.running.join_next().await {
            Some(joined) => joined.or(Err(PartError::Panicked(self.name))),
            None => std::future::pending().await,
        }
    }

    /// A result that is there already.
    pub(crate) fn try_next(&mut self) -> Option<Result<T, PartError>> {
        let joined = self.running.try_join_next()?;
        Some(joined.or(Err(PartError::Panicked(self.name))))
    }
}

// === impl KeeperThread ===

impl KeeperThread {
    pub(crate) fn start(keeper: Keeper) -> Result<Self, PartError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(PartError::Spawn)?;
        let (tell, ended) = oneshot::channel();
        let run = move || {
            let outcome = runtime.block_on(keeper.run()).map_err(PartError::Keeper);
            if let Err(Err(error)) = tell.send(outcome) {
                tracing::error!(error = &error as &dyn std::error::Error, "nobody was told");
            }
        };
        let named = std::thread::Builder::new().name("keep-alive".to_owned());
        let thread = named.spawn(run).map_err(PartError::Spawn)?;
        Ok(Self { ended, thread })
    }

    /// Waits for its end, which is always too early while somebody gives it orders. Cancel safe.
    pub(crate) async fn ended(&mut self) -> PartError {
        match (&mut self.ended).await {
            Ok(Ok(())) => PartError::Ended("keep-alive"),
            Ok(Err(error)) => error,
            Err(_dropped) => PartError::Panicked("keep-alive"),
        }
    }

    /// Waits until the thread is gone, once its orders have ended.
    pub(crate) async fn join(self) -> Result<(), PartError> {
        let joined = tokio::task::spawn_blocking(move || self.thread.join()).await;
        match joined {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(PartError::Panicked("keep-alive")),
        }
    }
}
