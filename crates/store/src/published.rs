//! What readers see: the durable state, replaced as a whole after each batch.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use mvcc::{Revision, View};
use parking_lot::Mutex;

/// The newest durable state. Loading it takes no lock.
pub(crate) struct Published {
    current: ArcSwap<State>,
    /// One mark per compacted revision that a state somebody holds was published with.
    generations: Mutex<Vec<(Revision, Weak<Generation>)>>,
}

/// One durable state. Whoever holds it may read any position it shows: what a compaction drops is
/// given up only when nobody holds a state from before it.
pub(crate) struct State {
    pub(crate) view: View,
    generation: Arc<Generation>,
}

/// Shared by all states between two compactions; when it is gone, so are their readers.
struct Generation;

// === impl Published ===

impl Published {
    pub(crate) fn new(view: View) -> Self {
        let generation = Arc::new(Generation);
        let generations = Mutex::new(vec![(view.compacted(), Arc::downgrade(&generation))]);
        Self { current: ArcSwap::from_pointee(State { view, generation }), generations }
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
            let generation = Arc::new(Generation);
            self.generations.lock().push((view.compacted(), Arc::downgrade(&generation)));
            generation
        };
        self.current.store(Arc::new(State { view, generation }));
    }

    /// Whether somebody still holds a state from before history was forgotten up to `compacted`.
    pub(crate) fn has_readers_before(&self, compacted: Revision) -> bool {
        let mut generations = self.generations.lock();
        generations.retain(|(_, generation)| generation.strong_count() > 0);
        generations.iter().any(|(of, _)| *of < compacted)
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

    #[test]
    fn a_held_state_holds_up_only_later_compactions() {
        let mut keyspace = Keyspace::new();
        let published = Published::new(keyspace.view());
        let put = PutRequest { key: "a".into(), ..Default::default() };
        for _ in 0..3 {
            keyspace.put(&put, &NoValues).unwrap();
        }
        keyspace.compact(Revision(2)).unwrap();
        published.store(keyspace.view());
        let held = published.load();
        assert!(!published.has_readers_before(Revision(2)));

        keyspace.compact(Revision(3)).unwrap();
        published.store(keyspace.view());
        assert!(published.has_readers_before(Revision(3)));
        drop(held);
        assert!(!published.has_readers_before(Revision(3)));
    }
}
