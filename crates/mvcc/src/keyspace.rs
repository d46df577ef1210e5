//! The one mutable state: the newest view, the leases, and what compaction will find superseded.
//!
//! There is one keyspace, owned by whoever gives out revisions. It is always ahead of what is
//! durable or equal to it; readers get [`View`]s of it.

use std::{collections::VecDeque, ops::ControlFlow, sync::Arc};

use etcd_api::mvccpb::KeyValue;

use crate::{
    Error, KeyRange, LeaseId, Leases, Position, Revision, View,
    entry::{Entry, Pruned, Version},
    key::Key,
    tree::Tree,
};

#[derive(Debug)]
pub struct Keyspace {
    pub(crate) view: View,
    pub(crate) leases: Leases,
    /// Keys with a version that a compaction may drop, by the revision that superseded it.
    superseded: VecDeque<Superseded>,
    /// Tombstones written at exactly the compacted revision: they stay until the next compaction.
    kept_tombstones: Vec<Superseded>,
    pub(crate) record_bytes_max: usize,
}

#[derive(Debug)]
struct Superseded {
    at: Revision,
    key: Key,
}

/// What one step of sweeping found.
#[derive(Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Changes that no read can ask for any more, from views taken after the step.
    pub dead: Vec<Position>,
    /// Whether nothing superseded is left at or below the compacted revision.
    pub is_done: bool,
}

// === impl Keyspace ===

impl Keyspace {
    /// The empty keyspace, at revision 1.
    #[must_use]
    pub fn new() -> Self {
        let view = View {
            tree: Tree::default(),
            revision: Revision::INITIAL,
            compacted: Revision::NEVER_COMPACTED,
        };
        Self {
            view,
            leases: Leases::default(),
            superseded: VecDeque::new(),
            kept_tombstones: Vec::new(),
            record_bytes_max: usize::MAX,
        }
    }

    /// From now on a transaction that would leave a larger record is refused. Each change is counted
    /// with [`CHANGE_OVERHEAD_BYTES`](crate::CHANGE_OVERHEAD_BYTES) beside its key-value.
    pub fn bound_records(&mut self, bytes_max: usize) {
        self.record_bytes_max = bytes_max;
    }

    /// The state as it is now.
    #[must_use]
    pub fn view(&self) -> View {
        self.view.clone()
    }

    #[must_use]
    pub fn revision(&self) -> Revision {
        self.view.revision
    }

    #[must_use]
    pub fn compacted(&self) -> Revision {
        self.view.compacted
    }

    #[must_use]
    pub fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Adds a lease without keys.
    pub fn grant(&mut self, id: LeaseId, ttl_s: i64) -> Result<(), Error> {
        self.leases.grant(id, ttl_s)
    }

    /// Makes these the only leases, each with the keys whose newest version names it. For a keyspace
    /// that followed somebody else's changes and was told of no lease.
    pub fn set_leases(&mut self, leases: impl IntoIterator<Item = (LeaseId, i64)>) {
        self.leases = leases.into_iter().collect();
        let everything = KeyRange::new(b"\0", b"\0");
        self.view.tree.walk(everything, self.view.revision, &mut |entry| {
            if let Some(newest) = entry.live() {
                self.leases.reattach(&entry.key, LeaseId::NONE, newest.lease);
            }
            ControlFlow::Continue(())
        });
    }

    /// Applies a change that was made durable earlier. Changes come in order; leases were granted
    /// before. The value may be left out of `kv`.
    pub fn replay(&mut self, position: Position, kv: &KeyValue) {
        assert!(position.revision >= self.view.revision, "changes are replayed in order");
        self.view.revision = position.revision;
        self.apply(position, kv);
    }

    /// Puts the keyspace where a journal stands whose newest changes were all compacted away.
    pub fn replay_end(&mut self, durable: Revision) {
        assert!(durable >= self.view.revision, "no change lies behind the durable revision");
        self.view.revision = durable;
    }

    /// Forgets history below `to`. Reads below it are refused at once; the work is left to
    /// [`sweep`](Self::sweep).
    pub fn compact(&mut self, to: Revision) -> Result<(), Error> {
        let View { revision: current, compacted, .. } = self.view;
        if to <= compacted {
            return Err(Error::Compacted { wanted: to, compacted });
        }
        if to > current {
            return Err(Error::FutureRevision { wanted: to, current });
        }
        self.view.compacted = to;
        for tombstone in self.kept_tombstones.drain(..).rev() {
            self.superseded.push_front(tombstone);
        }
        Ok(())
    }

    /// Drops superseded versions of up to `keys_max` keys from the index and names their places.
    pub fn sweep(&mut self, keys_max: usize) -> Sweep {
        let mut dead = Vec::new();
        for _ in 0..keys_max {
            match self.superseded.pop_front_if(|next| next.at <= self.view.compacted) {
                Some(next) => self.prune(next, &mut dead),
                None => return Sweep { dead, is_done: true },
            }
        }
        Sweep { dead, is_done: false }
    }

    fn prune(&mut self, superseded: Superseded, dead: &mut Vec<Position>) {
        let compacted = self.view.compacted;
        // Another change of the same key may have been swept before this one.
        let Some(entry) = self.view.tree.get(&superseded.key) else { return };
        let pruned = entry.pruned(compacted);
        let is_kept_tombstone = superseded.at == compacted && entry.at(compacted).is_none();
        if let Pruned::Changed { entry, dead: gone } = pruned {
            dead.extend(gone);
            match entry {
                Some(entry) => self.view.tree.insert(Arc::new(entry)),
                None => self.view.tree.remove(&superseded.key),
            }
        }
        if is_kept_tombstone {
            self.kept_tombstones.push(superseded);
        }
    }

    /// Makes `kv` the newest version of its key. Returns what it replaced.
    pub(crate) fn apply(&mut self, position: Position, kv: &KeyValue) -> Option<Arc<Entry>> {
        let parts = kv.parts();
        let newest = Version {
            position,
            created: Revision(parts.create_revision),
            version: parts.version,
            lease: LeaseId(parts.lease),
        };
        let before = self.view.tree.get(parts.key).cloned();
        let entry = match &before {
            Some(before) => before.succeeded_by(newest),
            None => Entry::first(parts.key.into(), newest),
        };
        let old_lease = before.as_ref().map_or(LeaseId::NONE, |before| before.newest.lease);
        self.leases.reattach(&entry.key, old_lease, newest.lease);
        if before.is_some() || newest.is_tombstone() {
            self.superseded.push_back(Superseded { at: position.revision, key: entry.key.clone() });
        }
        self.view.tree.insert(Arc::new(entry));
        before
    }

    /// Takes back the newest change of `key`, the last one that was applied.
    pub(crate) fn unapply(&mut self, key: &[u8], before: Option<Arc<Entry>>) {
        let Some(after) = self.view.tree.get(key).cloned() else { return };
        let old_lease = before.as_ref().map_or(LeaseId::NONE, |before| before.newest.lease);
        self.leases.reattach(&after.key, after.newest.lease, old_lease);
        if before.is_some() {
            self.superseded.pop_back();
        }
        match before {
            Some(before) => self.view.tree.insert(before),
            None => self.view.tree.remove(key),
        }
    }
}

impl Default for Keyspace {
    fn default() -> Self {
        Self::new()
    }
}
