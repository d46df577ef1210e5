//! Consistent hashing with tokens, as the Go project does it: for its controllers, and to compare
//! with.

use xxhash_rust::xxh64::xxh64;

use super::{Load, Partition, Share};
use crate::core::key::Key;
use crate::core::names::InstanceId;

/// Tokens of all members on a circle of 64 bits. A key belongs to the next token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    members: Vec<Share>,
    /// Sorted; each with the number of its member.
    tokens: Vec<(u64, usize)>,
}

// === impl Ring ===

impl Ring {
    /// The weight of a member is the number of its tokens.
    #[must_use]
    pub fn new(members: &[Share]) -> Self {
        let mut members = members.to_vec();
        members.sort();
        members.dedup_by(|a, b| a.id == b.id);
        let numbered = members.iter().enumerate();
        let tokens = numbered.flat_map(|(number, member)| {
            let token = move |i: u32| (xxh64(format!("{}{i}", member.id).as_bytes(), 0), number);
            (0..member.weight).map(token)
        });
        let mut tokens: Vec<(u64, usize)> = tokens.collect();
        tokens.sort_unstable();
        Self { members, tokens }
    }

    #[must_use]
    pub fn members(&self) -> &[Share] {
        &self.members
    }
}

impl Partition for Ring {
    fn owner(&self, key: &Key) -> Option<&InstanceId> {
        let hash = xxh64(format!("{}/{}", key.kind, key.path).as_bytes(), 0);
        let next = self.tokens.partition_point(|(token, _)| *token < hash);
        let (_, number) = self.tokens.get(next).or_else(|| self.tokens.first())?;
        Some(&self.members[*number].id)
    }

    fn with_members(&self, members: &[Share], _load: &Load) -> Self {
        Self::new(members)
    }
}
