//! The threads and tasks of one store: who starts them, and what their end means. The only place
//! that spawns, but for the connections of the network edge.

use std::{
    io,
    sync::{Arc, mpsc as std_mpsc},
    thread::{self, JoinHandle},
};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    auto_compaction,
    context::Context,
    expiry,
    housekeeping::{Housekeeping, HousekeepingError},
    http::{Content, Edge, Error as EdgeError},
    replica::{Beats, Replica, ReplicaError, Sizes},
    sequencer::{CommitError, Committer, Writer},
    services::departures,
    watch::HubThread,
};

/// Why a store stopped without being asked.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    #[error("a thread could not be started")]
    Spawn {
        #[source]
        source: io::Error,
    },
    #[error("writes can no longer be made durable")]
    Commit {
        #[source]
        source: CommitError,
    },
    #[error("the journal can no longer be kept in order")]
    Housekeeping {
        #[source]
        source: HousekeepingError,
    },
    #[error("the journal can no longer be shared")]
    Replica {
        #[source]
        source: ReplicaError,
    },
    #[error("watches can no longer be served")]
    Watch {
        #[source]
        source: mvcc::ReadError,
    },
    #[error("clients can no longer be served")]
    Edge {
        #[source]
        source: Box<EdgeError>,
    },
    #[error("the thread `{name}` panicked")]
    Panicked { name: &'static str },
}

/// The threads that make writes durable and visible. Each ends when the one before it in the flow
/// has ended, the writer when it is told to stop.
pub(crate) struct Threads {
    handles: Vec<(&'static str, JoinHandle<()>)>,
    outcomes: std_mpsc::Receiver<StopError>,
    failed: CancellationToken,
}

/// What the threads that write run.
pub(crate) struct Flow {
    pub(crate) writer: Writer,
    pub(crate) committer: Committer,
    pub(crate) housekeeping: Housekeeping,
}

/// What the threads of a member run for as long as it lives.
pub(crate) enum Work {
    /// It alone writes.
    Alone(Box<Flow>),
    /// It follows, and writes while it has the role.
    Shared(Box<(Replica, Beats, Sizes)>),
}

/// Failures that wait to be reported; one per thread is enough.
const OUTCOMES_MAX: usize = 8;

// === impl Threads ===

impl Threads {
    pub(crate) fn start(hub: HubThread, work: Work) -> Result<Self, StopError> {
        let (report, mut threads) = Self::none();
        match work {
            Work::Alone(flow) => threads.spawn_flow(&report, *flow)?,
            Work::Shared(both) => {
                let (replica, beats, sizes) = *both;
                threads.spawn("replica", &report, move || {
                    replica.run().map_err(|source| StopError::Replica { source })
                })?;
                threads.spawn("beats", &report, move || {
                    beats.run();
                    Ok(())
                })?;
                threads.spawn("sizes", &report, move || {
                    sizes.run();
                    Ok(())
                })?;
            }
        }
        threads.spawn("watch-hub", &report, move || {
            hub.run().map_err(|source| StopError::Watch { source })
        })?;
        Ok(threads)
    }

    /// The threads of a member that has taken the role.
    pub(crate) fn write(flow: Flow) -> Result<Self, StopError> {
        let (report, mut threads) = Self::none();
        threads.spawn_flow(&report, flow)?;
        Ok(threads)
    }

    fn none() -> (std_mpsc::SyncSender<StopError>, Self) {
        let (report, outcomes) = std_mpsc::sync_channel(OUTCOMES_MAX);
        (report, Self { handles: Vec::new(), outcomes, failed: CancellationToken::new() })
    }

    fn spawn_flow(
        &mut self,
        report: &std_mpsc::SyncSender<StopError>,
        flow: Flow,
    ) -> Result<(), StopError> {
        let Flow { writer, committer, housekeeping } = flow;
        self.spawn("writer", report, move || {
            writer.run();
            Ok(())
        })?;
        self.spawn("committer", report, move || {
            committer.run().map_err(|source| StopError::Commit { source })
        })?;
        self.spawn("housekeeping", report, move || {
            housekeeping.run().map_err(|source| StopError::Housekeeping { source })
        })
    }

    /// Ends when a thread has failed. A thread's failure is the end of the store: it never goes on
    /// with a part of itself missing.
    pub(crate) fn failed(&self) -> CancellationToken {
        self.failed.clone()
    }

    /// Waits for all threads to end, and tells the first failure.
    pub(crate) fn join(self) -> Result<(), StopError> {
        let mut panicked = None;
        for (name, handle) in self.handles {
            if handle.join().is_err() {
                panicked.get_or_insert(StopError::Panicked { name });
            }
        }
        match self.outcomes.try_recv().ok().or(panicked) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn spawn(
        &mut self,
        name: &'static str,
        report: &std_mpsc::SyncSender<StopError>,
        work: impl FnOnce() -> Result<(), StopError> + Send + 'static,
    ) -> Result<(), StopError> {
        let report = report.clone();
        let failed = self.failed.clone();
        let run = move || {
            // Dropped on a panic too, which is a failure like any other.
            let on_end = OnEnd { failed };
            match work() {
                Ok(()) => on_end.disarm(),
                // The first failures are kept; more than there is room for add nothing.
                Err(error) => drop(report.try_send(error)),
            }
        };
        let handle = thread::Builder::new()
            .name(name.to_owned())
            .spawn(run)
            .map_err(|source| StopError::Spawn { source })?;
        self.handles.push((name, handle));
        Ok(())
    }
}

/// Tells of a thread's failure when it is dropped.
struct OnEnd {
    failed: CancellationToken,
}

// === impl OnEnd ===

impl OnEnd {
    fn disarm(self) {
        std::mem::forget(self);
    }
}

impl Drop for OnEnd {
    fn drop(&mut self) {
        self.failed.cancel();
    }
}

/// Serves clients and does the store's timed work, until `shutdown` or until a thread fails.
pub(crate) async fn serve(
    context: Arc<Context>,
    edge: Edge,
    content: Content,
    shutdown: CancellationToken,
) -> Result<(), StopError> {
    let mut tasks = JoinSet::new();
    tasks.spawn(expiry::run(context.clone(), shutdown.clone()));
    let edge_ended = CancellationToken::new();
    tasks.spawn(departures::run(context.clone(), edge_ended.clone()));
    tasks.spawn(auto_compaction::run(context, shutdown.clone()));
    let served = edge.run(content, shutdown.clone()).await;
    shutdown.cancel();
    edge_ended.cancel();
    while let Some(ended) = tasks.join_next().await {
        if ended.is_err() {
            return Err(StopError::Panicked { name: "timed work" });
        }
    }
    served.map_err(|source| StopError::Edge { source: Box::new(source) })
}
