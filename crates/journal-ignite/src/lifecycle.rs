//! The threads of the journal. Its calls block, its client is async, and callers may be either: so
//! futures run here, and the caller waits for their end on its own thread.

use std::{future::Future, sync::Arc, sync::mpsc};

use tokio::{
    runtime::{Builder, Handle, Runtime, RuntimeFlavor},
    task,
};

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
        blocking(|| end.recv()).expect("the future did not panic")
    }
}

/// Waits without keeping the tasks of the caller's runtime from their thread, if it is one of those.
fn blocking<T>(wait: impl FnOnce() -> T) -> T {
    let runtime = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match runtime {
        Ok(RuntimeFlavor::MultiThread) => task::block_in_place(wait),
        _ => wait(),
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::*;

    /// A runtime of one thread, on which one task waits for the journal: the other one, which ends that
    /// wait, gets its turn.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_wait_keeps_no_other_task_from_its_thread() {
        let (engine, told) = (Engine::start().unwrap(), Arc::new(Notify::new()));
        let telling = told.clone();
        let mut tasks = task::JoinSet::new();
        tasks.spawn(async move { engine.wait(async move { told.notified().await }) });
        tasks.spawn(async move { telling.notify_one() });
        tasks.join_all().await;
    }
}
