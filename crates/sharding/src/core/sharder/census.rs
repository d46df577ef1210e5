//! Counting: how many objects each slot has and who has them. Makes a table where there is none, and
//! evens out one that is uneven.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::works::Work;
use super::{ById, Sharder};
use crate::core::key::Key;
use crate::core::names::InstanceId;
use crate::core::object::Object;
use crate::core::partition::{Load, Partition, Share, SlotId, Slots, Table, imbalance};
use crate::core::time::{Moment, Now};

/// Within this time no more than a part of the slots is evened out.
const BALANCE_EVERY: Duration = Duration::from_secs(10 * 60);

#[derive(Clone, Debug, Default)]
pub(super) struct Census {
    tally: BTreeMap<(SlotId, InstanceId), u64>,
    /// By slot, whoever has them.
    slots: BTreeMap<SlotId, u64>,
    /// How many slots were evened out, and when: since the last time that counts.
    balanced: VecDeque<(Moment, usize)>,
    /// The last of these was not kept: the Ring had been written meanwhile, as by our own status.
    is_not_kept: bool,
    /// By instance, as far as this count has come.
    counting: ById<u64>,
    /// By instance, as the last count found it and moves have changed it since.
    counted: Option<ById<u64>>,
}

// === impl Census ===

impl Census {
    pub(super) fn begin(&mut self) {
        self.tally.clear();
        self.slots.clear();
        self.counting.clear();
    }

    /// Keeps the last count right until the next: an object has another owner. `is_counted`: the count
    /// that is under way has come across it.
    pub(super) fn on_moved(
        &mut self,
        (from, to): (Option<InstanceId>, Option<InstanceId>),
        is_counted: bool,
    ) {
        let present = is_counted.then_some(&mut self.counting);
        for count in self.counted.iter_mut().chain(present).filter(|_| from != to) {
            if let Some(objects) = from.as_ref().and_then(|from| count.get_mut(from)) {
                *objects = objects.saturating_sub(1);
            }
            if let Some(to) = to.clone() {
                *count.entry(to).or_default() += 1;
            }
        }
    }

    /// What evens out could not be kept, as far as is known.
    pub(super) fn on_not_kept(&mut self) {
        self.is_not_kept = true;
    }

    pub(super) fn take_not_kept(&mut self) -> bool {
        std::mem::take(&mut self.is_not_kept)
    }

    /// How many slots were evened out of late.
    fn spent(&mut self, now: Moment) -> usize {
        self.balanced.retain(|(at, _)| now < *at + BALANCE_EVERY);
        self.balanced.iter().map(|(_, slots)| slots).sum()
    }

    pub(super) fn tally(&self) -> BTreeMap<(SlotId, InstanceId), u64> {
        self.tally.clone()
    }

    /// Objects in each slot.
    fn objects(&self, slots: &Slots) -> Vec<u64> {
        let of =
            |slot: usize| u16::try_from(slot).ok().and_then(|slot| self.slots.get(&SlotId(slot)));
        (0..slots.count()).map(|slot| of(slot).copied().unwrap_or(0)).collect()
    }
}

// === impl Sharder ===

impl Sharder {
    pub(super) fn count(&mut self, object: &Object, key: &Key) {
        // What is on its way counts for whom it comes from until it has arrived.
        let origin = self.works.get(&object.name).map(Work::origin);
        if let Some(owner) = origin.unwrap_or(object.shard.as_ref()) {
            *self.census.counting.entry(owner.clone()).or_default() += 1;
        }
        let slots = self.options.partitioning.slots;
        let empty = || Slots::empty(slots).expect("a ring's slots are checked");
        let slot = match self.table() {
            Some(Table::Slots(slots)) => slots.slot(key),
            Some(Table::Ring(_)) => return,
            None => empty().slot(key),
        };
        *self.census.slots.entry(slot).or_default() += 1;
        if let Some(owner) = &object.shard {
            *self.census.tally.entry((slot, owner.clone())).or_default() += 1;
        }
    }

    /// How many main objects each instance has: as last counted, and as they were moved since.
    #[must_use]
    pub fn objects(&self) -> Option<&BTreeMap<InstanceId, u64>> {
        self.census.counted.as_ref()
    }

    pub(super) fn on_counted(&mut self, now: Now) {
        self.census.counted = Some(std::mem::take(&mut self.census.counting));
        if self.membership.is_lost() {
            return self.rebuild_table(now);
        }
        self.even_out(now);
    }

    /// The table stands as it was counted by.
    pub(super) fn even_out_again(&mut self, now: Now) {
        self.census.balanced.pop_back();
        if !self.passes.is_counting() {
            self.even_out(now);
        }
    }

    fn even_out(&mut self, now: Now) {
        let spent = self.census.spent(now.mono);
        let Some(Table::Slots(slots)) = self.table() else { return };
        let settings = &self.options.partitioning;
        let percent = usize::try_from(settings.max_move_percent).unwrap_or(0);
        let moves_max = (slots.count() * percent / 100).saturating_sub(spent);
        let load = Load {
            objects: self.census.objects(slots),
            imbalance_max_percent: settings.max_imbalance_percent,
            moves_max,
        };
        let shares = self.shares(now);
        let next = slots.with_members(&shares, &load);
        let moved =
            slots.owners().iter().zip(next.owners()).filter(|(old, new)| old != new).count();
        let is_stale = self.table().is_some_and(|table| table.differs_from(&shares));
        if moved > 0 && !is_stale {
            self.census.balanced.push_back((now.mono, moved));
            self.passes.census_at = now.mono + BALANCE_EVERY;
            self.propose(Table::Slots(next), now);
        }
    }

    /// Whether this leader has seen everything at least once.
    pub(super) fn has_counted(&self) -> bool {
        self.census.counted.is_some()
    }

    /// The fullest instance compared with the mean, as last counted.
    #[must_use]
    pub fn imbalance(&self) -> Option<f64> {
        let table = self.table()?;
        let held = match table {
            Table::Slots(slots) => self.held_by_slots(slots),
            Table::Ring(ring) => {
                let counted = self.census.counted.as_ref()?;
                let held = |member: &Share| counted.get(&member.id).copied().unwrap_or(0);
                ring.members().iter().map(held).collect()
            }
        };
        let weights: Vec<u32> = table.members().iter().map(|member| member.weight).collect();
        Some(imbalance(&held, &weights))
    }

    fn held_by_slots(&self, slots: &Slots) -> Vec<u64> {
        let mut held = vec![0; slots.members().len()];
        for (owner, count) in slots.owners().iter().zip(self.census.objects(slots)) {
            if let Some(index) = owner {
                held[*index] += count;
            }
        }
        held
    }
}
