//! The threads and tasks of one store: who starts them, and what their end means. The only place
//! that spawns, but for the connections of the network edge.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    io, iter,
    pin::pin,
    sync::{Arc, mpsc as std_mpsc},
    thread::{self, JoinHandle},
};

use tokio::task::{self, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::{
    Error, auto_compaction,
    context::Context,
    expiry,
    housekeeping::{Housekeeping, HousekeepingError},
    http::{Content, Edge, Error as EdgeError},
    replica::{Beats, Hearing, Replica, ReplicaError, Sizes},
    sequencer::{Command, CommitError, Committer, Writer},
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
    #[error("the task `{name}` failed")]
    Task {
        name: &'static str,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    #[error("the task `{name}` ended without being asked")]
    Ended { name: &'static str },
    #[error("`{name}` panicked")]
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
            let writer = committer.commands.clone();
            let ended = committer.run().map_err(|source| StopError::Commit { source });
            // What was gathered meanwhile is never answered otherwise: the writer waits for a command.
            // A full queue means that it is awake.
            drop(writer.try_send(Command::Wake));
            ended
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

    /// Waits for all threads to end, and tells the first failure that is no consequence of another.
    pub(crate) fn join(self) -> Result<(), StopError> {
        let mut panicked = None;
        for (name, handle) in self.handles {
            if handle.join().is_err() {
                panicked.get_or_insert(StopError::Panicked { name });
            }
        }
        match self.outcomes.try_iter().min_by_key(StopError::is_consequence).or(panicked) {
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

// === impl StopError ===

impl StopError {
    /// Whether it only says that something else had failed before. Which of two threads comes first to
    /// tell is up to the system, and people want to know of the write that failed.
    fn is_consequence(&self) -> bool {
        let first: &(dyn std::error::Error + 'static) = self;
        iter::successors(Some(first), |error| error.source())
            .any(|error| matches!(error.downcast_ref(), Some(journal::Error::Stopped { .. })))
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

/// The tasks that work beside the edge, each until it is asked to end. One that ends before is a
/// part of the store that is missing, so it is the end of the store like a thread's failure.
struct Tasks {
    running: JoinSet<Result<(), Error>>,
    names: HashMap<task::Id, &'static str>,
    asked: CancellationToken,
}

// === impl Tasks ===

impl Tasks {
    /// Tasks that are asked to end by `asked`.
    fn new(asked: CancellationToken) -> Self {
        Self { running: JoinSet::new(), names: HashMap::new(), asked }
    }

    fn spawn(
        &mut self,
        name: &'static str,
        work: impl Future<Output = Result<(), Error>> + Send + 'static,
    ) {
        let task = self.running.spawn(work);
        self.names.insert(task.id(), name);
    }

    /// Waits for the first task that fails. Never ends if none does.
    async fn failed(&mut self) -> StopError {
        match self.join().await {
            Err(error) => error,
            Ok(()) => std::future::pending().await,
        }
    }

    /// Waits for all tasks to end, or for the first that fails.
    async fn join(&mut self) -> Result<(), StopError> {
        while let Some(ended) = self.running.join_next_with_id().await {
            self.judge(ended)?;
        }
        Ok(())
    }

    fn judge(
        &self,
        ended: Result<(task::Id, Result<(), Error>), JoinError>,
    ) -> Result<(), StopError> {
        let name = |id| self.names.get(&id).copied().unwrap_or("unnamed");
        match ended {
            Ok((id, Err(source))) => {
                Err(StopError::Task { name: name(id), source: Box::new(source) })
            }
            Ok((id, Ok(()))) if !self.asked.is_cancelled() => {
                Err(StopError::Ended { name: name(id) })
            }
            Ok(_) => Ok(()),
            Err(error) => Err(StopError::Panicked { name: name(error.id()) }),
        }
    }
}

/// What is served, and what is done beside it.
pub(crate) struct Serving {
    pub(crate) edge: Edge,
    pub(crate) content: Content,
    /// Where others may write.
    pub(crate) hearing: Option<Hearing>,
}

/// Serves clients and does the store's timed work, until `shutdown` or until a thread or a task fails.
pub(crate) async fn serve(
    context: Arc<Context>,
    serving: Serving,
    shutdown: CancellationToken,
) -> Result<(), StopError> {
    let Serving { edge, content, hearing } = serving;
    let edge_ended = CancellationToken::new();
    let mut tasks = Tasks::new(shutdown.clone());
    tasks.spawn("expiry", expiry::run(context.clone(), shutdown.clone()));
    tasks.spawn("departures", departures::run(context.clone(), edge_ended.clone()));
    if let Some(hearing) = hearing {
        tasks.spawn("hearing", hearing.run(shutdown.clone()));
    }
    tasks.spawn("auto-compaction", auto_compaction::run(context, shutdown.clone()));
    beside(tasks, edge.run(content, shutdown), edge_ended).await
}

/// Runs the edge beside the tasks. The end of either ends both: the edge drains, and the tasks finish
/// what the edge's last callers left behind.
async fn beside(
    mut tasks: Tasks,
    edge: impl Future<Output = Result<(), EdgeError>>,
    edge_ended: CancellationToken,
) -> Result<(), StopError> {
    let mut edge = pin!(edge);
    let (served, failed) = tokio::select! {
        served = &mut edge => (served, None),
        failed = tasks.failed() => {
            tasks.asked.cancel();
            (edge.await, Some(failed))
        }
    };
    tasks.asked.cancel();
    edge_ended.cancel();
    let joined = tasks.join().await;
    // The first failure is the cause; those after it may be its consequences.
    failed.map_or(Ok(()), Err)?;
    joined?;
    served.map_err(|source| StopError::Edge { source: Box::new(source) })
}
