//! The partition that a ring uses, and the form in which its status keeps it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Load, Partition, Ring, Share, SlotId, Slots, slots::SlotsError};
use crate::core::key::Key;
use crate::core::names::InstanceId;

/// One of the two partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Table {
    Slots(Slots),
    Ring(Ring),
}

/// A table of slots in the status of a Ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// One more with each change.
    pub epoch: u64,
    pub instances: Vec<KeptInstance>,
    /// For each slot the number of its instance; −1 for nobody.
    pub slots: Vec<i32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptInstance {
    pub id: InstanceId,
    pub weight: u32,
}

// === impl Table ===

impl Table {
    #[must_use]
    pub fn members(&self) -> &[Share] {
        match self {
            Self::Slots(slots) => slots.members(),
            Self::Ring(ring) => ring.members(),
        }
    }

    #[must_use]
    pub fn slots(&self) -> Option<&Slots> {
        match self {
            Self::Slots(slots) => Some(slots),
            Self::Ring(_) => None,
        }
    }

    #[must_use]
    pub fn slot(&self, key: &Key) -> Option<SlotId> {
        self.slots().map(|slots| slots.slot(key))
    }

    /// Whether the members are others than these.
    #[must_use]
    pub fn differs_from(&self, shares: &[Share]) -> bool {
        let weights = |shares: &[Share]| -> BTreeMap<InstanceId, u32> {
            let live = shares.iter().filter(|share| share.weight > 0);
            live.map(|share| (share.id.clone(), share.weight)).collect()
        };
        weights(self.members()) != weights(shares)
    }

    /// Members who had something that `next` gives to others.
    #[must_use]
    pub fn donors(&self, next: &Self) -> Vec<InstanceId> {
        let (Self::Slots(before), Self::Slots(after)) = (self, next) else {
            return self.members().iter().map(|member| member.id.clone()).collect();
        };
        let slots = (0..before.count()).filter_map(|slot| u16::try_from(slot).ok()).map(SlotId);
        let lost = slots.filter_map(|slot| {
            before.owner_of(slot).filter(|owner| after.owner_of(slot) != Some(*owner))
        });
        let mut donors: Vec<InstanceId> = lost.cloned().collect();
        donors.sort();
        donors.dedup();
        donors
    }
}

impl Partition for Table {
    fn owner(&self, key: &Key) -> Option<&InstanceId> {
        match self {
            Self::Slots(slots) => slots.owner(key),
            Self::Ring(ring) => ring.owner(key),
        }
    }

    fn with_members(&self, members: &[Share], load: &Load) -> Self {
        match self {
            Self::Slots(slots) => Self::Slots(slots.with_members(members, load)),
            Self::Ring(ring) => Self::Ring(ring.with_members(members, load)),
        }
    }
}

// === impl Kept ===

impl Kept {
    #[must_use]
    pub fn new(epoch: u64, slots: &Slots) -> Self {
        let instance =
            |member: &Share| KeptInstance { id: member.id.clone(), weight: member.weight };
        let number = |owner: &Option<usize>| {
            owner.map_or(-1, |index| i32::try_from(index).expect("instances are few"))
        };
        Self {
            epoch,
            instances: slots.members().iter().map(instance).collect(),
            slots: slots.owners().iter().map(number).collect(),
        }
    }

    pub fn read(&self) -> Result<Slots, SlotsError> {
        let share = |kept: &KeptInstance| Share { id: kept.id.clone(), weight: kept.weight };
        let owners = self.slots.iter().map(|number| usize::try_from(*number).ok());
        Slots::restore(self.instances.iter().map(share).collect(), owners.collect())
    }
}
