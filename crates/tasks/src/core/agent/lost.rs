//! Tasks of nodes that are gone. Each node sees them; the nearest acts first, the others in case it
//! does not.

use std::time::Duration;

use super::Agent;
use super::writes::{Purpose, WantedFor};
use crate::core::id::{NodeId, TaskId};
use crate::core::node::Node;
use crate::core::rank::{Candidate, rank};
use crate::core::record::Record;
use crate::core::sweep::{Leftover, Listing};
use crate::core::time::Now;
use crate::core::transition::{Stamp, requeue};
use crate::core::txn::AnswerError;

/// After somebody else was first, or what looked lost was not, how long until another look. The
/// cache catches up meanwhile.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(2);

// === impl Agent ===

impl Agent {
    /// What runs on nodes of which nothing is known. Such a node may just have come, its key not
    /// being seen yet; then the store refuses.
    pub(super) fn take_from_lost(&mut self, now: Now) {
        let Some(me) = self.held_claimant(now).map(|claimant| claimant.node) else { return };
        let lost: Vec<TaskId> = self.cache.lost().map(|summary| summary.id).collect();
        for id in lost {
            let at = match self.lost.get(&id) {
                Some(at) => *at,
                None => {
                    let at = now.boot + self.requeue_delay(id, me);
                    self.lost.insert(id, at);
                    at
                }
            };
            if at > now.boot {
                self.wake_by(at);
            } else if !self.writes.is_taking(id) {
                self.read(id, WantedFor::Requeue);
            }
        }
    }

    fn requeue_delay(&self, id: TaskId, me: NodeId) -> Duration {
        let equal = |node: &Node| Candidate { node: node.id, weight: 1, has_failed: false };
        let place = rank(id, me, self.cache.nodes().map(equal));
        let place = place.unwrap_or_else(|| self.cache.nodes().count());
        self.meter.step() * u32::try_from(place).unwrap_or(u32::MAX)
    }

    pub(super) fn on_read_for_requeue(&mut self, now: Now, id: TaskId, record: Option<Record>) {
        let stamp = Stamp { now: now.wall, write_id: self.ids.write() };
        let plan = record.and_then(|record| requeue(&record, stamp).ok());
        match plan {
            Some(plan) => self.send(plan.txn.clone(), Purpose::Requeue { plan: Box::new(plan) }),
            None => self.on_requeued(now, id),
        }
    }

    /// Done, by this node or another.
    pub(super) fn on_requeued(&mut self, now: Now, id: TaskId) {
        self.lost.insert(id, now.boot + LOOK_AGAIN_AFTER);
    }

    /// One consistent list finds what events did not tell.
    pub(super) fn on_swept(&mut self, listing: Result<Listing, AnswerError>) {
        let Ok(listing) = listing else { return };
        for leftover in listing.leftovers(self.node_id(), |id| self.knows(id)) {
            match leftover {
                Leftover::Lost(id) if !self.writes.is_taking(id) => {
                    self.read(id, WantedFor::Requeue);
                }
                Leftover::Lost(_) => {}
                Leftover::Unknown(id) => self.read(id, WantedFor::Unknown),
            }
        }
    }
}
