//! Concurrent clients that keep working while their store is killed and restarted, and record what
//! they saw for [`crate::check`].

mod mixed;
mod translate;
mod watcher;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;

pub use mixed::{MixedOptions, mixed};
pub use translate::{read_events, read_truth};
pub use watcher::{WatcherOptions, watcher};
pub use writer::writer;

use crate::wait::{Level, wait_for};

/// What the clients of one run share: a clock to order calls by, how much was done, and whether
/// to go on.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    clock: AtomicU64,
    answered: AtomicUsize,
    is_over: AtomicBool,
}

// === impl Shared ===

impl Shared {
    /// A moment later than every one drawn before.
    fn now(&self) -> u64 {
        self.inner.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn on_answer(&self) {
        self.inner.answered.fetch_add(1, Ordering::SeqCst);
    }

    /// How many calls were answered so far.
    #[must_use]
    pub fn answered(&self) -> usize {
        self.inner.answered.load(Ordering::SeqCst)
    }

    /// Waits until this many more calls were answered.
    pub async fn wait_answers(&self, more: usize, bound: Duration) -> Result<()> {
        let goal = self.answered() + more;
        wait_for(&format!("{more} more answers"), bound, async || {
            let answered = self.answered();
            Ok(if answered >= goal {
                Level::Reached(())
            } else {
                Level::Below(format!("{answered} of {goal}"))
            })
        })
        .await
    }

    /// Tells every client to end after the call it is in.
    pub fn end(&self) {
        self.inner.is_over.store(true, Ordering::SeqCst);
    }

    #[must_use]
    pub fn is_over(&self) -> bool {
        self.inner.is_over.load(Ordering::SeqCst)
    }
}
