//! The tasks of the edge: one that accepts per listener, one per connection, one per HTTP/2
//! stream. Each has an owner that learns of its end, and all of them end when the edge does.

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Error;
use super::connection::{Context, Settings};
use super::dispatch::Dispatch;
use super::listen::{Bound, Stream};

/// How long requests under way may take to end once the edge is asked to stop. Watches would
/// otherwise hold it open for ever.
pub(super) const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Connections served at once, if the system allows as many files. Each costs tens of kilobytes.
const CONNECTIONS_MAX: usize = 65_536;
/// Files kept back from connections, for the journal and the rest of the process.
const RESERVED_FILES: usize = 256;

/// How long to wait when the system has no room for one more connection: it may have some soon,
/// and asking at once again would only burn the processor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A socket and what answers behind it.
pub(super) struct Door {
    pub(super) bound: Bound,
    pub(super) dispatch: Dispatch,
}

/// Tells connections to end: first politely, then at once.
#[derive(Clone)]
pub(super) struct Stop {
    asked: CancellationToken,
    forced: CancellationToken,
}

/// Runs the streams of one HTTP/2 connection.
#[derive(Clone, Default)]
pub(super) struct Streams(TaskTracker);

struct Acceptor {
    door: Door,
    settings: Settings,
    slots: Arc<Semaphore>,
    stop: Stop,
}

/// Serves all doors until `shutdown`, and ends all of them if one ends unexpectedly.
pub(super) async fn run(
    doors: Vec<Door>,
    settings: Settings,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let slots = Arc::new(Semaphore::new(connections_max()));
    let asked = shutdown.child_token();
    let mut acceptors = JoinSet::new();
    let mut addresses = std::collections::HashMap::new();
    for door in doors {
        let address = door.bound.address().to_string();
        let stop = Stop { asked: asked.clone(), forced: CancellationToken::new() };
        let (settings, slots) = (settings.clone(), Arc::clone(&slots));
        let task = acceptors.spawn(Acceptor { door, settings, slots, stop }.run());
        addresses.insert(task.id(), address);
    }
    let mut outcome = Ok(());
    while let Some(ended) = acceptors.join_next().await {
        if let Err(source) = ended {
            asked.cancel();
            let address = addresses.remove(&source.id()).unwrap_or_default();
            outcome = Err(Error::Acceptor { address, source });
        }
    }
    outcome
}

/// As many connections as there are files for them.
fn connections_max() -> usize {
    let files = getrlimit(Resource::Nofile).current;
    let files = files.map_or(CONNECTIONS_MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    files.saturating_sub(RESERVED_FILES).clamp(1, CONNECTIONS_MAX)
}

// === impl Acceptor ===

impl Acceptor {
    async fn run(self) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = self.stop.asked() => break,
                Some(ended) = connections.join_next() => on_connection_ended(ended),
                (stream, slot) = self.next() => {
                    let served = self.context().serve(stream);
                    connections.spawn(async move {
                        let served = served.await;
                        drop(slot);
                        served
                    });
                }
            }
        }
        self.drain(connections).await;
    }

    /// The next connection, once there is a slot for it. Until then it waits in the system's queue.
    async fn next(&self) -> (Stream, OwnedSemaphorePermit) {
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let slot = slot.expect("nobody closes the semaphore");
        loop {
            match self.door.bound.accept().await {
                Ok(stream) => return (stream, slot),
                Err(error) => self.on_accept_failed(&error).await,
            }
        }
    }

    async fn on_accept_failed(&self, error: &io::Error) {
        let address = self.door.bound.address().to_string();
        if is_out_of_room(error) {
            tracing::warn!(address, %error, "no room for one more connection");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        } else {
            tracing::debug!(address, %error, "a connection ended before it was accepted");
        }
    }

    fn context(&self) -> Context {
        Context {
            settings: self.settings.clone(),
            dispatch: self.door.dispatch.clone(),
            handshake: self.door.bound.handshake.clone(),
            stop: self.stop.clone(),
        }
    }

    async fn drain(self, mut connections: JoinSet<Served>) {
        let Self { door, stop, .. } = self;
        // New clients are refused from here on, not left waiting in the system's queue.
        drop(door);
        let mut deadline = std::pin::pin!(tokio::time::sleep(DRAIN_TIMEOUT));
        loop {
            tokio::select! {
                ended = connections.join_next() => match ended {
                    Some(ended) => on_connection_ended(ended),
                    None => return,
                },
                () = &mut deadline, if !stop.forced.is_cancelled() => stop.forced.cancel(),
            }
        }
    }
}

/// Errors of the process or the system; all others are those of the connection to be accepted.
fn is_out_of_room(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM))
}

type Served = Result<(), super::connection::Error>;

/// A connection's failure concerns its client alone; a panic is a fault of ours.
fn on_connection_ended(ended: Result<Served, JoinError>) {
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            let error: &dyn std::error::Error = &error;
            tracing::debug!(error, "connection ended early");
        }
        Err(error) => tracing::error!(%error, "the task of a connection panicked"),
    }
}

// === impl Stop ===

impl Stop {
    /// Ends when the connection should take no new requests.
    pub(super) async fn asked(&self) {
        self.asked.cancelled().await;
    }

    /// Ends when the connection should not wait for its requests either.
    pub(super) async fn forced(&self) {
        self.forced.cancelled().await;
    }
}

// === impl Streams ===

impl Streams {
    /// Waits for every stream's task.
    pub(super) async fn ended(self) {
        self.0.close();
        self.0.wait().await;
    }
}

impl<F> hyper::rt::Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    /// The tracker learns that a task ended, not how: a panic is told of here.
    fn execute(&self, stream: F) {
        self.0.spawn(async move {
            if AssertUnwindSafe(stream).catch_unwind().await.is_err() {
                tracing::error!("the task of a stream panicked");
            }
        });
    }
}
