//! A table of slots, each owned by one member. Keys are hashed to slots for good; only the table
//! changes, as little as it can.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use xxhash_rust::xxh64::xxh64;

use super::hash::slot;
use super::seats::{Seat, receiver, transfer};
use super::{Load, Partition, Share, balance};
use crate::core::key::Key;
use crate::core::names::InstanceId;

pub const SLOTS_DEFAULT: usize = 1024;
pub const SLOTS_MIN: usize = 64;
pub const SLOTS_MAX: usize = 8192;

/// A fixed share of a ring's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotId(pub u16);

/// Who owns each slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    /// Ordered by id; none of weight 0.
    members: Vec<Share>,
    /// By slot, an index into `members`.
    owners: Vec<Option<usize>>,
}

/// Why a kept table cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlotsError {
    #[error("{0} slots are not a power of two from {SLOTS_MIN} to {SLOTS_MAX}")]
    Count(usize),
    #[error("slot {slot} belongs to instance number {index}, of {instances}")]
    Owner { slot: usize, index: usize, instances: usize },
    #[error("instance {0} stands in the table twice")]
    Twice(InstanceId),
}

// === impl Slots ===

impl Slots {
    /// A table in which nobody owns anything.
    pub fn empty(count: usize) -> Result<Self, SlotsError> {
        if !count.is_power_of_two() || !(SLOTS_MIN..=SLOTS_MAX).contains(&count) {
            return Err(SlotsError::Count(count));
        }
        Ok(Self { members: Vec::new(), owners: vec![None; count] })
    }

    /// A table as it was kept: members, and for each slot the number of its owner.
    pub fn restore(members: Vec<Share>, owners: Vec<Option<usize>>) -> Result<Self, SlotsError> {
        let mut table = Self::empty(owners.len())?;
        let instances = members.len();
        for (slot, owner) in owners.iter().enumerate() {
            if let Some(index) = owner.filter(|index| *index >= instances) {
                return Err(SlotsError::Owner { slot, index, instances });
            }
        }
        let mut order: Vec<usize> = (0..instances).collect();
        order.sort_by_key(|index| &members[*index].id);
        if let Some(pair) = order.windows(2).find(|pair| members[pair[0]].id == members[pair[1]].id)
        {
            return Err(SlotsError::Twice(members[pair[0]].id.clone()));
        }
        let place: BTreeMap<usize, usize> =
            order.iter().enumerate().map(|(place, index)| (*index, place)).collect();
        table.owners = owners.iter().map(|owner| owner.map(|index| place[&index])).collect();
        table.members = order.into_iter().map(|index| members[index].clone()).collect();
        Ok(table)
    }

    /// A table from what objects say: each slot goes to the live member that owns most of it.
    pub fn rebuild(
        count: usize,
        members: &[Share],
        tally: &BTreeMap<(SlotId, InstanceId), u64>,
    ) -> Result<Self, SlotsError> {
        let mut table = Self::empty(count)?;
        table.members = live(members);
        let mut most = vec![0_u64; count];
        for ((slot, id), objects) in tally {
            let (slot, owner) = (usize::from(slot.0), table.index(id));
            if owner.is_some() && *objects > most[slot] {
                (most[slot], table.owners[slot]) = (*objects, owner);
            }
        }
        table.fill();
        Ok(table)
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.owners.len()
    }

    #[must_use]
    pub fn members(&self) -> &[Share] {
        &self.members
    }

    #[must_use]
    pub fn slot(&self, key: &Key) -> SlotId {
        slot(key, self.count())
    }

    #[must_use]
    pub fn owner_of(&self, slot: SlotId) -> Option<&InstanceId> {
        let index = (*self.owners.get(usize::from(slot.0))?)?;
        Some(&self.members[index].id)
    }

    /// For each slot the number of its owner among the members.
    #[must_use]
    pub fn owners(&self) -> &[Option<usize>] {
        &self.owners
    }

    #[must_use]
    pub fn held_by(&self, id: &InstanceId) -> usize {
        let index = self.index(id);
        self.owners.iter().filter(|owner| owner.is_some() && **owner == index).count()
    }

    fn index(&self, id: &InstanceId) -> Option<usize> {
        self.members.binary_search_by(|member| member.id.cmp(id)).ok()
    }

    /// The same owners among other members; slots of those who left belong to nobody.
    fn among(&self, members: Vec<Share>) -> Self {
        let mut table = Self { members, owners: Vec::new() };
        let kept = self.owners.iter().map(|owner| table.index(&self.members[(*owner)?].id));
        table.owners = kept.collect();
        table
    }

    fn seats(&self) -> Vec<Seat> {
        let seat = |member: &Share| Seat { weight: member.weight, held: 0 };
        let mut seats: Vec<Seat> = self.members.iter().map(seat).collect();
        for owner in self.owners.iter().flatten() {
            seats[*owner].held += 1;
        }
        seats
    }

    /// Step 1: slots that belong to nobody, one by one.
    fn fill(&mut self) {
        let mut seats = self.seats();
        for slot in scattered(self.count()) {
            if self.owners[slot].is_some() {
                continue;
            }
            let Some(index) = receiver(&seats) else { return };
            self.owners[slot] = Some(index);
            seats[index].held += 1;
        }
    }

    /// Step 2: slots between a member that is new or has another weight, and the others.
    fn level(&mut self, changed: usize) {
        let (mut seats, order) = (self.seats(), scattered(self.count()));
        while let Some((from, to)) = transfer(&seats, changed) {
            let last = order.iter().rev().find(|slot| self.owners[**slot] == Some(from));
            let last = *last.expect("a donor has a slot to give");
            self.owners[last] = Some(to);
            seats[from].held -= 1;
            seats[to].held += 1;
        }
    }

    pub(super) fn give(&mut self, slot: usize, to: usize) {
        self.owners[slot] = Some(to);
    }
}

impl Partition for Slots {
    fn owner(&self, key: &Key) -> Option<&InstanceId> {
        self.owner_of(self.slot(key))
    }

    fn with_members(&self, members: &[Share], load: &Load) -> Self {
        let mut table = self.among(live(members));
        table.fill();
        for index in 0..table.members.len() {
            let member = &table.members[index];
            let before = self.index(&member.id).map(|before| self.members[before].weight);
            if before != Some(member.weight) {
                table.level(index);
            }
        }
        balance::even_out(&mut table, load);
        table
    }
}

/// All slots, in an order that has nothing to do with their numbers. Names that are counted up have
/// slots in a pattern, such as every second one: with owners in a pattern too, one instance might get
/// all of them.
fn scattered(count: usize) -> Vec<usize> {
    let mut slots: Vec<usize> = (0..count).collect();
    slots.sort_by_cached_key(|slot| (xxh64(format!("windlass/slot/{slot}").as_bytes(), 0), *slot));
    slots
}

/// Those that take anything, in order.
fn live(members: &[Share]) -> Vec<Share> {
    let mut live: Vec<Share> = members.iter().filter(|member| member.weight > 0).cloned().collect();
    live.sort();
    live.dedup_by(|a, b| a.id == b.id);
    live
}
