//! What readers see: the durable state, replaced as a whole after each batch.

use std::{
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use journal::{BatchId, Tip};
use mvcc::{Revision, View};
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

/// Readers from before a compaction that do not move for so long are given up: what they hold takes
/// room, and a client that stopped reading may never go on. Far above any pause of one that reads.
const STALL_MAX: Duration = Duration::from_secs(60);

/// The newest durable state. Loading it takes no lock.
pub(crate) struct Published {
    current: ArcSwap<State>,
    /// One mark per compacted revision that a state somebody holds was published with, in order.
    marks: Mutex<Vec<Mark>>,
    /// The last batch of this process that readers see, with all it brought beside its changes.
    own: watch::Sender<Option<BatchId>>,
}

/// One durable state. Whoever holds it may read any position it shows: what a compaction drops is
/// given up only when nobody holds a state from before it, or when those who do have stalled. Who
/// reads over a time that somebody else decides therefore calls [`go_on`](Self::go_on).
pub(crate) struct State {
    pub(crate) view: View,
    generation: Arc<Generation>,
}

/// Shared by all states between two compactions; when it is gone, so are their readers. None joins
/// them after the next compaction, so they end: each has only so much to read.
#[derive(Default)]
struct Generation {
    /// Counts what they read.
    steps: AtomicU64,
    /// Set before anything they may still ask for is given up.
    overtaken_by: OnceLock<Revision>,
}

/// What is known of a generation's readers.
struct Mark {
    compacted: Revision,
    generation: Weak<Generation>,
    /// Their steps when they were first looked at, or last seen to have moved, and when that was.
    seen: Option<(u64, Instant)>,
}

// === impl Published ===

impl Published {
    pub(crate) fn new(view: View) -> Self {
        let generation = Arc::new(Generation::default());
        let marks = Mutex::new(vec![Mark::of(view.compacted(), &generation)]);
        let current = ArcSwap::from_pointee(State { view, generation });
        Self { current, marks, own: watch::Sender::new(None) }
    }

    pub(crate) fn load(&self) -> Arc<State> {
        self.current.load_full()
    }

    pub(crate) fn revision(&self) -> Revision {
        self.current.load().view.revision()
    }

    /// Makes `view` what readers see. Called by one thread, in order.
    pub(crate) fn store(&self, view: View) {
        let before = self.current.load();
        let generation = if before.view.compacted() == view.compacted() {
            before.generation.clone()
        } else {
            let generation = Arc::new(Generation::default());
            self.marks.lock().push(Mark::of(view.compacted(), &generation));
            generation
        };
        self.current.store(Arc::new(State { view, generation }));
    }

    /// Notes that all of a batch of this process is seen.
    pub(crate) fn note(&self, own: BatchId) {
        self.own.send_replace(Some(own));
    }

    /// Changes when something is noted.
    pub(crate) fn noted(&self) -> watch::Receiver<Option<BatchId>> {
        self.own.subscribe()
    }

    /// Whether readers see all of a journal that this process writes, up to `tip`. What others
    /// wrote was shown before it began to write.
    pub(crate) fn shows(&self, tip: &Tip) -> bool {
        let is_seen = |news: BatchId| news.epoch < tip.epoch || *self.own.borrow() >= Some(news);
        self.revision() >= tip.revision && tip.meta.is_none_or(is_seen)
    }

    pub(crate) fn compacted(&self) -> Revision {
        self.current.load().view.compacted()
    }

    /// Whether somebody still reads in a state from before history was forgotten up to `compacted`.
    /// Once this was denied, all who do are refused what they have not read.
    pub(crate) fn has_readers_before(&self, compacted: Revision, now: Instant) -> bool {
        let mut marks = self.marks.lock();
        marks.retain(|mark| mark.generation.strong_count() > 0);
        let old = marks.partition_point(|mark| mark.compacted < compacted);
        let old = &mut marks[..old];
        let mut is_read = false;
        for mark in &mut *old {
            is_read |= !mark.has_stalled(now);
        }
        if !is_read {
            old.iter().for_each(|mark| mark.overtake(compacted));
        }
        is_read
    }
}

// === impl State ===

impl State {
    /// Says that a reader has read on, and checks that nothing was missing from what it read. Called
    /// after each piece.
    pub(crate) fn go_on(&self) -> Result<(), mvcc::Error> {
        self.generation.steps.fetch_add(1, Ordering::Relaxed);
        match self.generation.overtaken_by.get() {
            None => Ok(()),
            Some(compacted) => {
                Err(mvcc::Error::Compacted { wanted: self.view.revision(), compacted: *compacted })
            }
        }
    }
}

// === impl Mark ===

impl Mark {
    fn of(compacted: Revision, generation: &Arc<Generation>) -> Self {
        Self { compacted, generation: Arc::downgrade(generation), seen: None }
    }

    fn has_stalled(&mut self, now: Instant) -> bool {
        let Some(generation) = self.generation.upgrade() else { return true };
        let steps = generation.steps.load(Ordering::Relaxed);
        match self.seen {
            Some((before, since)) if before == steps => now.duration_since(since) >= STALL_MAX,
            _ => {
                self.seen = Some((steps, now));
                false
            }
        }
    }

    fn overtake(&self, compacted: Revision) {
        if let Some(generation) = self.generation.upgrade() {
            generation.overtaken_by.get_or_init(|| compacted);
        }
    }
}

#[cfg(test)]
mod tests {
    use etcd_api::etcdserverpb::PutRequest;
    use mvcc::{Keyspace, Position, ReadError, Values};

    use super::*;

    struct NoValues;

    impl Values for NoValues {
        fn read(&self, _: Position) -> Result<etcd_api::mvccpb::KeyValue, ReadError> {
            Err("nothing is kept".into())
        }
    }

    /// A state from before a compaction at revision 3, held by a reader.
    fn held() -> (Published, Arc<State>) {
        let mut keyspace = Keyspace::new();
        let published = Published::new(keyspace.view());
        let put = PutRequest { key: "a".into(), ..Default::default() };
        for _ in 0..3 {
            keyspace.put(&put, &NoValues).unwrap();
        }
        keyspace.compact(Revision(2)).unwrap();
        published.store(keyspace.view());
        let held = published.load();
        keyspace.compact(Revision(3)).unwrap();
        published.store(keyspace.view());
        (published, held)
    }

    #[test]
    fn a_held_state_holds_up_only_later_compactions() {
        let (published, held) = held();
        let now = Instant::now();
        assert!(!published.has_readers_before(Revision(2), now));
        assert!(published.has_readers_before(Revision(3), now));
        drop(held);
        assert!(!published.has_readers_before(Revision(3), now));
    }

    #[test]
    fn a_reader_that_goes_on_is_waited_for() {
        let (published, held) = held();
        let mut now = Instant::now();
        for _ in 0..10 {
            assert!(published.has_readers_before(Revision(3), now));
            held.go_on().unwrap();
            now += STALL_MAX;
        }
    }

    #[test]
    fn a_reader_that_has_stalled_is_not_waited_for_and_hears_of_it() {
        let (published, held) = held();
        let now = Instant::now();
        assert!(published.has_readers_before(Revision(3), now));
        assert!(published.has_readers_before(Revision(3), now + STALL_MAX / 2));
        held.go_on().unwrap();
        assert!(published.has_readers_before(Revision(3), now + STALL_MAX));
        assert!(!published.has_readers_before(Revision(3), now + STALL_MAX * 2));
        let refused = held.go_on().unwrap_err();
        assert!(matches!(refused, mvcc::Error::Compacted { .. }), "{refused}");
        published.load().go_on().expect("a state of now is not overtaken");
    }
}
