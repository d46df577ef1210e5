//! One watch stream: its watches, what its client asks, and what it is told.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use etcd_api::{
    CancelReason,
    etcdserverpb::{WatchCreateRequest, WatchRequest, WatchResponse, watch_request::RequestUnion},
    mvccpb::Event,
};
use futures::FutureExt;
use mvcc::Revision;
use prost::Message;
use tokio::{
    sync::mpsc,
    time::{Instant, Interval, MissedTickBehavior},
};

use super::{
    NO_WATCH, WatchId, WatchNumber, answer,
    class::Class,
    history::{self, History, Piece, Wanted},
    hub::{About, DELIVERIES_MAX, Delivery, Events, Hub, Membership},
};
use crate::{Error, auth, metrics::Watches};

/// What all sessions share.
pub(crate) struct SessionContext {
    pub(crate) hub: Arc<Hub>,
    pub(crate) history: History,
    /// A response larger than this is cut in fragments for watches that asked for it.
    pub(crate) fragment_bytes: usize,
    pub(crate) progress_interval: Duration,
    pub(crate) metrics: Watches,
}

/// The state of one stream. Dropping it ends its watches.
pub(crate) struct Session {
    context: Arc<SessionContext>,
    membership: Membership,
    deliveries: mpsc::Receiver<Delivery>,
    watches: BTreeMap<WatchNumber, Watch>,
    /// The watches as their client calls them.
    numbers: BTreeMap<WatchId, WatchNumber>,
    last_number: WatchNumber,
    next_id: WatchId,
    outbox: VecDeque<WatchResponse>,
    /// History that was read, for the watches that have not got it yet.
    piece: Piece,
    /// How many pieces were read.
    pieces: u64,
    /// Whether the client waits to hear how far its watches are.
    is_progress_asked: bool,
    progress_timer: Interval,
}

struct Watch {
    id: WatchId,
    class: Class,
    /// As the client asked for it; 0 means from now on.
    start: Revision,
    place: Place,
    is_fragmented: bool,
    /// Whether the client wants to hear of progress now and then.
    notifies_progress: bool,
    /// Whether the watch was told anything since the last tick of the timer.
    is_fresh: bool,
    /// The number of the last piece of history that had a share for it.
    last_piece: u64,
}

/// Where a watch gets its events from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// From the hub.
    Synced,
    /// From history: everything below this revision was sent.
    Behind(Revision),
    /// From nowhere: what it has not seen is compacted away. Its id stays taken until the client
    /// cancels it, as in etcd.
    Ended,
}

/// What made a session wake up.
enum Wake {
    Delivery(Delivery),
    Tick,
    Signal,
    /// The store is stopping.
    Closed,
}

// === impl Session ===

impl Session {
    pub(crate) fn new(context: Arc<SessionContext>) -> Self {
        let interval = context.progress_interval;
        let mut progress_timer = tokio::time::interval_at(Instant::now() + interval, interval);
        progress_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (membership, deliveries) = context.hub.enter();
        Self {
            membership,
            deliveries,
            context,
            watches: BTreeMap::new(),
            numbers: BTreeMap::new(),
            last_number: WatchNumber(0),
            next_id: 0,
            outbox: VecDeque::new(),
            piece: Piece::default(),
            pieces: 0,
            is_progress_asked: false,
            progress_timer,
        }
    }

    /// The next response that is ready to be sent.
    pub(crate) fn pop(&mut self) -> Option<WatchResponse> {
        self.outbox.pop_front()
    }

    /// Handles a request; `permitted` says whether the range of a new watch may be read.
    pub(crate) fn on_request(
        &mut self,
        request: WatchRequest,
        permitted: impl FnOnce(&WatchCreateRequest) -> Result<(), auth::Error>,
    ) {
        match request.request_union {
            Some(RequestUnion::CreateRequest(create)) => {
                let now = self.revision();
                let response = match self.create(&create, now, permitted) {
                    Ok(id) => answer::created(id, now),
                    Err(reason) => answer::refused(reason, now),
                };
                self.outbox.push_back(response);
            }
            Some(RequestUnion::CancelRequest(cancel)) => self.cancel(cancel.watch_id),
            Some(RequestUnion::ProgressRequest(_)) => {
                self.is_progress_asked |= self.may_tell_progress();
                self.ask_progress();
            }
            None => {}
        }
    }

    /// Whether a watch has history to read, or may have caught up.
    pub(crate) fn is_behind(&self) -> bool {
        !self.piece.shares.is_empty() || self.behind().next().is_some()
    }

    /// Waits for the hub or the clock, and takes in what came. Returns whether the store goes on.
    /// Cancel-safe.
    pub(crate) async fn turn(&mut self) -> bool {
        let wake = self.wait().await;
        self.on_wake(wake)
    }

    async fn wait(&mut self) -> Wake {
        tokio::select! {
            delivery = self.deliveries.recv() => match delivery {
                Some(delivery) => Wake::Delivery(delivery),
                None => Wake::Closed,
            },
            _ = self.progress_timer.tick() => Wake::Tick,
            () = self.membership.signalled() => Wake::Signal,
        }
    }

    fn on_wake(&mut self, wake: Wake) -> bool {
        match wake {
            Wake::Delivery(delivery) => self.on_delivery(delivery),
            Wake::Tick => self.on_tick(),
            Wake::Signal => {}
            Wake::Closed => return false,
        }
        self.take_deliveries();
        true
    }

    /// Does one step for the watches that are behind: gives one of them its share of the piece of
    /// history that was read last, or reads the next one. What the others are told in between is taken
    /// too: one watch may have years to read. Cancel-safe.
    pub(crate) async fn advance(&mut self) -> Result<(), Error> {
        if self.progress_timer.tick().now_or_never().is_some() {
            self.on_tick();
        }
        self.take_deliveries();
        if self.piece.shares.is_empty() {
            self.read_piece().await?;
        }
        self.hand_out();
        self.ask_progress();
        Ok(())
    }

    async fn read_piece(&mut self) -> Result<(), Error> {
        for (number, watch) in &mut self.watches {
            watch.join_if_caught_up(*number, &self.membership);
        }
        let Some(from) = self.read_from() else { return Ok(()) };
        let behind = self.behind().filter(|(_, _, next)| *next >= from);
        let wanted: Vec<Wanted> = behind
            .map(|(number, watch, next)| Wanted {
                watch: number,
                class: watch.class.clone(),
                from: next,
            })
            .collect();
        let history = self.context.history.clone();
        let read = tokio::task::spawn_blocking(move || history.read(from)?.piece(wanted));
        match read.await.expect("reading history does not panic") {
            Ok(piece) => self.on_piece(piece),
            Err(history::Error::Compacted { compacted }) => self.cancel_compacted(compacted),
            Err(history::Error::Read { source }) => return Err(Error::History(source)),
        }
        Ok(())
    }

    /// Where to read on: in turn from where the watch is that is furthest behind, whose pieces have
    /// something for all whom it reaches, and that which has waited longest, so that no watch waits
    /// until another has read all it missed.
    fn read_from(&self) -> Option<Revision> {
        let behind = self.behind().map(|(_, watch, next)| (watch.last_piece, next));
        let chosen = if self.pieces.is_multiple_of(2) {
            behind.min_by_key(|(_, next)| *next)
        } else {
            behind.min()
        };
        chosen.map(|(_, next)| next)
    }

    fn create(
        &mut self,
        request: &WatchCreateRequest,
        now: Revision,
        permitted: impl FnOnce(&WatchCreateRequest) -> Result<(), auth::Error>,
    ) -> Result<WatchId, CancelReason> {
        if request.start_revision < 0 {
            return Err(CancelReason::Compacted);
        }
        permitted(request).map_err(auth::Error::cancel_reason)?;
        let class = Class::new(request);
        if class.is_empty() {
            return Err(CancelReason::EmptyRange);
        }
        let id = self.choose_id(request.watch_id)?;
        let start = Revision(request.start_revision);
        let from = match start {
            Revision(0) => now.next(),
            start => start,
        };
        let number = WatchNumber(self.last_number.0 + 1);
        let is_synced = self.membership.join(number, &class, from);
        let watch = Watch {
            id,
            class,
            start,
            place: if is_synced { Place::Synced } else { Place::Behind(from) },
            is_fragmented: request.fragment,
            notifies_progress: request.progress_notify,
            is_fresh: false,
            last_piece: 0,
        };
        self.last_number = number;
        self.numbers.insert(id, number);
        self.watches.insert(number, watch);
        self.context.metrics.watches.inc();
        Ok(id)
    }

    /// The client's own id, or the next one that is free.
    fn choose_id(&mut self, wanted: WatchId) -> Result<WatchId, CancelReason> {
        if wanted != 0 {
            let is_taken = self.numbers.contains_key(&wanted);
            return if is_taken { Err(CancelReason::DuplicateWatchId) } else { Ok(wanted) };
        }
        while self.numbers.contains_key(&self.next_id) {
            self.next_id += 1;
        }
        self.next_id += 1;
        Ok(self.next_id - 1)
    }

    fn cancel(&mut self, id: WatchId) {
        let Some(number) = self.numbers.remove(&id) else { return };
        if let Some(watch) = self.watches.remove(&number) {
            self.membership.leave(number, &watch.class);
            self.context.metrics.watches.dec();
        }
        self.outbox.push_back(answer::canceled(id, self.revision()));
    }

    /// The watches that read history, with the first revision each has not got.
    fn behind(&self) -> impl Iterator<Item = (WatchNumber, &Watch, Revision)> {
        self.watches.iter().filter_map(|(number, watch)| match watch.place {
            Place::Behind(next) => Some((*number, watch, next)),
            Place::Synced | Place::Ended => None,
        })
    }

    /// Notes which watches fell behind, then takes what is queued: as many deliveries as there can be
    /// from before the watches fell, so that these are sent before history is.
    fn take_deliveries(&mut self) {
        for (number, next) in self.membership.take_behind() {
            if let Some(watch) = self.watches.get_mut(&number) {
                watch.place = Place::Behind(next);
            }
        }
        for _ in 0..DELIVERIES_MAX {
            let Ok(delivery) = self.deliveries.try_recv() else { break };
            self.on_delivery(delivery);
        }
        self.ask_progress();
    }

    fn on_delivery(&mut self, delivery: Delivery) {
        match delivery {
            Delivery::Events { watch, events, from, revision } => {
                self.send_events(watch, &events, from, revision);
            }
            Delivery::Progress { about: About::Stream, revision } => {
                // What the others have yet to read is asked about again when they have.
                if self.behind().all(|(_, _, next)| next > revision) {
                    self.is_progress_asked = false;
                    self.outbox.push_back(answer::response(NO_WATCH, revision));
                }
            }
            Delivery::Progress { about: About::Watch(number), revision } => {
                if let Some(watch) = self.watches.get(&number)
                    && watch.place == Place::Synced
                {
                    self.outbox.push_back(answer::response(watch.id, revision));
                }
            }
        }
    }

    fn on_piece(&mut self, piece: Piece) {
        self.pieces += 1;
        for (number, _) in &piece.shares {
            if let Some(watch) = self.watches.get_mut(number) {
                watch.last_piece = self.pieces;
            }
        }
        self.piece = piece;
    }

    /// Gives watches their shares until one is told something: what is ready to be sent stays small,
    /// whatever the number of watches.
    fn hand_out(&mut self) {
        while let Some((number, events)) = self.piece.shares.pop_front() {
            if self.hand_to(number, &events) {
                break;
            }
        }
    }

    /// Returns whether there was anything to tell.
    fn hand_to(&mut self, number: WatchNumber, events: &Events) -> bool {
        // It may have been canceled since.
        let watch = self.watches.get(&number);
        let Some(Place::Behind(next)) = watch.map(|watch| watch.place) else { return false };
        let last = self.piece.last;
        let is_told = self.send_events(number, events, next, last);
        if let Some(watch) = self.watches.get_mut(&number) {
            watch.place = Place::Behind(next.max(last.next()));
            watch.join_if_caught_up(number, &self.membership);
        }
        is_told
    }

    fn cancel_compacted(&mut self, compacted: Revision) {
        for watch in self.watches.values_mut() {
            if matches!(watch.place, Place::Behind(next) if next < compacted) {
                watch.place = Place::Ended;
                self.outbox.push_back(answer::compacted(watch.id, compacted));
            }
        }
    }

    /// Tells a watch those of the events that are from `from` on, if there are any.
    fn send_events(
        &mut self,
        number: WatchNumber,
        events: &Events,
        from: Revision,
        revision: Revision,
    ) -> bool {
        let Some(watch) = self.watches.get_mut(&number) else { return false };
        let wanted = events.iter().filter(|(revision, _)| *revision >= from);
        let events: Vec<Event> = wanted.map(|(_, event)| event.clone()).collect();
        if events.is_empty() {
            return false;
        }
        watch.is_fresh = true;
        self.context.metrics.events.inc_by(events.len() as u64);
        let whole = WatchResponse { events, ..answer::response(watch.id, revision) };
        let is_large = whole.encoded_len() >= self.context.fragment_bytes;
        if watch.is_fragmented && is_large {
            self.outbox.extend(answer::fragments(whole, self.context.fragment_bytes));
        } else {
            self.outbox.push_back(whole);
        }
        true
    }

    /// A watch that starts in the future promises nothing yet, and without watches there is nothing
    /// to promise.
    fn may_tell_progress(&self) -> bool {
        let revision = self.revision();
        !self.watches.is_empty() && self.watches.values().all(|watch| watch.start <= revision)
    }

    fn ask_progress(&self) {
        if self.is_progress_asked && !self.is_behind() {
            self.membership.ask_progress(About::Stream, self.revision());
        }
    }

    fn on_tick(&mut self) {
        let revision = self.revision();
        for (number, watch) in &mut self.watches {
            let is_due = watch.notifies_progress && !watch.is_fresh;
            if is_due && watch.place == Place::Synced && watch.start <= revision {
                self.membership.ask_progress(About::Watch(*number), revision);
            }
            watch.is_fresh = false;
        }
    }

    fn revision(&self) -> Revision {
        self.context.history.published.revision()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.context.metrics.watches.dec_by(self.watches.len().try_into().unwrap_or(i64::MAX));
    }
}

// === impl Watch ===

impl Watch {
    fn join_if_caught_up(&mut self, number: WatchNumber, membership: &Membership) {
        if let Place::Behind(next) = self.place
            && membership.join(number, &self.class, next)
        {
            self.place = Place::Synced;
        }
    }
}

#[cfg(test)]
mod tests;
