//! What is left to do for a live node and its record, whatever happened before.
//!
//! Runs for every `added`, and whenever a node's queue is empty: that makes good an `added` that
//! was dropped because its `deleted` came later.

use jiff::{SignedDuration, Timestamp};

use super::{
    change::{self, LabelChange},
    command::{Command, Decision, Event, EventReason, Row},
    ledger::Ledger,
    object::LiveNode,
    policy::Policy,
    reading::Reading,
    record::Record,
    snapshot::Snapshot,
};

/// Who asks. It only matters for a record that did not come from a deletion, beside a node that may
/// be older than it: applying that would undo months of edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The node was just added: every record applies.
    Added,
    /// The node's queue was worked off: such a record waits.
    Queue,
    /// The regular look at everything: such a record counts as given to the node.
    Resync,
}

#[must_use]
pub fn settle(reading: &Reading, cause: Cause, policy: &Policy, now: Timestamp) -> Decision {
    let (Some(record), Some(live)) = (reading.record(), reading.staying()) else {
        return Decision::new(Row::S1, Vec::new());
    };
    let settlement = Settlement { record, live, policy, now };
    let row = settlement.row(cause);
    let commands = match row {
        Row::S3 => vec![settlement.mark()],
        Row::S4 => settlement.amend(),
        Row::S5 => vec![settlement.skipped_as_expired()],
        Row::S6 => settlement.restore(),
        Row::Adoption if cause == Cause::Resync => vec![settlement.mark()],
        _ => Vec::new(),
    };
    Decision::new(row, commands)
}

/// Whether [`settle`] would act for an `added`, as far as a record's metadata tell. Records that
/// did not come from a deletion are passed over, as for [`Cause::Queue`].
#[must_use]
pub fn is_due(ledger: &Ledger, live: &LiveNode, retention: SignedDuration, now: Timestamp) -> bool {
    let (Some(_), Some(rv)) = (&ledger.stored_uid, &ledger.stored_rv) else { return false };
    let is_settled = ledger.is_given_to(&live.uid)
        && ledger.restored.as_ref().is_some_and(|restored| restored.rv == *rv);
    // A marker may name a snapshot of the past, and then age does not matter.
    let is_skipped = || {
        ledger.is_expired(retention, now) && live.marker.is_none() && !ledger.is_given_to(&live.uid)
    };
    !live.is_terminating && !is_settled && !is_skipped()
}

/// A live node that has a record.
struct Settlement<'a> {
    record: &'a Record,
    live: &'a LiveNode,
    policy: &'a Policy,
    now: Timestamp,
}

// === impl Settlement ===

impl Settlement<'_> {
    fn row(&self, cause: Cause) -> Row {
        let Self { record, live, .. } = self;
        let is_given = record.ledger.is_given_to(&live.uid);
        let restored = record.ledger.restored.as_ref();
        let is_current = restored.is_some_and(|restored| restored.rv == *record.rv());
        let marker = live.marker.as_ref();
        if is_given && is_current {
            Row::S2
        } else if marker.is_some_and(|marker| marker.names(record.rv())) {
            Row::S3
        } else if is_given || marker.is_some_and(|marker| record.past.named(marker).is_some()) {
            Row::S4
        } else if record.uid().is_none() && cause != Cause::Added {
            Row::Adoption
        } else if record.ledger.is_expired(self.policy.retention, self.now) {
            Row::S5
        } else {
            Row::S6
        }
    }

    fn restore(&self) -> Vec<Command> {
        let change = change::restore(self.record.labels(), &self.live.labels, self.policy);
        let note = format!("labels restored from snapshot {}", self.record.rv());
        self.give(change, Event::new(EventReason::LabelsRestored, note))
    }

    fn amend(&self) -> Vec<Command> {
        let Some(base) = self.base() else {
            let note = "the labels it was restored from are no longer known, so newer ones that \
                        came late cannot be told from edits";
            return vec![Command::Event(Event::new(EventReason::RestoreSkipped, note))];
        };
        let target = self.record.labels();
        let change = change::amend(&self.live.labels, &base.labels, target, self.policy);
        let note = format!("labels amended from snapshot {} to {}", base.rv, self.record.rv());
        self.give(change, Event::new(EventReason::LabelsAmended, note))
    }

    /// The past snapshot whose labels the node has: the newer one of what the record remembers
    /// and of what the marker says. The marker is ahead after a crash between patch and mark.
    fn base(&self) -> Option<&Snapshot> {
        let restored = self.record.ledger.restored.as_ref();
        let given = restored.filter(|restored| restored.uid == self.live.uid);
        self.record.past.iter().find(|snapshot| {
            let is_marked = self.live.marker.as_ref().is_some_and(|it| it.names(&snapshot.rv));
            is_marked || given.is_some_and(|given| given.rv == snapshot.rv)
        })
    }

    /// The node first: after a crash in between, its marker tells that only the mark is missing.
    fn give(&self, change: LabelChange, event: Event) -> Vec<Command> {
        let left_out = (!change.left_out.is_empty()).then(|| skipped_as_illegal(&change));
        let patch = change::patch(self.live, change, self.record.rv(), self.policy.marker);
        let events = [Some(event), left_out, drift_event(self.record)].into_iter().flatten();
        let writes = [Command::PatchNode(patch), self.mark()];
        writes.into_iter().chain(events.map(Command::Event)).collect()
    }

    fn mark(&self) -> Command {
        Command::MarkRestored(self.record.given_to(self.live, self.now).encode_ledger())
    }

    fn skipped_as_expired(&self) -> Command {
        let stored_at = self.record.ledger.stored_at.map_or_else(String::new, |at| at.to_string());
        let note = format!("labels stored at {stored_at} are older than the retention time");
        Command::Event(Event::new(EventReason::RestoreSkipped, note))
    }
}

fn skipped_as_illegal(change: &LabelChange) -> Event {
    let keys = change.left_out.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    Event::new(EventReason::RestoreSkipped, format!("not legal as labels, left out: {keys}"))
}

/// Tells whoever edited a record's flat keys that the snapshot counts.
pub(super) fn drift_event(record: &Record) -> Option<Event> {
    record.drift_note().map(|note| Event::new(EventReason::RestoreSkipped, note))
}
