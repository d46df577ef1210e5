//! Hands every new batch to the watches that have seen all before it.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel},
    },
    time::Duration,
};

use etcd_api::mvccpb::Event;
use mvcc::{ReadError, Revision, Values};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{
    Notify,
    mpsc::{self, error::TrySendError::Full},
};

use super::{
    WatchNumber,
    class::{self, Class},
    index::{ClassId, Index},
};
use crate::{
    sequencer::{ChangeEvent, CommittedBatch, Previous},
    values::KeptValues,
};

/// Batches that wait for the hub. If it falls further behind, its watches read history instead.
const BATCHES_MAX: usize = 1024;

/// Deliveries that wait for one stream. A watch whose delivery finds no room falls behind.
pub(super) const DELIVERIES_MAX: usize = 128;

pub(super) type StreamId = u64;

/// How soon the hub notices that a batch found no room, if no other follows it.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Creates the hub at a durable revision, with the end that is fed and the thread that takes in.
pub(crate) fn hub(durable: Revision, kept: Arc<KeptValues>) -> (Arc<Hub>, Feed, HubThread) {
    let (sender, receiver) = sync_channel(BATCHES_MAX);
    let state = State { processed: durable, ..State::default() };
    let hub = Arc::new(Hub { dropped: AtomicI64::new(0), state: Mutex::new(state) });
    let feed = Feed { hub: hub.clone(), batches: sender };
    (hub.clone(), feed, HubThread { hub, kept, batches: receiver })
}

/// Where sessions meet the batches.
pub(crate) struct Hub {
    /// The newest revision of a batch that found no room.
    dropped: AtomicI64,
    state: Mutex<State>,
}

/// Brings batches to the hub. The hub ends when it is gone.
pub(crate) struct Feed {
    hub: Arc<Hub>,
    batches: SyncSender<CommittedBatch>,
}

/// Takes in batches until the feed is gone.
pub(crate) struct HubThread {
    hub: Arc<Hub>,
    kept: Arc<KeptValues>,
    batches: Receiver<CommittedBatch>,
}

#[derive(Default)]
struct State {
    /// Everything up to here was handed out.
    processed: Revision,
    streams: HashMap<StreamId, Stream>,
    last_stream: StreamId,
    /// Streams that wait to be told of progress.
    asking: BTreeSet<StreamId>,
    index: Index,
    ids: HashMap<Class, ClassId>,
    classes: Vec<Option<Members>>,
}

/// A stream as the hub sees it.
struct Stream {
    queue: mpsc::Sender<Delivery>,
    signal: Arc<Signal>,
    /// Watches that fell behind, with the first revision they have not got.
    behind: Vec<(WatchNumber, Revision)>,
    /// Progress that was asked for, to be told once the revision is handed out.
    progress: Vec<(About, Revision)>,
}

/// Tells a session that something other than a delivery waits for it.
#[derive(Default)]
pub(super) struct Signal {
    has_behind: AtomicBool,
    notify: Notify,
}

/// The synced watches of one class.
struct Members {
    class: Class,
    watches: Vec<Watch>,
}

#[derive(Clone, Copy)]
struct Watch {
    stream: StreamId,
    number: WatchNumber,
    /// Events below this revision are not for this watch.
    from: Revision,
}

/// What a session gets from the hub, in order.
pub(super) enum Delivery {
    /// The watch wants those from `from` on.
    Events { watch: WatchNumber, events: Events, from: Revision, revision: Revision },
    /// No event at or below `revision` will follow.
    Progress { about: About, revision: Revision },
}

/// Whose progress it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// That of all watches of the stream.
    Stream,
    Watch(WatchNumber),
}

/// A session's place in the hub; leaving it ends all its watches.
pub(super) struct Membership {
    hub: Arc<Hub>,
    stream: StreamId,
    signal: Arc<Signal>,
}

/// The events of one class in one batch, each with its revision.
pub(super) type Events = Arc<[(Revision, Event)]>;

/// One change, encoded at most once with and once without the version it replaced.
struct Encoder<'b> {
    change: &'b ChangeEvent,
    plain: OnceCell<Event>,
    with_previous: OnceCell<Event>,
}

// === impl Hub ===

impl Hub {
    /// Adds a stream without watches.
    pub(super) fn enter(self: &Arc<Self>) -> (Membership, mpsc::Receiver<Delivery>) {
        let (queue, deliveries) = mpsc::channel(DELIVERIES_MAX);
        let signal = Arc::new(Signal::default());
        let stream =
            Stream { queue, signal: signal.clone(), behind: Vec::new(), progress: Vec::new() };
        let mut state = self.state.lock();
        state.last_stream += 1;
        let id = state.last_stream;
        state.streams.insert(id, stream);
        (Membership { hub: self.clone(), stream: id, signal }, deliveries)
    }

    /// The number of streams, and of watches that are synced.
    pub(crate) fn census(&self) -> (usize, usize) {
        let state = self.state.lock();
        let watches = state.classes.iter().flatten().map(|members| members.watches.len()).sum();
        (state.streams.len(), watches)
    }
}

// === impl Feed ===

impl Feed {
    /// Passes on a durable batch. Never waits: if there is no room, the watches read it from
    /// history.
    pub(crate) fn bring(&self, batch: CommittedBatch) {
        let last = batch.last;
        match self.batches.try_send(batch) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(_)) => self.skip_to(last),
        }
    }

    /// Lets watches read everything up to `revision` from history.
    pub(crate) fn skip_to(&self, revision: Revision) {
        self.hub.dropped.fetch_max(revision.0, Ordering::AcqRel);
    }
}

// === impl HubThread ===

impl HubThread {
    pub(crate) fn run(self) -> Result<(), ReadError> {
        loop {
            match self.batches.recv_timeout(LOOK_INTERVAL) {
                Ok(batch) => self.take_in(batch)?,
                Err(RecvTimeoutError::Timeout) => self.skip_dropped(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        // Without their queues the sessions end.
        self.hub.state.lock().streams.clear();
        Ok(())
    }

    pub(super) fn take_in(&self, mut batch: CommittedBatch) -> Result<(), ReadError> {
        let mut state = self.hub.state.lock();
        state.leave_behind(Revision(batch.first.0 - 1));
        loop {
            let missing = state.missing(&batch);
            if missing.is_empty() {
                state.hand_out(&batch);
                break;
            }
            // Reading may take long, and nobody else has to wait for it. Whoever joins meanwhile may
            // want more.
            let read = MutexGuard::unlocked(&mut state, || self.read_back(&mut batch, &missing));
            match read {
                Ok(()) => {}
                // What is needed for the events cannot be had now; each watch asks for it itself.
                Err(error) if is_passing(&error) => {
                    state.leave_behind(batch.last);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        state.tell_progress();
        Ok(())
    }

    fn read_back(&self, batch: &mut CommittedBatch, missing: &[usize]) -> Result<(), ReadError> {
        for index in missing {
            let previous = &mut batch.events[*index].previous;
            if let Previous::At(position) = previous {
                *previous = Previous::Known(self.kept.read(*position)?);
            }
        }
        Ok(())
    }

    /// The queue is empty, so whatever was dropped will not come any more.
    pub(super) fn skip_dropped(&self) {
        let dropped = Revision(self.hub.dropped.load(Ordering::Acquire));
        let mut state = self.hub.state.lock();
        state.leave_behind(dropped);
        state.tell_progress();
    }
}

fn is_passing(error: &ReadError) -> bool {
    error.downcast_ref().is_some_and(crate::error::is_passing)
}

// === impl State ===

impl State {
    /// Moves on to `revision` without events: synced watches fall behind if that skips anything.
    fn leave_behind(&mut self, revision: Revision) {
        if revision <= self.processed {
            return;
        }
        let missed = self.processed.next();
        let classes = std::mem::take(&mut self.classes);
        self.index = Index::default();
        self.ids.clear();
        for watch in classes.into_iter().flatten().flat_map(|members| members.watches) {
            self.fall_behind(watch, missed);
        }
        self.processed = revision;
    }

    /// The changes whose previous version somebody wants and that is not at hand.
    fn missing(&self, batch: &CommittedBatch) -> Vec<usize> {
        let is_wanted = |change: &ChangeEvent| {
            let mut is_wanted = false;
            self.index.matching(change.kv.key(), |id| {
                let class = &self.classes[id].as_ref().expect("indexed classes exist").class;
                is_wanted |= class.wants_previous && class.passes_filters(&change.kv);
            });
            is_wanted
        };
        let is_missing =
            |change: &ChangeEvent| matches!(change.previous, Previous::At(_)) && is_wanted(change);
        let changes = batch.events.iter().enumerate();
        changes.filter(|(_, change)| is_missing(change)).map(|(index, _)| index).collect()
    }

    /// Hands out a batch of which nothing is [missing](Self::missing).
    fn hand_out(&mut self, batch: &CommittedBatch) {
        let mut wanted: BTreeMap<ClassId, Vec<(Revision, Event)>> = BTreeMap::new();
        for change in &batch.events {
            let encoder = Encoder::new(change);
            self.index.matching(change.kv.key(), |id| {
                let class = &self.classes[id].as_ref().expect("indexed classes exist").class;
                if class.passes_filters(&change.kv) {
                    let event = encoder.event(class.wants_previous);
                    wanted.entry(id).or_default().push((change.position.revision, event));
                }
            });
        }
        for (id, events) in wanted {
            self.deliver(id, events.into(), batch.last);
        }
        self.processed = batch.last;
    }

    /// Gives the events to every watch of the class; those without room fall behind.
    fn deliver(&mut self, id: ClassId, events: Events, revision: Revision) {
        let members = self.classes[id].as_mut().expect("indexed classes exist");
        let first = events[0].0;
        let mut fallen = Vec::new();
        members.watches.retain(|watch| {
            let Some(stream) = self.streams.get(&watch.stream) else { return false };
            let delivery = Delivery::Events {
                watch: watch.number,
                events: events.clone(),
                from: watch.from,
                revision,
            };
            let has_room = stream.queue.try_send(delivery).is_ok();
            if !has_room {
                fallen.push(*watch);
            }
            has_room
        });
        for watch in fallen {
            self.fall_behind(watch, first);
        }
        self.drop_if_empty(id);
    }

    fn fall_behind(&mut self, watch: Watch, missed: Revision) {
        if let Some(stream) = self.streams.get_mut(&watch.stream) {
            stream.behind.push((watch.number, missed.max(watch.from)));
            stream.signal.has_behind.store(true, Ordering::Release);
            stream.signal.notify.notify_one();
        }
    }

    fn join(&mut self, watch: Watch, class: Class) {
        let id = match self.ids.get(&class) {
            Some(id) => *id,
            None => self.add_class(class),
        };
        self.classes[id].as_mut().expect("indexed classes exist").watches.push(watch);
    }

    fn add_class(&mut self, class: Class) -> ClassId {
        let id = self.classes.iter().position(Option::is_none).unwrap_or_else(|| {
            self.classes.push(None);
            self.classes.len() - 1
        });
        self.index.insert(id, &class);
        self.ids.insert(class.clone(), id);
        self.classes[id] = Some(Members { class, watches: Vec::new() });
        id
    }

    fn drop_if_empty(&mut self, id: ClassId) {
        if self.classes[id].as_ref().is_some_and(|members| members.watches.is_empty())
            && let Some(members) = self.classes[id].take()
        {
            self.index.remove(id, &members.class);
            self.ids.remove(&members.class);
        }
    }

    fn leave(&mut self, stream: StreamId, watch: WatchNumber, class: &Class) {
        if let Some(stream) = self.streams.get_mut(&stream) {
            stream.behind.retain(|(other, _)| *other != watch);
            stream.progress.retain(|(about, _)| *about != About::Watch(watch));
        }
        if let Some(id) = self.ids.get(class).copied() {
            let members = self.classes[id].as_mut().expect("indexed classes exist");
            members.watches.retain(|other| (other.stream, other.number) != (stream, watch));
            self.drop_if_empty(id);
        }
    }

    /// Tells the streams that asked how far they are, behind all events up to there. What cannot be
    /// told now, or finds no room, waits for the next time.
    fn tell_progress(&mut self) {
        let processed = self.processed;
        self.asking.retain(|id| {
            let Some(stream) = self.streams.get_mut(id) else { return false };
            // The session has yet to hear what these miss, some of it below `processed`.
            if !stream.behind.is_empty() {
                return true;
            }
            stream.progress.retain(|(about, at)| {
                if *at > processed {
                    return true;
                }
                let progress = Delivery::Progress { about: *about, revision: processed };
                matches!(stream.queue.try_send(progress), Err(Full(_)))
            });
            !stream.progress.is_empty()
        });
    }
}

// === impl Encoder ===

impl<'b> Encoder<'b> {
    fn new(change: &'b ChangeEvent) -> Self {
        Self { change, plain: OnceCell::new(), with_previous: OnceCell::new() }
    }

    fn event(&self, wants_previous: bool) -> Event {
        let cell = if wants_previous { &self.with_previous } else { &self.plain };
        let kv = &self.change.kv;
        let event = || match &self.change.previous {
            Previous::Known(previous) if wants_previous => class::event(kv, Some(previous)),
            Previous::At(_) if wants_previous => unreachable!("it was read back before"),
            Previous::None | Previous::Known(_) | Previous::At(_) => class::event(kv, None),
        };
        cell.get_or_init(event).clone()
    }
}

// === impl Membership ===

impl Membership {
    /// Takes part from revision `from` on if everything below it was handed out; else the watch has
    /// to read history first.
    pub(super) fn join(&self, number: WatchNumber, class: &Class, from: Revision) -> bool {
        let mut state = self.hub.state.lock();
        let is_synced = from > state.processed;
        if is_synced {
            state.join(Watch { stream: self.stream, number, from }, class.clone());
        }
        is_synced
    }

    pub(super) fn leave(&self, number: WatchNumber, class: &Class) {
        self.hub.state.lock().leave(self.stream, number, class);
    }

    /// The watches that fell behind since the last call. What was delivered to them comes before what
    /// they missed, and all of it is queued when this returns: it has to be sent before history is.
    pub(super) fn take_behind(&self) -> Vec<(WatchNumber, Revision)> {
        if !self.signal.has_behind.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        let mut state = self.hub.state.lock();
        let stream = state.streams.get_mut(&self.stream);
        stream.map(|stream| std::mem::take(&mut stream.behind)).unwrap_or_default()
    }

    /// Asks for a delivery of progress at `at` or later, behind all events up to there.
    pub(super) fn ask_progress(&self, about: About, at: Revision) {
        let mut state = self.hub.state.lock();
        if let Some(stream) = state.streams.get_mut(&self.stream)
            && !stream.progress.iter().any(|(asked, _)| *asked == about)
        {
            stream.progress.push((about, at));
            state.asking.insert(self.stream);
        }
        state.tell_progress();
    }

    /// Waits until watches may have fallen behind.
    pub(super) async fn signalled(&self) {
        self.signal.notify.notified().await;
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut state = self.hub.state.lock();
        state.streams.remove(&self.stream);
        for id in 0..state.classes.len() {
            if let Some(members) = &mut state.classes[id] {
                members.watches.retain(|watch| watch.stream != self.stream);
                state.drop_if_empty(id);
            }
        }
    }
}
