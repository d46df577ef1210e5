//! The threads of the journal. Its calls block, its client is async, and callers may be either: so
//! futures run here, and the caller waits for their end on its own thread.

use std::{future::Future, sync::Arc, sync::mpsc};

use tokio::runtime::{Builder, Runtime};

use crate::Error;

/// The client's tasks and a few requests at once need no more.
const THREADS: usize = 2;

/// Owns the runtime; what runs there ends with it.
#[derive(Debug)]
pub(crate) struct Engine {
    /// Taken only when dropped.
    runtime: Option<Runtime>,
}

// === impl Engine ===

impl Engine {
    pub(crate) fn start() -> Result<Self, Error> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("journal-ignite")
            .enable_all()
            .build()
            .map_err(|source| Error::Threads { source: Arc::new(source) })?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Runs a future to its end.
    ///
    /// # Panics
    ///
    /// If the future does.
    pub(crate) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let (done, end) = mpsc::sync_channel(1);
        let runtime = self.runtime.as_ref().expect("taken only when dropped");
        runtime.spawn(async move {
            // The caller waits below, so somebody takes it.
            drop(done.send(work.await));
        });
        end.recv().expect("the future did not panic")
    }
}

impl Drop for Engine {
    /// Not waited for: a journal may be dropped where blocking is not allowed.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
