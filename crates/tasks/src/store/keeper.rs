//! Keeps a lease alive, on its own thread and its own connection: whatever else the process is busy
//! with, this must not wait for it. Moves the deadline of everything that runs; never asks anybody.

use std::time::Duration;

use etcd_api::etcdserverpb::LeaseKeepAliveRequest;
use etcd_api::etcdserverpb::lease_client::LeaseClient;
use futures::stream::{self, FuturesUnordered, StreamExt};
use tokio::sync::watch;
use tonic::transport::Channel;

use super::{ConnectError, Error, Options, connect, error};
use crate::clock::Clock;
use crate::core::agent::Timing;
use crate::core::lease::{Duty, Lease};
use crate::core::time::Boottime;
use crate::core::txn::{AnswerError, LeaseId};

/// More favour of the scheduler than anything else has. Denied to those without the right to it.
const NICE: i32 = -10;

/// The lease to keep alive from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) lease: LeaseId,
    /// When it was asked for.
    pub(crate) sent: Boottime,
}

/// An answer of the store to a keep-alive, taken in before the lease's deadline; or its word that the
/// lease is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pulse {
    pub(crate) lease: LeaseId,
    pub(crate) sent: Boottime,
    /// Zero: the lease is gone.
    pub(crate) remaining: Duration,
}

/// See the module. Ends when nobody gives orders any more.
pub(crate) struct Keeper {
    options: Options,
    timing: Timing,
    clock: Clock,
    /// Levels, not messages: only the newest counts, on both ways.
    orders: watch::Receiver<Option<Order>>,
    pulses: watch::Sender<Option<Pulse>>,
    /// Moves the deadline of all that runs.
    set_deadline: Box<dyn Fn(Boottime) + Send>,
}

/// The ends that the owner of a keeper holds.
pub(crate) struct Reins {
    pub(crate) orders: watch::Sender<Option<Order>>,
    pub(crate) pulses: watch::Receiver<Option<Pulse>>,
}

// === impl Keeper ===

impl Keeper {
    pub(crate) fn new(
        options: Options,
        timing: Timing,
        clock: Clock,
        set_deadline: Box<dyn Fn(Boottime) + Send>,
    ) -> (Self, Reins) {
        let (give, orders) = watch::channel(None);
        let (pulses, take) = watch::channel(None);
        let reins = Reins { orders: give, pulses: take };
        (Self { options, timing, clock, orders, pulses, set_deadline }, reins)
    }

    /// Runs on the calling thread, within a runtime of its own.
    pub(crate) async fn run(mut self) -> Result<(), ConnectError> {
        if let Err(errno) = rustix::process::setpriority_process(None, NICE) {
            tracing::debug!(%errno, "keep-alives have no more favour than anything else");
        }
        let client = LeaseClient::new(connect::channel(&self.options)?);
        loop {
            let order = *self.orders.borrow_and_update();
            let goes_on = match order {
                Some(order) => self.keep(order, &client).await,
                None => self.orders.changed().await.is_ok(),
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Keeps one lease until there is another order, or none: then `false`.
    async fn keep(&mut self, order: Order, client: &LeaseClient<Channel>) -> bool {
        let mut lease = Lease::granted(self.timing, order.sent);
        // Each waits for its own answer: one that is late may still be in time.
        let mut asked = FuturesUnordered::new();
        loop {
            let now = self.clock.boot();
            let wait = match lease.duty(now) {
                Duty::Fence => return self.orders.changed().await.is_ok(),
                Duty::Wait(until) => until.since(now),
                Duty::SendKeepAlive => {
                    lease.on_sent(now);
                    let patience = lease.deadline().since(now);
                    asked.push(ask(client.clone(), order.lease, now, patience));
                    Duration::ZERO
                }
            };
            tokio::select! {
                ordered = self.orders.changed() => return ordered.is_ok(),
                Some(answer) = asked.next() => self.on_answer(&mut lease, answer),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    fn on_answer(&self, lease: &mut Lease, answer: Result<Pulse, Error>) {
        let now = self.clock.boot();
        match answer {
            Ok(pulse) => {
                lease.on_acknowledged(now, pulse.sent, pulse.remaining);
                if lease.is_held(now) {
                    (self.set_deadline)(lease.deadline());
                    self.publish(pulse);
                } else if pulse.remaining.is_zero() {
                    self.publish(pulse);
                }
            }
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "a keep-alive has no answer");
            }
        }
    }

    fn publish(&self, pulse: Pulse) {
        self.pulses.send_if_modified(|last| {
            let is_news = pulse.is_news_after(last.as_ref());
            if is_news {
                *last = Some(pulse);
            }
            is_news
        });
    }
}

// === impl Pulse ===

impl Pulse {
    /// Answers overtake each other, and only the last one that is published is ever seen.
    fn is_news_after(&self, last: Option<&Self>) -> bool {
        let is_older = |last: &Self| last.lease == self.lease && last.sent >= self.sent;
        self.remaining.is_zero() || !last.is_some_and(is_older)
    }
}

/// One keep-alive on a stream of its own, so that its answer is surely its own.
async fn ask(
    mut client: LeaseClient<Channel>,
    lease: LeaseId,
    sent: Boottime,
    patience: Duration,
) -> Result<Pulse, Error> {
    let request = LeaseKeepAliveRequest { id: lease.0 };
    let call = async {
        let requests = stream::once(std::future::ready(request));
        let mut answers = client.lease_keep_alive(requests).await?.into_inner();
        answers.message().await
    };
    let answer = error::within(patience, call).await?;
    // A stream that ends says nothing about the lease.
    let ttl_s = answer.ok_or(Error::Answer(AnswerError::NoResult))?.ttl;
    let remaining = Duration::from_secs(u64::try_from(ttl_s).unwrap_or(0));
    Ok(Pulse { lease, sent, remaining })
}
