//! Sight by Lease: a watch may hang while renewals pass, so that an instance never sees that it is to
//! give something up. A raised epoch in its Lease makes its next renewal tell it.

use std::collections::BTreeMap;

use super::message::{Answer, Command, Token};
use super::{ById, Sharder};
use crate::core::names::InstanceId;
use crate::core::object::ObjectName;
use crate::core::time::{Moment, Now};

/// An instance renews this often in each duration; telling it more often is of no use.
const RENEWALS: u32 = 5;

#[derive(Clone, Debug, Default)]
pub(super) struct Epochs {
    asked: BTreeMap<Token, Raise>,
    not_before: ById<Moment>,
}

#[derive(Clone, Debug)]
struct Raise {
    owner: InstanceId,
    epoch: u64,
    /// What was marked before the request left: whoever sees the epoch can see these.
    covers: Vec<ObjectName>,
}

// === impl Epochs ===

impl Epochs {
    pub(super) fn is_asking(&self, token: Token) -> bool {
        self.asked.contains_key(&token)
    }

    pub(super) fn next_due(&self, now: Moment) -> Option<Moment> {
        self.not_before.values().filter(|at| **at > now).min().copied()
    }
}

// === impl Sharder ===

impl Sharder {
    pub(super) fn tend_epochs(&mut self, now: Now) {
        if !self.options.names.has_annotations() {
            return;
        }
        self.epochs.not_before.retain(|_, at| *at > now.mono);
        let mut uncovered: ById<Vec<ObjectName>> = BTreeMap::new();
        for (name, work) in self.works.draining() {
            if work.is_idle()
                && let Some(owner) = &work.object.shard
                && work.epoch.is_none_or(|epoch| self.roster.epoch(owner) < epoch)
            {
                uncovered.entry(owner.clone()).or_default().push(name.clone());
            }
        }
        for (owner, covers) in uncovered {
            let is_busy = self.epochs.asked.values().any(|raise| raise.owner == owner);
            if !is_busy && !self.epochs.not_before.contains_key(&owner) {
                self.raise_epoch(owner, covers, now);
            }
        }
    }

    fn raise_epoch(&mut self, owner: InstanceId, covers: Vec<ObjectName>, now: Now) {
        let Some(lease) = self.roster.lease(&owner) else { return };
        let mut lease = Box::new(lease.clone());
        lease.marks.drain_epoch += 1;
        let epoch = lease.marks.drain_epoch;
        let pause = self.roster.duration(&owner) / RENEWALS;
        self.epochs.not_before.insert(owner.clone(), now.mono + pause);
        let token = self.token();
        self.epochs.asked.insert(token, Raise { owner, epoch, covers });
        self.out.push(Command::WriteLease { token, lease, is_new: false });
    }

    /// What failed is tried again with the Lease as it is seen by then.
    pub(super) fn on_epoch_answered(&mut self, now: Now, token: Token, answer: Answer) {
        let Some(raise) = self.epochs.asked.remove(&token) else { return };
        let Answer::Lease(lease) = answer else { return };
        self.roster.on_seen(*lease, now.mono);
        for name in &raise.covers {
            if let Some(work) = self.works.get_mut(name)
                && work.is_draining()
                && work.object.shard.as_ref() == Some(&raise.owner)
            {
                work.epoch = Some(raise.epoch);
            }
        }
    }
}
