//! What a session tells, step by step: each test decides what the hub and the session do when.

use std::collections::BTreeMap;

use etcd_api::etcdserverpb::{PutRequest, WatchCancelRequest, WatchProgressRequest};
use journal::{Batch, BatchId, EmbeddedJournal, Epoch, Journal};
use mvcc::Keyspace;
use tempfile::TempDir;

use super::*;
use crate::{
    published::Published,
    sequencer::{ChangeEvent, CommittedBatch, Previous},
    values::KeptValues,
    watch::{
        history::PIECE_BYTES,
        hub::{Feed, HubThread, hub},
    },
};

/// What is read of a long past takes several pieces of history.
const LARGE_VALUE: &[u8] = &[b'x'; 64 * 1024];
const LONG_PAST: usize = 4 * PIECE_BYTES / LARGE_VALUE.len();

/// Small enough that what is written before a test begins is read from the journal.
const CACHE_BYTES: u64 = 1 << 16;

/// Longer than anything here should take: a test that would wait for ever fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A store without its threads.
struct World {
    keyspace: Keyspace,
    journal: Arc<EmbeddedJournal>,
    epoch: Epoch,
    batches: u64,
    context: Arc<SessionContext>,
    feed: Feed,
    hub: HubThread,
    _folder: TempDir,
}

// === impl World ===

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = journal::embedded::Options::default();
        let journal = Arc::new(EmbeddedJournal::open(folder.path(), options).unwrap());
        let epoch = journal.claim().unwrap();
        let keyspace = Keyspace::new();
        let kept = Arc::new(KeptValues::new(journal.clone(), CACHE_BYTES));
        let published = Arc::new(Published::new(keyspace.view()));
        let (entrance, feed, hub) = hub(published.revision(), kept.clone());
        let context = Arc::new(SessionContext {
            hub: entrance,
            history: History { journal: journal.clone(), published, kept },
            fragment_bytes: usize::MAX,
            progress_interval: Duration::from_secs(3600),
            metrics: Watches::default(),
        });
        Self { keyspace, journal, epoch, batches: 0, context, feed, hub, _folder: folder }
    }

    fn session(&self) -> Session {
        Session::new(self.context.clone())
    }

    /// Puts a value so many times and publishes it, which the hub has yet to hear of.
    fn put(&mut self, key: &str, value: &[u8], times: usize) -> Vec<CommittedBatch> {
        let request = PutRequest {
            key: key.to_owned().into(),
            value: value.to_vec().into(),
            ..Default::default()
        };
        let kept = self.context.history.kept.clone();
        let put = |_| self.keyspace.put(&request, &*kept).unwrap().written.unwrap();
        let written: Vec<_> = (0..times).map(put).collect();
        let records = written.iter().map(|written| written.record.clone()).collect();
        self.batches += 1;
        let id = BatchId { epoch: self.epoch, number: self.batches };
        self.journal.append(self.epoch, &Batch { id, records, meta: Vec::new() }).unwrap();
        self.context.history.published.store(self.keyspace.view());
        written.into_iter().map(committed).collect()
    }

    /// Lets the hub hand out batches.
    fn hand_out(&self, batches: Vec<CommittedBatch>) {
        batches.into_iter().for_each(|batch| self.hub.take_in(batch).unwrap());
    }

    /// Lets the hub find that all batches of now were dropped.
    fn drop_all(&self) {
        self.feed.skip_to(self.keyspace.revision());
        self.hub.skip_dropped();
    }
}

fn committed(written: mvcc::Written) -> CommittedBatch {
    let revision = written.record.revision;
    let changes = written.record.positions().zip(&written.previous);
    let change =
        |((position, kv), previous): ((_, &etcd_api::mvccpb::KeyValue), &Option<_>)| ChangeEvent {
            position,
            kv: kv.clone(),
            previous: previous.map_or(Previous::None, Previous::At),
        };
    CommittedBatch { first: revision, last: revision, events: changes.map(change).collect() }
}

fn ask(session: &mut Session, request: RequestUnion) {
    session.on_request(WatchRequest { request_union: Some(request) }, |_| Ok(()));
}

/// Watches one key from a revision on, 0 for now.
fn create(session: &mut Session, watch_id: WatchId, key: &str, start_revision: i64) {
    let key = key.to_owned().into();
    let create = WatchCreateRequest { key, watch_id, start_revision, ..Default::default() };
    ask(session, RequestUnion::CreateRequest(create));
}

fn cancel(session: &mut Session, watch_id: WatchId) {
    ask(session, RequestUnion::CancelRequest(WatchCancelRequest { watch_id }));
}

fn ask_progress(session: &mut Session) {
    ask(session, RequestUnion::ProgressRequest(WatchProgressRequest {}));
}

/// Lets the session do all it can, and returns what it told.
async fn settle(session: &mut Session) -> Vec<WatchResponse> {
    session.take_deliveries();
    while session.is_behind() {
        session.advance().await.unwrap();
        session.take_deliveries();
    }
    told(session)
}

/// Serves the session until it has told so many events.
async fn hear(session: &mut Session, events: usize) -> Vec<WatchResponse> {
    let mut all = Vec::new();
    let mut missing = events;
    while missing > 0 {
        if session.is_behind() {
            session.advance().await.unwrap();
        } else {
            assert!(session.turn().await);
        }
        let told = told(session);
        let events: usize = told.iter().map(|response| response.events.len()).sum();
        missing = missing.checked_sub(events).expect("no event comes twice");
        all.extend(told);
    }
    all
}

fn told(session: &mut Session) -> Vec<WatchResponse> {
    std::iter::from_fn(|| session.pop()).collect()
}

/// Bytes of all events that the session holds to be sent, what is shared counted once.
fn held_bytes(session: &Session) -> usize {
    let ready = session.outbox.iter().flat_map(|response| &response.events);
    let shares = session.piece.shares.iter();
    let waiting = shares.flat_map(|(_, events)| events.iter().map(|(_, event)| event));
    let encoded = ready.chain(waiting).map(|event| event.encoded());
    encoded.map(|bytes| (bytes.as_ptr(), bytes.len())).collect::<BTreeMap<_, _>>().values().sum()
}

fn revision_of(response: &WatchResponse) -> i64 {
    response.header.as_ref().unwrap().revision
}

/// The revisions of the events a watch was told of, in the order they came.
fn heard(told: &[WatchResponse], watch_id: WatchId) -> Vec<i64> {
    let responses = told.iter().filter(|response| response.watch_id == watch_id);
    responses.flat_map(|response| &response.events).map(|event| event.kv().mod_revision()).collect()
}

/// Checks that progress was told at `revision`, and that no event at or below it came after.
fn check_promise(told: &[WatchResponse], watch_id: WatchId, revision: i64) {
    let is_promise = |response: &WatchResponse| {
        response.watch_id == watch_id && !response.created && response.events.is_empty()
    };
    let at = told.iter().position(is_promise).expect("progress is told");
    assert_eq!(revision_of(&told[at]), revision);
    let after = told[at..].iter().flat_map(|response| &response.events);
    let broken: Vec<i64> =
        after.map(|event| event.kv().mod_revision()).filter(|event| *event <= revision).collect();
    assert!(broken.is_empty(), "{broken:?} came after progress at {revision}");
}

/// The hub had dropped batches, told the watches to read them from history, and at once told the
/// client that it had seen them. A client that resumed from there never saw them.
#[tokio::test]
async fn progress_was_told_before_what_the_hub_had_dropped() {
    let mut world = World::new();
    let mut session = world.session();
    create(&mut session, 7, "a", 0);
    world.put("a", b"", 5);
    ask_progress(&mut session);
    world.drop_all();
    let told = settle(&mut session).await;
    check_promise(&told, NO_WATCH, 6);
    assert_eq!(heard(&told, 7), [2, 3, 4, 5, 6]);
}

/// The same with batches that the hub skips because a later one came.
#[tokio::test]
async fn progress_was_told_before_what_a_later_batch_had_skipped() {
    let mut world = World::new();
    let mut session = world.session();
    create(&mut session, 7, "a", 0);
    let mut batches = world.put("a", b"", 5);
    ask_progress(&mut session);
    world.hand_out(batches.split_off(4));
    let told = settle(&mut session).await;
    check_promise(&told, NO_WATCH, 6);
    assert_eq!(heard(&told, 7), [2, 3, 4, 5, 6]);
}

/// An event found the queue full, so its watch had to read it from history. Then the session took one
/// delivery, and progress took the room that came free.
#[tokio::test]
async fn progress_overtook_an_event_that_found_the_queue_full() {
    let mut world = World::new();
    let mut session = world.session();
    create(&mut session, 7, "a", 0);
    let batches = world.put("a", b"", DELIVERIES_MAX + 1);
    ask_progress(&mut session);
    world.hand_out(batches);
    let first = session.deliveries.recv().await.unwrap();
    world.hub.skip_dropped();
    assert!(session.on_wake(Wake::Delivery(first)));
    let told = settle(&mut session).await;
    let newest = world.keyspace.revision().0;
    check_promise(&told, NO_WATCH, newest);
    assert_eq!(heard(&told, 7), (2..=newest).collect::<Vec<_>>());
}

/// The session knew that its watch had to read history, the hub did not know it any more and told
/// of progress.
#[tokio::test]
async fn progress_was_told_while_history_was_read() {
    let mut world = World::new();
    let mut session = world.session();
    create(&mut session, 7, "a", 0);
    let batches = world.put("a", b"", DELIVERIES_MAX + 1);
    ask_progress(&mut session);
    world.hand_out(batches);
    session.take_deliveries();
    world.hub.skip_dropped();
    let told = settle(&mut session).await;
    let newest = world.keyspace.revision().0;
    check_promise(&told, NO_WATCH, newest);
    assert_eq!(heard(&told, 7), (2..=newest).collect::<Vec<_>>());
}

/// A watch that hears of progress by the clock was promised what it had yet to read, just so.
#[tokio::test]
async fn progress_by_the_clock_was_told_before_what_the_hub_had_dropped() {
    let mut world = World::new();
    let mut session = world.session();
    let create = WatchCreateRequest {
        key: "a".into(),
        watch_id: 7,
        progress_notify: true,
        ..Default::default()
    };
    ask(&mut session, RequestUnion::CreateRequest(create));
    world.put("a", b"", 5);
    session.on_tick();
    world.drop_all();
    let mut told = settle(&mut session).await;
    world.hub.skip_dropped();
    told.extend(settle(&mut session).await);
    check_promise(&told, 7, 6);
    assert_eq!(heard(&told, 7), [2, 3, 4, 5, 6]);
}

/// A client canceled a watch and used its id again for another key. What was queued for the first
/// watch was told as the second one's.
#[tokio::test]
async fn a_watch_was_told_the_events_of_one_that_had_its_id_before() {
    let mut world = World::new();
    let mut session = world.session();
    create(&mut session, 5, "a", 0);
    let batches = world.put("a", b"", 1);
    world.hand_out(batches);
    cancel(&mut session, 5);
    create(&mut session, 5, "b", 0);
    let batches = world.put("b", b"", 1);
    world.hand_out(batches);
    assert_eq!(heard(&settle(&mut session).await, 5), [3]);
}

/// The same, for the same key and from its history on: each event came twice.
#[tokio::test]
async fn a_watch_that_was_created_again_was_told_everything_twice() {
    let mut world = World::new();
    let mut session = world.session();
    create(&mut session, 5, "a", 0);
    let batches = world.put("a", b"", 3);
    world.hand_out(batches);
    cancel(&mut session, 5);
    create(&mut session, 5, "a", 2);
    assert_eq!(heard(&settle(&mut session).await, 5), [2, 3, 4]);
}

/// That the first watch had fallen behind was taken for the second one's.
#[tokio::test]
async fn a_watch_was_told_what_one_that_had_its_id_before_had_missed() {
    let mut world = World::new();
    let mut session = world.session();
    create(&mut session, 5, "a", 0);
    world.put("a", b"", 3);
    world.drop_all();
    cancel(&mut session, 5);
    create(&mut session, 5, "a", 0);
    let batches = world.put("a", b"", 1);
    world.hand_out(batches);
    assert_eq!(heard(&settle(&mut session).await, 5), [5]);
}

/// A watch with a long past to read silenced the others of its stream until it was through.
#[tokio::test]
async fn a_watch_that_read_history_silenced_the_others_on_its_stream() {
    let mut world = World::new();
    let past = world.put("far", LARGE_VALUE, LONG_PAST);
    world.hand_out(past);
    let mut session = world.session();
    create(&mut session, 1, "far", 2);
    create(&mut session, 2, "near", 0);
    session.advance().await.unwrap();
    assert!(!heard(&told(&mut session), 1).is_empty());
    let batches = world.put("near", b"", 1);
    world.hand_out(batches);
    ask_progress(&mut session);
    session.advance().await.unwrap();
    let soon = told(&mut session);
    let newest = world.keyspace.revision().0;
    assert_eq!(heard(&soon, 2), [newest]);
    assert!(session.is_behind());
    let later = settle(&mut session).await;
    check_promise(&later, NO_WATCH, newest);
}

/// A watch that fell behind for a moment waited until another one, far behind it, had caught up.
#[tokio::test]
async fn a_watch_that_fell_behind_waited_for_one_that_had_more_to_read() {
    let mut world = World::new();
    let past = world.put("far", LARGE_VALUE, LONG_PAST);
    world.hand_out(past);
    let mut session = world.session();
    create(&mut session, 1, "far", 2);
    create(&mut session, 2, "near", 0);
    session.advance().await.unwrap();
    let first = world.keyspace.revision().next().0;
    let batches = world.put("near", b"", DELIVERIES_MAX + 10);
    world.hand_out(batches);
    session.advance().await.unwrap();
    let newest = world.keyspace.revision().0;
    assert_eq!(heard(&told(&mut session), 2), (first..=newest).collect::<Vec<_>>());
    assert!(session.is_behind());
    let rest = settle(&mut session).await;
    assert_eq!(heard(&rest, 1).last(), Some(&(first - 1)));
}

/// Each watch that was behind got a copy of its own of the history that was read, and all copies were
/// made before the first was sent.
#[tokio::test]
async fn watches_that_are_behind_took_memory_by_their_number() {
    let mut world = World::new();
    let past = world.put("a", LARGE_VALUE, LONG_PAST);
    world.hand_out(past);
    let newest = world.keyspace.revision().0;
    let mut session = world.session();
    for id in 1..=20 {
        create(&mut session, id, "a", 2);
    }
    assert_eq!(told(&mut session).len(), 20);
    let mut all = Vec::new();
    while session.is_behind() {
        session.advance().await.unwrap();
        let held = held_bytes(&session);
        assert!(held <= PIECE_BYTES + 2 * LARGE_VALUE.len(), "{held} bytes are held at once");
        assert!(session.outbox.len() <= 1, "{} responses wait at once", session.outbox.len());
        all.extend(told(&mut session));
    }
    for id in 1..=20 {
        assert_eq!(heard(&all, id), (2..=newest).collect::<Vec<_>>(), "{id}");
    }
}

/// Small changes had replaced large values, and of these as much was read at once as a chunk of the
/// changes had asked for.
#[tokio::test]
async fn what_changes_had_replaced_took_memory_without_bound() {
    let mut world = World::new();
    for key in 0..LONG_PAST {
        world.put(&format!("k{key:04}"), LARGE_VALUE, 1);
    }
    let start = world.keyspace.revision().next().0;
    for key in 0..LONG_PAST {
        let batches = world.put(&format!("k{key:04}"), b"", 1);
        world.hand_out(batches);
    }
    let newest = world.keyspace.revision().0;
    let mut session = world.session();
    let create = WatchCreateRequest {
        key: "k".into(),
        range_end: "l".into(),
        watch_id: 1,
        start_revision: start,
        prev_kv: true,
        ..Default::default()
    };
    ask(&mut session, RequestUnion::CreateRequest(create));
    let mut all = told(&mut session);
    while session.is_behind() {
        session.advance().await.unwrap();
        let held = held_bytes(&session);
        assert!(held <= PIECE_BYTES + 2 * LARGE_VALUE.len(), "{held} bytes are held at once");
        all.extend(told(&mut session));
    }
    assert_eq!(heard(&all, 1), (start..=newest).collect::<Vec<_>>());
    let mut events = all.iter().flat_map(|response| &response.events);
    assert!(events.all(|event| event.prev_kv().is_some_and(|kv| kv.value() == LARGE_VALUE)));
}

/// More watches on one stream than it may have deliveries, so that they fall behind and catch up all
/// the time, while the hub goes on in its own thread.
#[tokio::test]
async fn watches_that_fall_behind_all_the_time_hear_everything_in_order() {
    const WATCHES: i64 = 200;
    const REVISIONS: usize = 300;
    let mut world = World::new();
    let mut session = world.session();
    for id in 1..=WATCHES {
        create(&mut session, id, "a", 0);
    }
    let batches = world.put("a", b"", REVISIONS);
    let newest = world.keyspace.revision().0;
    let World { hub, feed, .. } = world;
    let hub = std::thread::spawn(move || hub.run());
    batches.into_iter().for_each(|batch| feed.bring(batch));
    let events = REVISIONS * usize::try_from(WATCHES).unwrap();
    let all = tokio::time::timeout(PATIENCE, hear(&mut session, events)).await.expect("all come");
    for id in 1..=WATCHES {
        assert_eq!(heard(&all, id), (2..=newest).collect::<Vec<_>>(), "{id}");
    }
    drop(feed);
    hub.join().unwrap().unwrap();
}
