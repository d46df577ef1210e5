//! The handle of one attempt. What happens to it is the driver's work.

use std::time::Duration;

use tokio::sync::{
    mpsc::{self, error::TrySendError},
    watch,
};

use crate::{AttemptId, Ended};

/// An attempt has this many events, so nobody ever waits for a slow listener.
pub(super) const EVENTS_MAX: usize = 3;

/// What happens to an attempt, in this order; any but the last may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// All is ready for the command.
    Created,
    /// The command runs.
    Started,
    /// The last process is gone. The result is on disk until [`forget`](crate::Host::forget).
    Ended(Ended),
}

/// One attempt. Dropping it stops nothing and loses only the events.
#[derive(Debug)]
pub struct Attempt {
    id: AttemptId,
    events: mpsc::Receiver<Event>,
    stopper: Stopper,
}

/// Stops an attempt; a cheap clone.
#[derive(Clone, Debug)]
pub struct Stopper(watch::Sender<Option<Duration>>);

/// The driver's end of the handle.
#[derive(Debug)]
pub(super) struct Line {
    told: mpsc::Sender<Event>,
    asked: watch::Receiver<Option<Duration>>,
}

// === impl Attempt ===

impl Attempt {
    pub(super) fn new(id: AttemptId) -> (Self, Line) {
        let (told, events) = mpsc::channel(EVENTS_MAX);
        let (stop, asked) = watch::channel(None);
        (Self { id, events, stopper: Stopper(stop) }, Line { told, asked })
    }

    #[must_use]
    pub fn id(&self) -> AttemptId {
        self.id
    }

    /// The next event; `None` after [`Event::Ended`], or once the host was closed. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Waits for the end; `None` if the host was closed before.
    pub async fn ended(&mut self) -> Option<Ended> {
        loop {
            if let Event::Ended(ended) = self.next().await? {
                return Some(ended);
            }
        }
    }

    /// See [`Stopper::stop`].
    pub fn stop(&self, grace: Duration) {
        self.stopper.stop(grace);
    }

    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }
}

// === impl Stopper ===

impl Stopper {
    /// TERM, and after the grace KILL. May come again; the grace that ends first counts. An attempt
    /// that has ended stays as it is.
    pub fn stop(&self, grace: Duration) {
        self.0.send_replace(Some(grace));
    }
}

// === impl Line ===

impl Line {
    /// Tells whoever still listens. Never waits: there is room for all events of an attempt.
    pub(super) fn tell(&self, event: Event) {
        let told = self.told.try_send(event);
        debug_assert!(!matches!(told, Err(TrySendError::Full(_))), "an attempt has few events");
    }

    /// The next wish to stop, with its grace. Waits for ever once nobody can have one. Cancel safe.
    pub(super) async fn stop(&mut self) -> Duration {
        loop {
            if self.asked.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            if let Some(grace) = *self.asked.borrow_and_update() {
                return grace;
            }
        }
    }

    /// The last wish to stop, if there ever was one.
    pub(super) fn stopped(&self) -> Option<Duration> {
        *self.asked.borrow()
    }
}
