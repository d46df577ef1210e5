//! The core of one ring, and everything under way for it. Tells the core what happened, one thing after
//! the other, and carries out what it says; the core bounds how much that is.

mod answers;
mod commands;
mod journeys;
mod moves;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use kubekit::backoff::Backoff;
use kubekit::election::{self, Standing};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::answers::Done;
use self::journeys::Journeys;
use self::moves::Moves;
use super::Context;
use super::fence::Fencing;
use super::hand::Hand;
use super::pages::Cursor;
use super::plan::{Work, options};
use super::status::{Picture, Throttle, status};
use super::supervisor::View;
use super::tell::Teller;
use super::upkeep::Arranged;
use crate::clock;
use crate::core::key::Kinds;
use crate::core::names::Names;
use crate::core::sharder::{Event, Sharder, Token};
use crate::core::time::Now;
use crate::kubernetes::{Leases, RingStatus};

/// Waits after a failure, by resource: lists and the table are asked for again at once otherwise.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_mins(5);
/// How long what is under way may take once we are asked to stop; a write takes less.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// The core may ask to be woken at once; others have their turn in between.
const WAKE_MIN: Duration = Duration::from_millis(1);
/// A ring that fails does so for many objects at once; the log has one of them.
const WARN_EVERY: Duration = Duration::from_secs(10);

pub(super) struct Driver {
    context: Arc<Context>,
    names: Names,
    view: watch::Receiver<View>,
    standing: election::Handle,
    in_doubt: Arc<Notify>,
    core: Sharder,
    hand: Hand,
    teller: Teller,
    arranged: Arranged,
    /// Whether the Leases have been listed. A leader that knew of no instance would give everything
    /// away.
    knows_leases: bool,
    under_way: FuturesUnordered<BoxFuture<'static, Done>>,
    /// Where the present pass stands, and the page that was asked for last.
    cursor: Option<Cursor>,
    page: Option<(Token, Instant)>,
    backoffs: BTreeMap<String, Backoff>,
    moves: Moves,
    journeys: Journeys,
    /// As last written.
    status: RingStatus,
    /// Whether that failed, so that it has to be written whatever it says.
    is_status_lost: bool,
    throttle: Throttle,
    epoch: u64,
    warned: Option<Instant>,
}

// === impl Driver ===

impl Driver {
    pub(super) fn new(
        context: Arc<Context>,
        (names, leases): (Names, Leases),
        (view, standing): (watch::Receiver<View>, election::Handle),
        in_doubt: Arc<Notify>,
    ) -> Self {
        let ring = view.borrow().ring.clone();
        let hand = Hand::new(context.clone(), (names.clone(), leases), standing.clone());
        let options = options((&ring, &names, &context.home), Kinds::default(), BTreeSet::new());
        Self {
            teller: Teller::new(context.events.clone(), &ring),
            moves: Moves::new(options.handover.concurrent_moves),
            journeys: Journeys::new(context.metrics.of_ring(names.ring().as_str())),
            core: Sharder::new(options),
            hand,
            context,
            names,
            view,
            standing,
            in_doubt,
            arranged: None,
            knows_leases: false,
            under_way: FuturesUnordered::new(),
            cursor: None,
            page: None,
            backoffs: BTreeMap::new(),
            status: ring.status.clone().unwrap_or_default(),
            is_status_lost: false,
            throttle: Throttle::default(),
            epoch: 0,
            warned: None,
        }
    }

    pub(super) async fn run(
        mut self,
        mut events: mpsc::Receiver<Event>,
        mut arranged: watch::Receiver<Arranged>,
        stop: CancellationToken,
    ) {
        loop {
            let now = self.now();
            let wait = self.core.wake_at(now).since(now.mono).max(WAKE_MIN);
            tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = self.standing.changed() => self.lead(),
                Ok(()) = arranged.changed() => {
                    let arranged = arranged.borrow_and_update().clone();
                    self.on_arranged(arranged);
                }
                Some(event) = events.recv() => self.on_event(event),
                Some(done) = self.under_way.next(), if !self.under_way.is_empty() => {
                    self.on_done(done);
                }
                () = tokio::time::sleep(wait) => self.tell(Event::Tick),
            }
            self.tend_moves();
            self.tend_status();
        }
        let rest = async { while self.under_way.next().await.is_some() {} };
        if tokio::time::timeout(DRAIN_TIMEOUT, rest).await.is_err() {
            tracing::debug!(ring = %self.names.ring(), "stopped before the last answers came");
        }
    }

    fn now(&self) -> Now {
        clock::now(self.context.clock)
    }

    fn work(&self) -> Option<&Work> {
        self.arranged.as_ref()?.work.as_ref()
    }

    /// The one way to the core.
    fn tell(&mut self, event: Event) {
        let now = self.now();
        for command in self.core.on(now, event) {
            self.carry_out(command);
        }
    }

    fn on_event(&mut self, event: Event) {
        self.journeys.on_event(&event);
        let is_first_list = !self.knows_leases && matches!(event, Event::LeasesListed(_));
        self.tell(event);
        if is_first_list {
            self.knows_leases = true;
            self.lead();
        }
    }

    /// Says that we lead, and until when; or that we do not.
    fn lead(&mut self) {
        let now = self.now();
        match self.standing.standing() {
            Standing::Leading { until, .. } if self.knows_leases && self.work().is_some() => {
                let until = clock::moment(until, now);
                self.tell(Event::Leading { until });
            }
            _ => self.on_event(Event::Standby),
        }
    }

    fn on_arranged(&mut self, arranged: Arranged) {
        let before = std::mem::replace(&mut self.arranged, arranged.clone());
        let Some(arrangement) = arranged else {
            self.context.metrics.forget(self.names.ring().as_str());
            return self.lead();
        };
        if before.is_none() {
            let ring = self.view.borrow().ring.clone();
            self.status = ring.status.clone().unwrap_or_default();
        }
        let work_before = before.as_ref().and_then(|before| before.work.as_ref());
        if let Some(work) = &arrangement.work {
            let is_same = work_before.is_some_and(|it| {
                (&it.options, &it.main, &it.controlled)
                    == (&work.options, &work.main, &work.controlled)
            });
            if !is_same {
                self.core.reconfigure(work.options.clone());
                self.hand.set_work(work);
                self.moves = Moves::new(work.options.handover.concurrent_moves);
            }
            if work_before.is_none_or(|it| it.namespaces != work.namespaces) {
                self.tell(Event::Namespaces(work.namespaces.clone()));
            }
            self.tell(Event::Fenced(arrangement.fencing == Fencing::Active));
        }
        self.throttle.hurry();
        self.lead();
    }

    /// Fewer moves at once while the server is busy.
    fn tend_moves(&mut self) {
        if let Some(moves_max) = self.moves.changed(Instant::now()) {
            self.core.set_concurrent_moves(moves_max);
        }
    }

    /// Writes the status if that is due and there is something new.
    fn tend_status(&mut self) {
        let Some(arrangement) = self.arranged.clone() else { return };
        if !self.throttle.is_due(Instant::now()) || !self.standing.is_leading() {
            return;
        }
        let now = self.now();
        let ring = self.view.borrow().ring.clone();
        let wanted = status(&Picture {
            arrangement: &arrangement,
            members: &self.core.members(now),
            table: self.core.table(),
            objects: self.core.objects(),
            imbalance: self.core.imbalance(),
            traffic: &self.core.traffic(),
            partitioning: &ring.spec.partitioning,
            before: &self.status,
            now: now.wall,
        });
        self.journeys.on_status(&wanted, &self.core, self.epoch);
        if wanted == self.status && !self.is_status_lost {
            return self.throttle.on_written(Instant::now());
        }
        self.status = wanted.clone();
        self.throttle.on_sent();
        let (rings, name) = (self.context.rings.clone(), self.names.ring().clone());
        self.under_way.push(Box::pin(async move {
            Done::StatusWritten(rings.write_status(name.as_str(), &wanted).await)
        }));
    }
}
