//! Which instance a key belongs to. Two ways behind one interface, and one suite for both: see
//! [`suite`].

mod balance;
mod hash;
pub mod ring;
mod seats;
pub mod slots;
pub mod suite;
pub mod table;

use super::key::Key;
use super::names::InstanceId;

pub use balance::{BALANCED_MEAN_MIN, imbalance};
pub use ring::Ring;
pub use slots::{SlotId, Slots};
pub use table::Table;

/// Divides keys among members.
///
/// Obligations, each with a property in [`suite`]:
/// - total: with at least one member of weight above 0, every key has an owner, and it is one of
///   these members;
/// - deterministic: the same history of members gives the same owners, in whatever order members are
///   listed;
/// - minimal: a member that joins only receives, one that leaves only gives, and when nobody does
///   either, nothing moves unless `load` says so.
pub trait Partition: Sized {
    /// None while there are no members.
    fn owner(&self, key: &Key) -> Option<&InstanceId>;

    /// The partition for these members, as close to this one as it can be.
    #[must_use]
    fn with_members(&self, members: &[Share], load: &Load) -> Self;
}

/// A member, and how much it takes compared with the others. Of weight 0 it takes nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    pub id: InstanceId,
    pub weight: u32,
}

/// How many objects each slot has, and how far they may be evened out now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Empty if they have not been counted.
    pub objects: Vec<u64>,
    /// How much above the mean an instance may be.
    pub imbalance_max_percent: u32,
    pub moves_max: usize,
}

// === impl Load ===

impl Load {
    /// Nothing is known, and nothing is evened out.
    #[must_use]
    pub fn unknown() -> Self {
        Self::default()
    }
}
