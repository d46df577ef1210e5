//! The queue, shared by the feed that fills it and the workers that empty it.

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use crate::core::{
    names::{NodeHash, TransactionName},
    object::Uid,
    queue::{Batch, Census, Listed, Queue, Seen, TurnEnd, Wish},
    settle::Cause,
};

/// One queue for many tasks. A mutex and not a task of its own: every step is short, none waits,
/// and a worker has to see at once what another has just finished.
#[derive(Debug)]
pub(crate) struct Backlog {
    queue: Mutex<Queue>,
    has_more: Notify,
}

// === impl Backlog ===

impl Backlog {
    /// The backlog of the processor that is called `me`.
    pub(crate) fn new(me: &str) -> Self {
        Self { queue: Mutex::new(Queue::new(me)), has_more: Notify::new() }
    }

    /// The next node to work on; it is the caller's until [`release`](Self::release). Waits until
    /// there is one.
    pub(crate) async fn next(&self) -> NodeHash {
        loop {
            let mut has_more = std::pin::pin!(self.has_more.notified());
            // Before looking, or what comes between looking and waiting would be missed.
            has_more.as_mut().enable();
            let due = {
                let mut queue = self.queue.lock();
                match queue.pick(now()) {
                    Some(hash) => return hash,
                    None => queue.next_due(),
                }
            };
            match due {
                Some(due) => tokio::select! {
                    () = has_more => {}
                    () = tokio::time::sleep_until(due.into()) => {}
                },
                None => has_more.await,
            }
        }
    }

    pub(crate) fn release(&self, hash: &NodeHash, end: TurnEnd) {
        self.queue.lock().release(hash, end, now(), rand::random());
        self.has_more.notify_waiters();
    }

    pub(crate) fn batch(&self, hash: &NodeHash) -> Batch {
        self.queue.lock().batch(hash)
    }

    pub(crate) fn on_settled(&self, hash: &NodeHash) {
        self.queue.lock().on_settled(hash);
    }

    pub(crate) fn on_seen(&self, seen: Seen) {
        self.queue.lock().on_seen(seen, now());
        self.has_more.notify_waiters();
    }

    pub(crate) fn on_gone(&self, name: &TransactionName, uid: Option<&Uid>) {
        self.queue.lock().on_gone(name, uid);
    }

    pub(crate) fn on_quarantined(&self, name: &TransactionName) {
        self.queue.lock().on_quarantined(name);
    }

    pub(crate) fn on_listed(&self, listed: Listed) {
        self.queue.lock().on_listed(listed, now());
        self.has_more.notify_waiters();
    }

    pub(crate) fn on_wish(&self, node: &str, cause: Cause) {
        self.queue.lock().on_wish(Wish { node: node.to_owned(), cause }, now());
        self.has_more.notify_waiters();
    }

    /// Another processor was found at work.
    pub(crate) fn on_met(&self, peer: &str) {
        self.queue.lock().on_met(peer, now());
    }

    pub(crate) fn needs_listing(&self) -> bool {
        self.queue.lock().needs_listing()
    }

    pub(crate) fn has_transactions(&self, hash: &NodeHash) -> bool {
        self.queue.lock().has_transactions(hash)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.queue.lock().bytes()
    }

    pub(crate) fn census(&self) -> Census {
        self.queue.lock().census()
    }
}

/// The core's time.
fn now() -> std::time::Instant {
    Instant::now().into_std()
}
