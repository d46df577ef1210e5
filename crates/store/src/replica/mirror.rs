//! The state of a shared journal, kept up by reading what somebody else wrote.

use std::sync::Arc;

use journal::{BatchId, Head, Journal, Shared, Tip};
use mvcc::{Keyspace, Record, Revision, View};
use tokio::time::Instant;

use super::{leftovers::Leftovers, progress::Progress};
use crate::{
    alarm::Alarms,
    auth,
    context::Context,
    load::{self, LoadError},
    meta::Meta,
    sequencer::{ChangeEvent, CommittedBatch, Previous},
    watch::Feed,
};

/// Keys swept at once after a compaction.
const SWEEP_KEYS_MAX: usize = 1024;

/// Revisions followed and shown at once: a member that was away for long reads what it missed in
/// pieces, with the largest requests of two hundred MiB.
const FOLLOW_REVISIONS_MAX: i64 = 128;

/// A follower's copy.
pub(crate) struct Mirror {
    pub(super) keyspace: Keyspace,
    /// The meta table is known up to this batch.
    meta: Option<BatchId>,
    pub(super) alarms: Alarms,
    pub(super) auth: auth::State,
    pub(super) leftovers: Leftovers,
}

// === impl Mirror ===

impl Mirror {
    /// Reads everything.
    pub(crate) fn load(journal: &dyn Journal, shared: &dyn Shared) -> Result<Self, LoadError> {
        let read = |source| LoadError::Read { source };
        let known = shared.tip().map_err(read)?;
        let meta = load::meta(journal)?;
        // What was compacted by then is below this, and all up to this is in what is read next.
        let tip = shared.tip().map_err(read)?;
        let (mut keyspace, mut progress) = (Keyspace::new(), Progress::new(Instant::now()));
        let mut take_in = |head: Head| {
            keyspace.replay(head.position, &head.kv);
            if let Some(changes) = progress.on_change(Instant::now()) {
                let (revision, to) = (keyspace.revision().0, tip.revision.0);
                tracing::info!(changes, revision, to, "reading the journal");
            }
        };
        journal.heads(&mut take_in).map_err(read)?;
        keyspace.replay_end(tip.revision.max(keyspace.revision()));
        if let Some(compacted) = meta.compacted {
            keyspace.compact(compacted).map_err(|source| LoadError::Compacted { source })?;
        }
        // How old the passwords are is not known, so that tokens from before any later change end.
        let auth = load::auth(&meta)?.following(&auth::State::default());
        let mut mirror = Self {
            keyspace,
            meta: known.meta,
            alarms: Alarms::new(meta.alarms),
            auth,
            leftovers: Leftovers::default(),
        };
        mirror.sweep();
        Ok(mirror)
    }

    /// Follows up to a tip and shows it: records first, because what the meta table says of
    /// revisions is about these. What it says of leases is read by who takes the role.
    pub(super) fn follow(
        &mut self,
        tip: Tip,
        shared: &dyn Shared,
        context: &Context,
        feed: &Feed,
    ) -> Result<(), LoadError> {
        let has_new_meta = tip.meta > self.meta;
        if !has_new_meta {
            return self.follow_records(tip.revision, shared, context, feed);
        }
        let meta = load::meta(&*context.journal)?;
        let later = shared.tip().map_err(|source| LoadError::Read { source })?;
        self.follow_records(later.revision, shared, context, feed)?;
        self.apply_meta(meta)?;
        self.meta = tip.meta;
        self.show(context);
        Ok(())
    }

    fn follow_records(
        &mut self,
        to: Revision,
        shared: &dyn Shared,
        context: &Context,
        feed: &Feed,
    ) -> Result<(), LoadError> {
        loop {
            let from = self.keyspace.revision().next();
            if from > to {
                return Ok(());
            }
            let last = Revision(to.0.min(from.0 + FOLLOW_REVISIONS_MAX - 1));
            let records = shared.tail(from, last).map_err(|source| LoadError::Read { source })?;
            self.take_in(&records, context, feed);
            if self.keyspace.revision() < last {
                let source =
                    journal::Error::Forgotten { revision: self.keyspace.revision().next() };
                return Err(LoadError::Read { source });
            }
        }
    }

    fn take_in(&mut self, records: &[Record], context: &Context, feed: &Feed) {
        for (position, kv) in records.iter().flat_map(Record::positions) {
            self.keyspace.replay(position, kv);
        }
        let changes = self.changes(records, context);
        context.published.store(self.keyspace.view());
        if let Some(changes) = changes {
            feed.bring(changes);
        }
    }

    fn changes(&self, records: &[Record], context: &Context) -> Option<CommittedBatch> {
        let view = self.keyspace.view();
        let (first, last) = (records.first()?.revision, records.last()?.revision);
        let mut events = Vec::with_capacity(records.len());
        for (position, kv) in records.iter().flat_map(Record::positions) {
            let previous = match view.previous(kv.key(), position) {
                None => Previous::None,
                Some(at) => context.kept.take(at).map_or(Previous::At(at), Previous::Known),
            };
            if !kv.is_tombstone() {
                context.kept.remember(position, kv.clone());
            }
            events.push(ChangeEvent { position, kv: kv.clone(), previous });
        }
        Some(CommittedBatch { first, last, events })
    }

    fn apply_meta(&mut self, meta: Meta) -> Result<(), LoadError> {
        let auth = load::auth(&meta)?;
        self.auth = auth.following(&self.auth);
        self.alarms = Alarms::new(meta.alarms);
        if let Some(to) = meta.given_up {
            self.leftovers.on_given_up(to);
        }
        if let Some(compacted) = meta.compacted.filter(|to| *to > self.keyspace.compacted()) {
            let compact = self.keyspace.compact(compacted);
            compact.map_err(|source| LoadError::Compacted { source })?;
            self.sweep();
        }
        Ok(())
    }

    fn sweep(&mut self) {
        let mut dead = Vec::new();
        loop {
            let sweep = self.keyspace.sweep(SWEEP_KEYS_MAX);
            dead.extend(sweep.dead);
            if sweep.is_done {
                break;
            }
        }
        self.leftovers.add(self.keyspace.compacted(), dead);
    }

    /// Up to where it knows the journal.
    pub(super) fn known(&self) -> (Revision, Option<BatchId>) {
        (self.keyspace.revision(), self.meta)
    }

    pub(crate) fn view(&self) -> View {
        self.keyspace.view()
    }

    /// Makes what is known here what readers see.
    pub(crate) fn show(&self, context: &Context) {
        context.published.store(self.keyspace.view());
        context.alarms.store(Arc::new(self.alarms.clone()));
        context.gate.publish(Arc::new(self.auth.clone()));
    }
}
