//! What every partition owes its users, as checks that a property test feeds with stories. One that
//! fails says what was broken.

use std::collections::BTreeSet;

use super::{Load, Partition, Share};
use crate::core::key::Key;
use crate::core::names::InstanceId;

/// A broken obligation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("{key:?} has no owner among {members} members")]
    NotTotal { key: Key, members: usize },
    #[error("{key:?} belongs to {owner}, who is no member")]
    Stranger { key: Key, owner: InstanceId },
    #[error("{0:?} has another owner when members are listed in another order")]
    NotDeterministic(Key),
    #[error("{key:?} moved from {from} to {to}, of whom neither joined, left or changed")]
    NotMinimal { key: Key, from: InstanceId, to: InstanceId },
}

/// One step of a story: from the members of `before` to `members`. `shares` are those of `before`.
pub fn check_step<P: Partition>(
    before: &P,
    shares: &[Share],
    members: &[Share],
    keys: &[Key],
) -> Result<P, Broken> {
    let after = before.with_members(members, &Load::unknown());
    let live: Vec<&Share> = members.iter().filter(|member| member.weight > 0).collect();
    let mut reversed = members.to_vec();
    reversed.reverse();
    let again = before.with_members(&reversed, &Load::unknown());
    let changed = changed(shares, members);
    for key in keys {
        let owner = check_owner(&after, key, &live)?;
        if again.owner(key) != owner {
            return Err(Broken::NotDeterministic(key.clone()));
        }
        if let (Some(from), Some(to)) = (before.owner(key), owner)
            && from != to
            && !changed.contains(from)
            && !changed.contains(to)
        {
            let (key, from, to) = (key.clone(), from.clone(), to.clone());
            return Err(Broken::NotMinimal { key, from, to });
        }
    }
    Ok(after)
}

fn check_owner<'a, P: Partition>(
    after: &'a P,
    key: &Key,
    live: &[&Share],
) -> Result<Option<&'a InstanceId>, Broken> {
    let owner = after.owner(key);
    match owner {
        None if !live.is_empty() => Err(Broken::NotTotal { key: key.clone(), members: live.len() }),
        Some(owner) if !live.iter().any(|member| member.id == *owner) => {
            Err(Broken::Stranger { key: key.clone(), owner: owner.clone() })
        }
        _ => Ok(owner),
    }
}

/// Who joined, left, or has another weight.
fn changed(before: &[Share], after: &[Share]) -> BTreeSet<InstanceId> {
    let live = |shares: &[Share]| -> BTreeSet<Share> {
        shares.iter().filter(|share| share.weight > 0).cloned().collect()
    };
    let (before, after) = (live(before), live(after));
    before.symmetric_difference(&after).map(|share| share.id.clone()).collect()
}
