//! How an instance stands, for those who wait for it: whether it works yet, and how it ended.

use std::sync::OnceLock;

use tokio_util::sync::CancellationToken;

use crate::core::instance::Loss;

/// How an instance ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// In order: its Lease is given back, or marked to be held.
    Left,
    Lost(Loss),
}

#[derive(Debug, Default)]
pub(super) struct Standing {
    working: CancellationToken,
    over: CancellationToken,
    /// Absent while it is not over, and if whoever should have said so is gone.
    end: OnceLock<End>,
}

// === impl Standing ===

impl Standing {
    pub(super) fn on_working(&self) {
        self.working.cancel();
    }

    /// The first end is the one that counts.
    pub(super) fn on_end(&self, end: End) {
        self.end.get_or_init(|| end);
    }

    /// Nobody keeps the Lease any more.
    pub(super) fn on_over(&self) {
        self.over.cancel();
    }

    /// Waits until it works; false if it ended instead.
    pub(super) async fn works(&self) -> bool {
        tokio::select! {
            biased;
            () = self.over.cancelled() => false,
            () = self.working.cancelled() => true,
        }
    }

    pub(super) fn over(&self) -> CancellationToken {
        self.over.clone()
    }

    pub(super) fn end(&self) -> Option<&End> {
        self.end.get()
    }
}
