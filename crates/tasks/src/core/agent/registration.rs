//! The agent's standing in the cluster: registering, holding the lease, being fenced, leaving.

use std::time::Duration;

use super::{Agent, Command};
use crate::core::drain;
use crate::core::id::{NodeId, Revision};
use crate::core::lease::{Duty, Lease, RETRY_EVERY};
use crate::core::node::Node;
use crate::core::time::{Boottime, Now};
use crate::core::transition::Claimant;
use crate::core::txn::LeaseId;

#[derive(Debug)]
pub(super) enum Registration {
    /// Waits until the ends found at the start are recorded; then gives up the old lease, so that
    /// others take what else it had, and registers.
    Recovering { lease: Option<LeaseId> },
    /// Not registered; tries from `at` on.
    Absent { at: Boottime },
    /// Waits for the answer to a registration.
    Registering { node: NodeId },
    /// Takes and runs tasks while the lease is held. A lease that is not moves it on to `Fenced`.
    Held { claimant: Claimant, lease: Lease, lease_id: LeaseId },
    /// Waits for the last process to be gone; then registers anew, under another id.
    Fenced { lease_id: LeaseId },
    /// Has left for good.
    Left,
}

// === impl Registration ===

impl Registration {
    pub(super) fn claimant(&self) -> Option<&Claimant> {
        match self {
            Self::Held { claimant, .. } => Some(claimant),
            _ => None,
        }
    }

    pub(super) fn lease_id(&self) -> Option<LeaseId> {
        match self {
            Self::Held { lease_id, .. } => Some(*lease_id),
            _ => None,
        }
    }
}

// === impl Agent ===

impl Agent {
    /// Who claims, if claiming and starting is allowed now.
    pub(super) fn held_claimant(&self, now: Now) -> Option<&Claimant> {
        match &self.registration {
            Registration::Held { claimant, lease, .. } if lease.is_held(now.boot) => Some(claimant),
            _ => None,
        }
    }

    pub(super) fn on_registered(
        &mut self,
        now: Now,
        node: NodeId,
        (lease_id, registered): (LeaseId, Revision),
        sent: Boottime,
    ) {
        let is_awaited = matches!(self.registration, Registration::Registering { node: awaited } if awaited == node);
        if !is_awaited {
            // An answer to a registration that was given up: nobody keeps its lease alive.
            return self.commands.push(Command::Revoke(lease_id));
        }
        let lease = Lease::granted(self.profile.timing, sent);
        let (host, name) = (self.profile.node.host, self.profile.node.name.clone());
        let claimant = Claimant { node, host, name, registered };
        self.commands.push(Command::SetDeadline(lease.deadline()));
        self.registration = Registration::Held { claimant, lease, lease_id };
        self.chores.on_registered(now.boot);
        self.forget_ranks();
    }

    pub(super) fn on_not_registered(&mut self, now: Now, node: NodeId) {
        if let Registration::Registering { node: awaited } = self.registration
            && awaited == node
        {
            self.registration = Registration::Absent { at: now.boot + RETRY_EVERY };
        }
    }

    pub(super) fn on_kept_alive(
        &mut self,
        now: Now,
        id: LeaseId,
        sent: Boottime,
        remaining: Duration,
    ) {
        if let Registration::Held { lease, lease_id, .. } = &mut self.registration
            && *lease_id == id
        {
            lease.on_kept(now.boot, sent, remaining);
            if lease.is_held(now.boot) {
                self.commands.push(Command::SetDeadline(lease.deadline()));
            }
        }
    }

    pub(super) fn look_after_registration(&mut self, now: Now) {
        match &mut self.registration {
            Registration::Recovering { lease } => {
                let lease = *lease;
                if !self.has_ends_to_record() {
                    self.tell_stopped();
                    self.commands.extend(lease.map(Command::Revoke));
                    self.register();
                }
            }
            Registration::Absent { at } if *at <= now.boot => self.register(),
            Registration::Absent { at } => {
                let at = *at;
                self.wake_by(at);
            }
            Registration::Held { .. } => self.look_after_lease(now),
            Registration::Fenced { lease_id } if self.attempts.is_empty() => {
                // Others would take what has an end to record, so such a lease ends by itself.
                let lease_id = *lease_id;
                if !self.has_ends_to_record() {
                    self.commands.push(Command::Revoke(lease_id));
                }
                self.register();
            }
            Registration::Fenced { .. } | Registration::Registering { .. } | Registration::Left => {
            }
        }
    }

    fn look_after_lease(&mut self, now: Now) {
        let Registration::Held { lease, lease_id, .. } = &mut self.registration else { return };
        match lease.duty(now.boot) {
            Duty::Fence => self.fence(),
            Duty::Wait(until) => self.wake_by(until),
            Duty::SendKeepAlive => {
                lease.on_sent(now.boot);
                self.commands.push(Command::KeepAlive(*lease_id));
                self.wake_by(now.boot + RETRY_EVERY);
            }
        }
        self.leave_if_drained(now);
    }

    /// The node may not believe any more that its tasks are its own.
    pub(super) fn fence(&mut self) {
        let Registration::Held { lease_id, .. } = self.registration else { return };
        self.registration = Registration::Fenced { lease_id };
        self.drop_claims();
        self.kill_all();
    }

    fn register(&mut self) {
        if self.drain.is_some() {
            self.registration = Registration::Left;
            return self.commands.push(Command::Left);
        }
        let node = self.ids.node();
        self.registration = Registration::Registering { node };
        self.commands.push(Command::Register(Box::new(self.described(node))));
    }

    /// The node as it tells the others of itself.
    pub(super) fn described(&self, id: NodeId) -> Node {
        Node {
            id,
            reserved: self.ledger.reserved(),
            is_draining: self.drain.is_some(),
            hindrance: self.hindrance,
            ..self.profile.node.clone()
        }
    }

    fn leave_if_drained(&mut self, now: Now) {
        let Some(drain) = self.drain else { return };
        let is_empty =
            self.attempts.is_empty() && !self.has_ends_to_record() && !self.writes.has_claims();
        match drain.duty(now.boot, is_empty) {
            drain::Duty::Wait(until) => self.wake_by(until),
            drain::Duty::Stop => self.stop_for_drain(),
            drain::Duty::Leave => {
                self.commands.extend(self.registration.lease_id().map(Command::Revoke));
                self.registration = Registration::Left;
                self.commands.push(Command::Left);
            }
        }
    }
}
