//! What a transaction means for a node and its record: the tables D and A.
//!
//! Decides by identity and version alone, never by what was decided before: duplicates, late
//! arrivals and repetitions after a crash end where one delivery in order would have.

use jiff::{SignedDuration, Timestamp};

use super::{
    change,
    command::{Command, Decision, Event, EventReason, QuarantineReason, Row},
    ledger::Restored,
    names::TransactionName,
    object::Marker,
    policy::Policy,
    reading::Reading,
    record::{Record, Stored, Unreadable},
    settle::{Cause, drift_event, settle},
    snapshot::Snapshot,
    transaction::{Kind, Poison, Source, Transaction},
};

/// How much later than the record a node has to be created for its lower resource version to mean
/// that versions went back: far more than clocks differ.
const EPOCH_GAP: SignedDuration = SignedDuration::from_mins(10);

#[must_use]
pub fn decide(
    reading: &Reading,
    transaction: &Transaction,
    policy: &Policy,
    now: Timestamp,
) -> Decision {
    if let Stored::Unreadable(unreadable) = &reading.stored {
        return unreadable_record(transaction, unreadable);
    }
    let decision = match &transaction.kind {
        Kind::Added => added(reading, transaction, policy, now),
        Kind::Deleted(snapshot) => {
            Deletion { reading, transaction, snapshot, policy, now }.decide()
        }
    };
    finished(decision, &transaction.name)
}

/// What to do about a queued ConfigMap that is no transaction: it stays, out of the way.
#[must_use]
pub fn poisoned(name: &TransactionName, poison: &Poison) -> Decision {
    let event = Event::new(EventReason::Quarantined, format!("{name}: {poison}"));
    quarantined(Row::Poison, name, poison.reason(), event)
}

/// The labels stay in the queue until a person has mended the record or renamed the other ConfigMap.
fn unreadable_record(transaction: &Transaction, unreadable: &Unreadable) -> Decision {
    let (reason, event) = match unreadable {
        Unreadable::Foreign => (QuarantineReason::NameClash, EventReason::NameClash),
        _ => (QuarantineReason::RecordUnreadable, EventReason::Quarantined),
    };
    let event = Event::new(event, format!("the record of {}: {unreadable}", transaction.node));
    quarantined(Row::Unreadable, &transaction.name, reason, event)
}

fn quarantined(
    row: Row,
    name: &TransactionName,
    reason: QuarantineReason,
    event: Event,
) -> Decision {
    let quarantine = Command::Quarantine { transaction: name.clone(), reason };
    Decision::new(row, vec![quarantine, Command::Event(event)])
}

/// Takes the transaction out of the queue after all writes and before anyone is told.
fn finished(mut decision: Decision, name: &TransactionName) -> Decision {
    let is_event = |command: &Command| matches!(command, Command::Event(_));
    let after_writes = decision.commands.iter().position(is_event);
    let at = after_writes.unwrap_or(decision.commands.len());
    decision.commands.insert(at, Command::DeleteTransaction(name.clone()));
    decision
}

fn added(
    reading: &Reading,
    transaction: &Transaction,
    policy: &Policy,
    now: Timestamp,
) -> Decision {
    // Without a uid the node that lives is meant.
    let is_meant = |uid| transaction.uid.as_ref().is_none_or(|meant| meant == uid);
    if !reading.staying().is_some_and(|live| is_meant(&live.uid)) {
        return Decision::new(Row::A1, Vec::new());
    }
    if reading.record().is_none() {
        return Decision::new(Row::A2, Vec::new());
    }
    let settled = settle(reading, Cause::Added, policy, now);
    Decision { row: Row::A3, then: Some(settled.row), commands: settled.commands }
}

/// A `deleted` with all that is known.
struct Deletion<'a> {
    reading: &'a Reading,
    transaction: &'a Transaction,
    snapshot: &'a Snapshot,
    policy: &'a Policy,
    now: Timestamp,
}

// === impl Deletion ===

impl Deletion<'_> {
    fn decide(&self) -> Decision {
        if self.is_contradicted() {
            let note = "a deletion of this node is queued, but it lives";
            let event = Event::new(EventReason::DeleteContradicted, note);
            return Decision::new(Row::D0, vec![Command::Event(event)]);
        }
        let Some(record) = self.reading.record() else {
            return self.store(Row::D1, &Record::new(self.snapshot.clone(), self.now), None);
        };
        let row = self.row(record);
        let mut decision = match row {
            Row::D1 | Row::D3 => self.replace(row, record),
            Row::D2 if self.is_later(record) => self.replace(row, record),
            Row::D4 => self.keep_late(record),
            _ => Decision::new(row, Vec::new()),
        };
        let is_lower = self.transaction.rv() <= record.rv();
        if is_lower && (self.is_of_new_epoch(record) || row == Row::D3) {
            decision.commands.push(Command::Event(self.went_back(record)));
        }
        decision
    }

    /// The row for a node that has a record.
    fn row(&self, record: &Record) -> Row {
        let is_later = self.is_later(record);
        if self.transaction.uid.is_some() && self.transaction.uid.as_ref() == record.uid() {
            Row::D2
        } else if self.was_given(record) || (is_later && self.base_by_marker(record).is_some()) {
            Row::D3
        } else if !is_later {
            Row::D4
        } else if record.ledger.is_expired(self.policy.retention, self.now) {
            // It was not restored because of its age, so it must not keep newer labels out.
            Row::D1
        } else if self.snapshot.marker.is_some() {
            Row::D4
        } else {
            Row::D5
        }
    }

    fn is_contradicted(&self) -> bool {
        let uid = self.transaction.uid.as_ref();
        self.reading.staying().is_some_and(|live| Some(&live.uid) == uid)
    }

    /// Whether the deletion is a later word than the record.
    fn is_later(&self, record: &Record) -> bool {
        self.transaction.rv() > record.rv() || self.is_of_new_epoch(record)
    }

    /// Whether versions went back between the record and this node, as after a restored backup.
    fn is_of_new_epoch(&self, record: &Record) -> bool {
        let times = self.transaction.created.zip(record.ledger.stored_at);
        self.transaction.rv() <= record.rv()
            && times.is_some_and(|(created, stored)| created.duration_since(stored) > EPOCH_GAP)
    }

    /// Whether the snapshot shows the labels that this record was given to the incarnation with.
    ///
    /// A checkpoint from before the restore does not, though the incarnation is the same. And a
    /// record that is newer than the deletion and was replaced since that restore has the labels
    /// of a later incarnation.
    fn was_given(&self, record: &Record) -> bool {
        let uid = self.transaction.uid.as_ref();
        let restored = record.ledger.restored.as_ref();
        restored.filter(|restored| Some(&restored.uid) == uid).is_some_and(|restored| {
            let is_shown = !self.is_before(restored) || self.base_by_marker(record).is_some();
            is_shown && (self.is_later(record) || restored.rv == *record.rv())
        })
    }

    /// Whether the labels were seen before they were restored. What was last seen at the version
    /// that the restore was decided on is posted under that version or the next; a deletion after
    /// the restore has a later one.
    fn is_before(&self, restored: &Restored) -> bool {
        let decided_on = restored.node_rv.as_ref();
        let next = decided_on.map(|rv| rv.successor().unwrap_or_else(|| rv.clone()));
        next.is_some_and(|next| *self.transaction.rv() <= next)
    }

    /// The snapshot of this record that the node was marked with.
    fn base_by_marker<'r>(&self, record: &'r Record) -> Option<&'r Snapshot> {
        record.named(self.snapshot.marker.as_ref()?)
    }

    fn replace(&self, row: Row, record: &Record) -> Decision {
        let target = match row {
            Row::D2 => self.earlier_target(record),
            _ => Some(&record.snapshot),
        };
        let amended = target.and_then(|target| self.amended(record, target));
        let snapshot = amended.unwrap_or_else(|| self.snapshot.clone());
        self.store(row, &record.replaced_by(snapshot, self.now), drift_event(record))
    }

    /// The labels as they would be if the node had been given `target`, where it was given an
    /// older snapshot. They are marked so: a later word on the incarnation is amended alike.
    fn amended(&self, record: &Record, target: &Snapshot) -> Option<Snapshot> {
        let base = self.base_by_marker(record).or_else(|| self.base_by_ledger(record))?;
        if !record.has_before(&base.rv, &target.rv) {
            return None;
        }
        let labels = &self.snapshot.labels;
        let change = change::amend(labels, &base.labels, &target.labels, self.policy);
        Some(Snapshot {
            labels: change.applied_to(labels),
            marker: Some(Marker(target.rv.to_string())),
            ..self.snapshot.clone()
        })
    }

    fn base_by_ledger<'r>(&self, record: &'r Record) -> Option<&'r Snapshot> {
        let restored = record.ledger.restored.as_ref()?;
        (Some(&restored.uid) == self.transaction.uid.as_ref()).then(|| record.at(&restored.rv))?
    }

    /// What the word before this one on the same incarnation was amended to.
    fn earlier_target<'r>(&self, record: &'r Record) -> Option<&'r Snapshot> {
        record.past.named(record.snapshot.marker.as_ref()?)
    }

    fn store(&self, row: Row, record: &Record, drift: Option<Event>) -> Decision {
        let (count, rv) = (record.labels().len(), record.rv());
        let note =
            format!("{count} labels stored as snapshot {rv}{}", origin(self.transaction.source));
        let stored = Event::new(EventReason::LabelsStored, note);
        let events = std::iter::once(stored).chain(drift).map(Command::Event);
        let store = Command::StoreRecord(record.encode());
        Decision::new(row, std::iter::once(store).chain(events).collect())
    }

    /// Keeps labels that would otherwise be nowhere.
    fn keep_late(&self, record: &Record) -> Decision {
        let uid = self.transaction.uid.as_ref();
        let has_labels = record.snapshots().any(|known| known.labels == self.snapshot.labels);
        if has_labels || uid.is_some_and(|uid| record.past.covers(uid, self.transaction.rv())) {
            return Decision::new(Row::D4, Vec::new());
        }
        let kept = record.with_late(self.snapshot.clone());
        let note = format!("snapshot {} came late and is only kept", self.transaction.rv());
        let event = Command::Event(Event::new(EventReason::LateDelete, note));
        let store = (kept.past != record.past).then(|| Command::StoreRecord(kept.encode()));
        Decision::new(Row::D4, store.into_iter().chain([event]).collect())
    }

    fn went_back(&self, record: &Record) -> Event {
        let (ours, theirs) = (self.transaction.rv(), record.rv());
        let note = format!("{ours} is later than {theirs}: the node is the younger one");
        Event::new(EventReason::ResourceVersionWentBack, note)
    }
}

/// Where labels are from, if they may not be the node's last ones.
fn origin(source: Option<Source>) -> &'static str {
    match source {
        None | Some(Source::Watch) => "",
        Some(Source::Gap | Source::List) => ", as a watcher last saw them",
        Some(Source::Checkpoint) => ", from its checkpoint",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{names::NodeHash, object::Uid};

    /// What is told of a node whose end a watcher learned of like that.
    fn note(source: Option<Source>) -> String {
        let (rv, uid): (_, _) = ("20".parse().unwrap(), Some(Uid("u1".to_owned())));
        let name = TransactionName::new(NodeHash::of("n"), rv);
        let snapshot = Snapshot {
            node: "n".to_owned(),
            uid: uid.clone(),
            rv: name.rv().clone(),
            marker: None,
            labels: [("a".to_owned(), "1".to_owned())].into(),
        };
        let kind = Kind::Deleted(snapshot);
        let transaction =
            Transaction { name, node: "n".to_owned(), uid, created: None, source, kind };
        let reading = Reading { stored: Stored::Absent, live: None };
        let decision = decide(&reading, &transaction, &Policy::default(), Timestamp::UNIX_EPOCH);
        match decision.commands.last() {
            Some(Command::Event(event)) => event.note.clone(),
            other => panic!("{other:?} tells nobody"),
        }
    }

    #[test]
    fn labels_that_may_not_be_the_last_ones_say_where_they_are_from() {
        let stored = "1 labels stored as snapshot 20";
        assert_eq!(note(None), stored);
        assert_eq!(note(Some(Source::Watch)), stored);
        for source in [Source::Gap, Source::List] {
            assert_eq!(note(Some(source)), format!("{stored}, as a watcher last saw them"));
        }
        assert_eq!(note(Some(Source::Checkpoint)), format!("{stored}, from its checkpoint"));
    }
}
