//! What the model knows of history: what must be kept, and what came before.

use std::collections::{BTreeMap, BTreeSet};

use etcd_api::mvccpb::KeyValue;
use mvcc::Position;

use super::Model;

impl Model {
    pub(crate) fn events(&self) -> &[(Position, KeyValue)] {
        &self.events
    }

    /// The changes that must outlive a compaction at `compacted`: those after it, and each key's
    /// newest one before or at it, unless that is a delete from before it.
    pub(crate) fn kept_after(&self, compacted: i64) -> BTreeSet<Position> {
        let mut newest: BTreeMap<&[u8], &(Position, KeyValue)> = BTreeMap::new();
        let mut kept = BTreeSet::new();
        let keys: Vec<&[u8]> = self.events.iter().map(|(_, kv)| kv.key()).collect();
        for (event, key) in self.events.iter().zip(keys) {
            if event.0.revision.0 > compacted {
                kept.insert(event.0);
            } else {
                newest.insert(key, event);
            }
        }
        let stays = |event: &&&(Position, KeyValue)| {
            !event.1.is_tombstone() || event.0.revision.0 == compacted
        };
        kept.extend(newest.values().filter(stays).map(|event| event.0));
        kept
    }

    /// The version of the event's key just before the revision of the event, if it existed.
    pub(crate) fn previous(&self, event: &(Position, KeyValue)) -> Option<Position> {
        let before = |other: &&(Position, KeyValue)| {
            other.1.key() == event.1.key() && other.0.revision < event.0.revision
        };
        let previous = self.events.iter().rfind(before)?;
        (!previous.1.is_tombstone()).then_some(previous.0)
    }
}
