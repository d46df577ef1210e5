//! How the watcher is, for probes: what it needs to be ready, and that it makes progress.

use std::{sync::Arc, time::Duration};

use kubekit::{
    follow::SILENCE_MAX,
    health::{Check, Health},
};
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use crate::kubernetes::{Error, Kind};

/// The desk looks around every second, whatever it waits for.
const PROGRESS_WITHIN: Duration = Duration::from_mins(5);

/// Longer than any wait before something refused is tried again.
const REFUSED_FOR: Duration = Duration::from_mins(1);

/// The conditions that hold or not.
#[derive(Debug)]
pub(super) struct Status {
    /// Something was heard of nodes lately.
    nodes: Check,
    heard_of_nodes: Mutex<Instant>,
    /// The other watches are under way.
    names: Check,
    checkpoints: Check,
    /// What there is to post can be posted.
    posting: Check,
    /// Checkpoints and the position can be kept.
    saving: Check,
    progress: Check,
    /// Tells whoever looks after our rights that one seems to be missing.
    access_in_doubt: Arc<Notify>,
}

/// A watch besides the one on nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    TransactionNames,
    Checkpoints,
}

// === impl Status ===

impl Status {
    pub(super) fn new(health: &Health, access_in_doubt: Arc<Notify>) -> Self {
        let status = Self {
            nodes: health.ready("nodes-watch"),
            heard_of_nodes: Mutex::new(Instant::now()),
            names: health.ready("transaction-names-watch"),
            checkpoints: health.ready("checkpoints-watch"),
            posting: health.ready("posting"),
            saving: health.ready("saving"),
            progress: health.live("watcher"),
            access_in_doubt,
        };
        status.posting.pass();
        status.saving.pass();
        status.on_progress();
        status
    }

    /// An event, a bookmark or the beginning of a watch on nodes.
    pub(super) fn on_heard_of_nodes(&self) {
        self.nodes.pass_for(SILENCE_MAX);
        *self.heard_of_nodes.lock() = Instant::now();
    }

    /// How long nothing was heard of nodes, since the start if never.
    pub(super) fn watch_gap(&self) -> Duration {
        self.heard_of_nodes.lock().elapsed()
    }

    pub(super) fn on_nodes_failed(&self, error: &Error) {
        self.nodes.fail(error.to_string());
        self.on_doubt(error);
    }

    /// What the server says of nodes cannot be used.
    pub(super) fn on_nodes_unusable(&self, reason: String) {
        self.nodes.fail(reason);
    }

    pub(super) fn on_watching(&self, watch: Watch) {
        self.check(watch).pass();
    }

    pub(super) fn on_watch_failed(&self, watch: Watch, error: &Error) {
        self.check(watch).fail(error.to_string());
        self.on_doubt(error);
    }

    pub(super) fn on_posted(&self) {
        self.posting.pass();
    }

    pub(super) fn on_saved(&self) {
        self.saving.pass();
    }

    pub(super) fn on_post_failed(&self, error: &Error) {
        self.on_refused(&self.posting, error);
    }

    pub(super) fn on_save_failed(&self, error: &Error) {
        self.on_refused(&self.saving, error);
    }

    pub(super) fn on_progress(&self) {
        self.progress.pass_for(PROGRESS_WITHIN);
    }

    fn check(&self, watch: Watch) -> &Check {
        match watch {
            Watch::TransactionNames => &self.names,
            Watch::Checkpoints => &self.checkpoints,
        }
    }

    /// What the service may not do, or has no place for, is for a person to mend; the rest passes.
    /// Afterwards another watcher may do what is left, so it is over without a success of ours too.
    fn on_refused(&self, check: &Check, error: &Error) {
        if matches!(error.kind, Kind::Forbidden | Kind::NamespaceMissing) {
            check.fail_for(REFUSED_FOR, error.to_string());
            self.on_doubt(error);
        }
    }

    fn on_doubt(&self, error: &Error) {
        if error.kind == Kind::Forbidden {
            self.access_in_doubt.notify_one();
        }
    }
}
