//! One watch stream: its watches, what its client asks, and what it is told.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use etcd_api::{
    CancelReason,
    etcdserverpb::{
        ResponseHeader, WatchCreateRequest, WatchRequest, WatchResponse,
        watch_request::RequestUnion,
    },
    mvccpb::Event,
};
use mvcc::Revision;
use prost::Message;
use tokio::{
    sync::mpsc,
    time::{Instant, Interval, MissedTickBehavior},
};

use super::{
    NO_WATCH, WatchId, WatchNumber,
    class::Class,
    history::{self, Chunk, History},
    hub::{About, DELIVERIES_MAX, Delivery, Hub, Membership},
};
use crate::{Error, auth, metrics::Watches};

/// Tag and length around an event in a response, at most.
const EVENT_FRAMING_BYTES: usize = 6;

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
}

/// What each watch wants of a piece of history.
type Wanted = Vec<(WatchNumber, Vec<Event>)>;

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
                    Ok(id) => created(id, now),
                    Err(reason) => refused(reason, now),
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
        self.behind().next().is_some()
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

    /// Does one step for the watches that are behind: joins those that have caught up, and reads a
    /// piece of history for the others.
    pub(crate) async fn advance(&mut self) -> Result<(), Error> {
        self.join_caught_up();
        let Some(from) = self.behind().map(|(_, next)| next).min() else {
            self.ask_progress();
            return Ok(());
        };
        let history = self.context.history.clone();
        let wanted: Vec<(WatchNumber, Class, Revision)> = self
            .behind()
            .filter_map(|(number, next)| {
                Some((number, self.watches.get(&number)?.class.clone(), next))
            })
            .collect();
        let read = tokio::task::spawn_blocking(move || read_history(&history, from, wanted));
        match read.await.expect("reading history does not panic") {
            Ok((chunk, events)) => self.on_history(&chunk, events),
            Err(history::Error::Compacted { compacted }) => self.cancel_compacted(compacted),
            Err(history::Error::Read { source }) => return Err(Error::History(source)),
        }
        Ok(())
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
        self.outbox.push_back(canceled(id, self.revision()));
    }

    fn behind(&self) -> impl Iterator<Item = (WatchNumber, Revision)> {
        self.watches.iter().filter_map(|(number, watch)| match watch.place {
            Place::Behind(next) => Some((*number, next)),
            Place::Synced | Place::Ended => None,
        })
    }

    fn join_caught_up(&mut self) {
        for (number, watch) in &mut self.watches {
            if let Place::Behind(next) = watch.place
                && self.membership.join(*number, &watch.class, next)
            {
                watch.place = Place::Synced;
            }
        }
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
                let events = events
                    .iter()
                    .filter(|(revision, _)| *revision >= from)
                    .map(|(_, event)| event.clone())
                    .collect();
                self.send_events(watch, events, revision);
            }
            Delivery::Progress { about: About::Stream, revision } => {
                // What the others have yet to read is asked about again when they have.
                if self.behind().all(|(_, next)| next > revision) {
                    self.is_progress_asked = false;
                    self.outbox.push_back(response(NO_WATCH, revision));
                }
            }
            Delivery::Progress { about: About::Watch(number), revision } => {
                if let Some(watch) = self.watches.get(&number)
                    && watch.place == Place::Synced
                {
                    self.outbox.push_back(response(watch.id, revision));
                }
            }
        }
    }

    fn on_history(&mut self, chunk: &Chunk, events: Wanted) {
        for (number, events) in events {
            self.send_events(number, events, chunk.last);
            if let Some(watch) = self.watches.get_mut(&number)
                && let Place::Behind(next) = &mut watch.place
            {
                *next = chunk.last.next().max(*next);
            }
        }
    }

    fn cancel_compacted(&mut self, compacted: Revision) {
        for watch in self.watches.values_mut() {
            if matches!(watch.place, Place::Behind(next) if next < compacted) {
                watch.place = Place::Ended;
                self.outbox.push_back(WatchResponse {
                    canceled: true,
                    compact_revision: compacted.0,
                    ..response(watch.id, Revision(0))
                });
            }
        }
    }

    fn send_events(&mut self, number: WatchNumber, events: Vec<Event>, revision: Revision) {
        let Some(watch) = self.watches.get_mut(&number) else { return };
        if events.is_empty() {
            return;
        }
        watch.is_fresh = true;
        self.context.metrics.events.inc_by(events.len() as u64);
        let whole = WatchResponse { events, ..response(watch.id, revision) };
        let is_large = whole.encoded_len() >= self.context.fragment_bytes;
        if watch.is_fragmented && is_large {
            self.outbox.extend(fragments(whole, self.context.fragment_bytes));
        } else {
            self.outbox.push_back(whole);
        }
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

/// One piece of history, and what each watch wants of it. Blocks.
fn read_history(
    history: &History,
    from: Revision,
    wanted: Vec<(WatchNumber, Class, Revision)>,
) -> Result<(Chunk, Wanted), history::Error> {
    let chunk = history.read(from)?;
    let events = wanted
        .into_iter()
        .map(|(number, class, next)| Ok((number, chunk.events(&class, next)?)))
        .collect::<Result<_, _>>()?;
    Ok((chunk, events))
}

fn response(id: WatchId, revision: Revision) -> WatchResponse {
    let header = ResponseHeader { revision: revision.0, ..Default::default() };
    WatchResponse { header: Some(header), watch_id: id, ..Default::default() }
}

fn created(id: WatchId, revision: Revision) -> WatchResponse {
    WatchResponse { created: true, ..response(id, revision) }
}

fn refused(reason: CancelReason, revision: Revision) -> WatchResponse {
    WatchResponse {
        created: true,
        canceled: true,
        cancel_reason: reason.message().to_owned(),
        ..response(NO_WATCH, revision)
    }
}

fn canceled(id: WatchId, revision: Revision) -> WatchResponse {
    WatchResponse { canceled: true, ..response(id, revision) }
}

/// Cuts a response so that each piece stays below `bytes_max`, unless one event alone is larger.
/// All pieces but the last are marked.
fn fragments(whole: WatchResponse, bytes_max: usize) -> Vec<WatchResponse> {
    let frame = WatchResponse { events: Vec::new(), fragment: true, ..whole.clone() };
    let mut pieces = vec![frame.clone()];
    let mut bytes = frame.encoded_len();
    for event in whole.events {
        let event_bytes = event.encoded_len() + EVENT_FRAMING_BYTES;
        let piece = pieces.last().expect("there is always a piece");
        if !piece.events.is_empty() && bytes + event_bytes >= bytes_max {
            pieces.push(frame.clone());
            bytes = frame.encoded_len();
        }
        bytes += event_bytes;
        pieces.last_mut().expect("there is always a piece").events.push(event);
    }
    pieces.last_mut().expect("there is always a piece").fragment = false;
    pieces
}

#[cfg(test)]
mod tests;
