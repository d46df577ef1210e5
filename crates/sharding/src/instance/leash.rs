//! How a reconcile is held: it can be told to stop, and its end is noticed. Drops nothing itself; the
//! future that carries the [`Run`] does, at its next poll.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use futures::task::AtomicWaker;

use super::desk::Desk;
use super::metrics::Cause;
use crate::core::object::ObjectName;

/// Between a reconcile and those who may have to stop it.
#[derive(Default)]
pub(super) struct Leash {
    is_cut: AtomicBool,
    /// A reconcile that waits for something else has to be woken to learn that it is over.
    waker: AtomicWaker,
}

/// A reconcile that has begun. Its drop says that no step of it will follow: whoever carries it drops
/// everything of the reconcile first.
pub(super) struct Run {
    desk: Arc<Desk>,
    name: ObjectName,
    leash: Arc<Leash>,
}

// === impl Leash ===

impl Leash {
    /// Whether it was this that stopped it.
    pub(super) fn cut(&self) -> bool {
        let is_first = !self.is_cut.swap(true, Ordering::AcqRel);
        self.waker.wake();
        is_first
    }
}

// === impl Run ===

impl Run {
    pub(super) fn new(desk: Arc<Desk>, name: ObjectName, leash: Arc<Leash>) -> Self {
        Self { desk, name, leash }
    }

    pub(super) fn desk(&self) -> &Desk {
        &self.desk
    }

    /// Whether another step may be taken; if so, `waker` is called when it may not any more.
    pub(super) fn may_go_on(&self, waker: &Waker) -> bool {
        // Registered before the look, lest a cut in between goes unnoticed.
        self.leash.waker.register(waker);
        if self.leash.is_cut.load(Ordering::Acquire) {
            return false;
        }
        let is_held = self.desk.may_go_on();
        if !is_held && self.leash.cut() {
            self.desk.metrics().on_cancelled(Cause::Lease);
        }
        is_held
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.desk.on_run_ended(&self.name, &self.leash);
    }
}
