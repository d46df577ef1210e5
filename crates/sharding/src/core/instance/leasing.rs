//! Taking, renewing and giving back the Lease.

use super::join::{Found, Start, start};
use super::message::{Command, Loss, Outcome, Stop};
use super::{Instance, Phase};
use crate::core::lease::{Lease, Marks};
use crate::core::membership::State;
use crate::core::object::Version;
use crate::core::time::{Moment, Now};

/// A request that failed is followed by another after this part of the time between renewals.
const RETRIES: u32 = 4;

/// The one request about the Lease that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    Read,
    Create,
    Take,
    Renew,
    /// The last write of an orderly end.
    Leave,
}

// === impl Instance ===

impl Instance {
    pub(super) fn tend_lease(&mut self, now: Now) {
        let is_leaving = matches!(self.phase, Phase::Stopping(_)) && self.running.is_empty();
        let is_due = now.mono >= self.next_look || (is_leaving && !self.must_read);
        if self.asking.is_some() || !is_due {
            return;
        }
        match (&self.phase, &self.lease) {
            (Phase::Ended, _) => {}
            (Phase::Joining { .. }, _) | (_, None) => {
                self.ask(Asking::Read, Command::ReadLease, now)
            }
            _ if self.must_read => self.ask(Asking::Read, Command::ReadLease, now),
            (Phase::Stopping(stop), Some(lease)) if is_leaving => {
                let lease = self.left(lease.clone(), *stop, now);
                let command = Command::WriteLease { lease: Box::new(lease), is_new: false };
                self.ask(Asking::Leave, command, now);
            }
            (_, Some(lease)) => {
                let lease = self.renewed(lease.clone(), now);
                let command = Command::WriteLease { lease: Box::new(lease), is_new: false };
                self.ask(Asking::Renew, command, now);
            }
        }
    }

    fn ask(&mut self, asking: Asking, command: Command, now: Now) {
        self.asking = Some(asking);
        self.is_let_go |= asking == Asking::Leave;
        self.next_look = now.mono + self.tenure.renew_every();
        self.out.push(command);
    }

    pub(super) fn on_lease_read(&mut self, lease: Option<Lease>, ring: Option<String>, now: Now) {
        self.asking = None;
        self.must_read = false;
        if matches!(self.phase, Phase::Joining { .. }) {
            return self.on_found(lease, ring.as_deref(), now);
        }
        match lease {
            // What was let go may be anybody's by now, and nothing runs that could mind.
            lease if self.is_let_go && self.has_left(lease.as_ref()) => self.leave(),
            None => self.lose(Loss::Gone),
            Some(lease) if !self.is_ours(&lease) => self.lose(Loss::Taken),
            Some(lease) => {
                // Somebody wrote into it, and it is still ours: renew at once.
                self.note_lease(lease);
                self.next_look = now.mono;
            }
        }
    }

    fn on_found(&mut self, lease: Option<Lease>, ring: Option<&str>, now: Now) {
        let Phase::Joining { first } = &mut self.phase else { return };
        let is_renewed = match (&*first, &lease) {
            (Some((before, _)), Some(found)) => {
                let is_same_process = before.marks.incarnation == found.marks.incarnation;
                before.holder == found.holder && before.renewed != found.renewed && is_same_process
            }
            _ => false,
        };
        if let Some(found) = &lease {
            let is_unchanged = first.as_ref().is_some_and(|(before, _)| {
                (&before.holder, before.renewed) == (&found.holder, found.renewed)
            });
            if !is_unchanged {
                *first = Some((Box::new(found.clone()), now.mono));
            }
        }
        let since = first.as_ref().map_or(now.mono, |(_, since)| *since);
        let unchanged_for = now.mono.since(since);
        let found = lease.as_ref().map(|lease| Found { lease, ring, unchanged_for, is_renewed });
        let decision = start(&self.options.identity, found.as_ref());
        self.carry_out(decision, lease, now);
    }

    fn carry_out(&mut self, decision: Start, lease: Option<Lease>, now: Now) {
        match (decision, lease) {
            (Start::Fail(error), _) => self.lose(Loss::Join(error)),
            (Start::Wait(remaining), _) => {
                self.next_look = now.mono + remaining.min(self.tenure.renew_every());
            }
            (Start::Take, Some(lease)) => {
                let taken = self.taken(lease, now);
                let command = Command::WriteLease { lease: Box::new(taken), is_new: false };
                self.ask(Asking::Take, command, now);
            }
            (Start::Create | Start::Take, _) => {
                let created = self.taken(self.blank(now), now);
                let created = Lease { transitions: 0, ..created };
                let command = Command::WriteLease { lease: Box::new(created), is_new: true };
                self.ask(Asking::Create, command, now);
            }
        }
    }

    pub(super) fn on_lease_written(
        &mut self,
        sent: Moment,
        outcome: Outcome<Box<Lease>>,
        now: Now,
    ) {
        let asked = self.asking.take();
        match (asked, outcome) {
            (Some(asked), Outcome::Done(lease)) => self.on_held(asked, sent, *lease),
            // Read what is there, then decide anew.
            (_, Outcome::Conflict) => {
                self.must_read = true;
                self.next_look = now.mono;
            }
            // What failed may have been carried out all the same.
            _ => self.on_lease_unread(now.mono),
        }
    }

    pub(super) fn on_lease_unread(&mut self, now: Moment) {
        self.asking = None;
        self.must_read = true;
        self.next_look = now + self.tenure.renew_every() / RETRIES;
    }

    fn on_held(&mut self, asked: Asking, sent: Moment, lease: Lease) {
        if asked == Asking::Leave {
            return self.leave();
        }
        self.tenure.on_renewed(sent);
        self.note_lease(lease);
        match asked {
            Asking::Create => {
                self.phase = Phase::Asking { held_since: sent };
                self.out.push(Command::AskCarried);
            }
            Asking::Take => {
                self.phase = Phase::Working;
                self.out.push(Command::Work);
            }
            Asking::Read | Asking::Renew | Asking::Leave => {}
        }
    }

    fn note_lease(&mut self, lease: Lease) {
        let conflict = self.options.identity.names.state_word(State::Conflict, false);
        if lease.state.as_deref() == Some(conflict) {
            return self.lose(Loss::Join(super::JoinError::IdentityInUse));
        }
        self.lease = Some(lease);
    }

    fn is_ours(&self, lease: &Lease) -> bool {
        let me = &self.options.identity;
        let is_this_process = lease.marks.incarnation.as_deref() == Some(me.incarnation.as_str());
        lease.holder.as_deref() == Some(me.id.as_str())
            && (is_this_process || !me.names.has_annotations())
    }

    /// Whether the last write of an orderly end, whose answer was lost, has been carried out.
    fn has_left(&self, lease: Option<&Lease>) -> bool {
        lease.is_none_or(|lease| !self.is_ours(lease) || lease.marks.hold.is_some())
    }

    fn blank(&self, now: Now) -> Lease {
        let me = &self.options.identity;
        Lease {
            namespace: me.namespace.clone(),
            id: me.id.clone(),
            version: Version(String::new()),
            created: now.wall,
            holder: None,
            duration_s: None,
            renewed: None,
            transitions: 0,
            weight: me.weight.map(|weight| weight.to_string()),
            state: None,
            marks: Marks::default(),
        }
    }

    fn taken(&self, mut lease: Lease, now: Now) -> Lease {
        let me = &self.options.identity;
        lease.holder = Some(me.id.to_string());
        lease.transitions = lease.transitions.saturating_add(1);
        // Without a weight of ours, what somebody wrote there stands.
        if let Some(weight) = me.weight {
            lease.weight = Some(weight.to_string());
        }
        let seconds = self.options.duration.as_millis().div_ceil(1000);
        lease.duration_s = i32::try_from(seconds).ok();
        lease.marks = Marks {
            incarnation: Some(me.incarnation.clone()),
            pod: me.pod.clone(),
            hold: None,
            drain_epoch: lease.marks.drain_epoch,
            drain_seen: lease.marks.drain_seen,
        };
        lease.renewed = Some(now.wall);
        lease
    }

    fn renewed(&self, mut lease: Lease, now: Now) -> Lease {
        lease.renewed = Some(now.wall);
        lease.marks.drain_seen = lease.marks.drain_seen.max(self.drains.seen_epoch());
        lease
    }

    fn left(&self, lease: Lease, stop: Stop, now: Now) -> Lease {
        let mut lease = self.renewed(lease, now);
        match stop {
            Stop::Release => lease.holder = None,
            Stop::Hold(hold) => lease.marks.hold = Some(hold),
        }
        lease
    }
}
