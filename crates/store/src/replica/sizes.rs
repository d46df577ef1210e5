//! The thread that asks a shared journal for its size, which may take the engine long. Nobody waits for
//! it: what it learns is told to those who ask later.

use std::{
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use journal::Journal;

use crate::quota::Quota;

const ASK_EVERY: Duration = Duration::from_secs(10);

pub(crate) struct Sizes {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) quota: Arc<Quota>,
    /// Ends the thread when the other end is gone.
    pub(crate) ended: Receiver<()>,
}

// === impl Sizes ===

impl Sizes {
    pub(crate) fn run(self) {
        while self.ended.recv_timeout(ASK_EVERY) == Err(RecvTimeoutError::Timeout) {
            match self.journal.size() {
                Ok(size) => self.quota.note(size),
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::debug!(error, "the journal does not tell its size for now");
                }
            }
        }
    }
}
