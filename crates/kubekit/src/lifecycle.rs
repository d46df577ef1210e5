//! Owning tasks: each has a name and an owner that learns of its end, and all of them end together.
//! The only place here that spawns.

use std::collections::HashMap;
use std::time::Duration;

use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The tasks of one service. None of them ends before it is asked to, so the first that does ends
/// them all.
pub struct Tasks<E> {
    running: JoinSet<Result<(), E>>,
    names: HashMap<Id, &'static str>,
    shutdown: CancellationToken,
}

#[derive(Debug, thiserror::Error)]
pub enum Error<E: std::error::Error + 'static> {
    #[error("the task `{task}` failed")]
    Failed {
        task: &'static str,
        #[source]
        source: E,
    },
    #[error("the task `{task}` panicked")]
    Panicked { task: &'static str },
    #[error("the task `{task}` ended without being asked to")]
    Ended { task: &'static str },
    #[error("the task `{task}` did not end within {grace:?}")]
    Stuck { task: &'static str, grace: Duration },
}

// === impl Tasks ===

impl<E: std::error::Error + Send + 'static> Tasks<E> {
    /// They are asked to end when `shutdown` is, or when one of them has ended.
    #[must_use]
    pub fn new(shutdown: &CancellationToken) -> Self {
        Self { running: JoinSet::new(), names: HashMap::new(), shutdown: shutdown.child_token() }
    }

    /// What a task waits for to end.
    #[must_use]
    pub fn shutdown(&self) -> CancellationToken {
        self.shutdown.clone()
    }

    pub fn spawn(
        &mut self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) {
        let id = self.running.spawn(task).id();
        self.names.insert(id, name);
    }

    /// Waits until all have ended, and tells what ended them if nobody asked for it. Whoever takes
    /// longer than `grace` is ended by force.
    pub async fn join(mut self, grace: Duration) -> Result<(), Error<E>> {
        let first = tokio::select! {
            () = self.shutdown.cancelled() => Ok(()),
            Some(ended) = self.running.join_next_with_id() => self.on_unasked(ended),
        };
        self.shutdown.cancel();
        let rest = self.drain(grace).await;
        first.and(rest)
    }

    async fn drain(&mut self, grace: Duration) -> Result<(), Error<E>> {
        let deadline = Instant::now() + grace;
        let mut outcome = Ok(());
        loop {
            match tokio::time::timeout_at(deadline, self.running.join_next_with_id()).await {
                Ok(None) => return outcome,
                Ok(Some(ended)) => outcome = outcome.and(self.on_asked(ended)),
                Err(_elapsed) => {
                    self.running.shutdown().await;
                    let task = self.names.values().next().copied().unwrap_or("unknown");
                    return outcome.and(Err(Error::Stuck { task, grace }));
                }
            }
        }
    }

    /// The end of a task that should have gone on.
    fn on_unasked(
        &mut self,
        ended: Result<(Id, Result<(), E>), JoinError>,
    ) -> Result<(), Error<E>> {
        let is_asked = self.shutdown.is_cancelled();
        let task = ended.as_ref().ok().map(|(id, _)| self.name(*id));
        self.on_asked(ended)?;
        match task {
            Some(task) if !is_asked => Err(Error::Ended { task }),
            _ => Ok(()),
        }
    }

    fn on_asked(&mut self, ended: Result<(Id, Result<(), E>), JoinError>) -> Result<(), Error<E>> {
        match ended {
            Ok((id, outcome)) => {
                let task = self.name(id);
                self.names.remove(&id);
                outcome.map_err(|source| Error::Failed { task, source })
            }
            Err(panicked) => Err(Error::Panicked { task: self.name(panicked.id()) }),
        }
    }

    fn name(&self, id: Id) -> &'static str {
        self.names.get(&id).copied().unwrap_or("unknown")
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::io;

    use super::*;

    const GRACE: Duration = Duration::from_secs(5);

    /// A task that ends when it is asked to.
    fn obedient(tasks: &mut Tasks<io::Error>) {
        let shutdown = tasks.shutdown();
        tasks.spawn("obedient", async move {
            shutdown.cancelled().await;
            Ok(())
        });
    }

    #[tokio::test(start_paused = true)]
    async fn all_end_when_asked_to() {
        let shutdown = CancellationToken::new();
        let mut tasks = Tasks::new(&shutdown);
        obedient(&mut tasks);
        obedient(&mut tasks);
        shutdown.cancel();
        assert!(tasks.join(GRACE).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_ends_the_others_and_is_told() {
        let shutdown = CancellationToken::new();
        let mut tasks = Tasks::new(&shutdown);
        obedient(&mut tasks);
        tasks.spawn("failing", async { Err(io::Error::other("no")) });
        let error = tasks.join(GRACE).await.unwrap_err();
        assert!(matches!(error, Error::Failed { task: "failing", .. }), "{error}");
        assert!(!shutdown.is_cancelled(), "what to do about it is the caller's to decide");
    }

    #[tokio::test(start_paused = true)]
    async fn an_early_end_and_a_panic_are_failures() {
        let shutdown = CancellationToken::new();
        let mut tasks = Tasks::<io::Error>::new(&shutdown);
        tasks.spawn("short", async { Ok(()) });
        let error = tasks.join(GRACE).await.unwrap_err();
        assert!(matches!(error, Error::Ended { task: "short" }), "{error}");
        let mut tasks = Tasks::<io::Error>::new(&shutdown);
        tasks.spawn("wild", async { panic!("on purpose") });
        let error = tasks.join(GRACE).await.unwrap_err();
        assert!(matches!(error, Error::Panicked { task: "wild" }), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_end_is_named() {
        let shutdown = CancellationToken::new();
        let mut tasks = Tasks::<io::Error>::new(&shutdown);
        obedient(&mut tasks);
        tasks.spawn("deaf", pending());
        shutdown.cancel();
        let error = tasks.join(GRACE).await.unwrap_err();
        assert!(matches!(error, Error::Stuck { task: "deaf", .. }), "{error}");
    }
}
