//! A reconcile under guard: the Lease is looked at before every poll, so that a process that wakes from
//! a pause takes no further step. What a reconcile has handed to others, such as spawned tasks, requests
//! on the wire or blocking code, is out of its reach.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use kube::runtime::controller::Action;

use super::leash::Run;

/// What [`Shard::wrap`](super::Shard::wrap) makes of a reconcile.
#[must_use = "futures do nothing unless polled"]
pub struct Reconcile<F> {
    /// Dropped before the run is told to have ended, here and by the order of these fields.
    inner: Option<Pin<Box<F>>>,
    run: Option<Run>,
}

// === impl Reconcile ===

impl<F> Reconcile<F> {
    pub(super) fn new(run: Run, inner: F) -> Self {
        Self { inner: Some(Box::pin(inner)), run: Some(run) }
    }

    /// Of an object that is not ours to work on.
    pub(super) fn skipped() -> Self {
        Self { inner: None, run: None }
    }
}

impl<F, E> Future for Reconcile<F>
where
    F: Future<Output = Result<Action, E>>,
    E: Error + 'static,
{
    type Output = Result<Action, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { inner, run } = &mut *self;
        // Whoever is to work on the object learns so by its own watch.
        let mut outcome = Ok(Action::await_change());
        if let (Some(future), Some(held)) = (&mut *inner, &*run)
            && held.may_go_on(context.waker())
        {
            outcome = std::task::ready!(future.as_mut().poll(context));
            if let Err(error) = &outcome {
                held.desk().on_error(error);
            }
        }
        *inner = None;
        *run = None;
        Poll::Ready(outcome)
    }
}
