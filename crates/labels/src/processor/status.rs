//! How the processor is, for probes: what it needs to be ready, and that it makes progress.

use std::time::Duration;

use kubekit::health::{Check, Health};
use tokio::sync::Notify;

use crate::kubernetes::{Error, Kind};

/// A worker ends every turn, and every wait for one, well within this time.
const PROGRESS_WITHIN: Duration = Duration::from_mins(5);

/// Longer than any wait before something refused is tried again, a resync's aside, whose rights are
/// asked about every few seconds while one is missing.
const REFUSED_FOR: Duration = Duration::from_mins(1);

/// The conditions that hold or not.
#[derive(Debug)]
pub(crate) struct Status {
    watch: Check,
    work: Check,
    progress: Check,
    /// Tells whoever looks after our rights that one seems to be missing.
    access_in_doubt: std::sync::Arc<Notify>,
}

// === impl Status ===

impl Status {
    pub(super) fn new(health: &Health, access_in_doubt: std::sync::Arc<Notify>) -> Self {
        let status = Self {
            watch: health.ready("transactions-watch"),
            work: health.ready("work"),
            progress: health.live("workers"),
            access_in_doubt,
        };
        status.work.pass();
        status.on_progress();
        status
    }

    pub(super) fn on_watching(&self) {
        self.watch.pass();
    }

    pub(super) fn on_watch_failed(&self, error: &Error) {
        self.watch.fail(error.to_string());
        self.on_doubt(error);
    }

    /// A turn, or the wait for one, has ended.
    pub(super) fn on_progress(&self) {
        self.progress.pass_for(PROGRESS_WITHIN);
    }

    /// Something was done as it should be.
    pub(super) fn on_worked(&self) {
        self.work.pass();
    }

    /// What the service may not do, or has no place for, is for a person to mend. Afterwards another
    /// processor may do what is left, so it is over without a success of ours too.
    pub(super) fn on_failed(&self, error: &Error) {
        if matches!(error.kind, Kind::Forbidden | Kind::NamespaceMissing) {
            self.work.fail_for(REFUSED_FOR, error.to_string());
            self.on_doubt(error);
        }
    }

    fn on_doubt(&self, error: &Error) {
        if error.kind == Kind::Forbidden {
            self.access_in_doubt.notify_one();
        }
    }
}
