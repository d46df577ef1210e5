//! What would happen if instances joined, left or had another weight. Changes nothing.

use std::collections::BTreeMap;

use super::names::InstanceId;
use super::partition::{Load, Partition, Share, SlotId, Slots, imbalance};

/// A graceful move takes a drain, an acknowledgement and an assignment.
const WRITES_PER_MOVE: u64 = 3;
/// The objects of one who is gone are taken with one write each.
const WRITES_PER_TAKEOVER: u64 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Join(Share),
    Leave(InstanceId),
    Weigh(Share),
}

/// Why a change cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    #[error("{0} is already a member")]
    Member(InstanceId),
    #[error("{0} is no member")]
    NotAMember(InstanceId),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Simulation {
    pub moves: Vec<Move>,
    /// The fullest instance compared with the mean.
    pub imbalance_before: f64,
    pub imbalance_after: f64,
    /// Requests to the API server, children not counted.
    pub writes: u64,
}

/// What one instance would get from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    pub from: InstanceId,
    pub to: InstanceId,
    pub slots: usize,
    pub objects: u64,
}

/// `objects` by slot, as counted.
pub fn simulate(
    table: &Slots,
    objects: &[u64],
    changes: &[Change],
) -> Result<Simulation, ChangeError> {
    let members = changed(table.members(), changes)?;
    let after = table.with_members(&members, &Load::unknown());
    let moves = moves(table, &after, objects);
    let writes = moves.iter().map(|it| {
        let stays = members.iter().any(|member| member.id == it.from);
        it.objects * if stays { WRITES_PER_MOVE } else { WRITES_PER_TAKEOVER }
    });
    Ok(Simulation {
        writes: writes.sum(),
        moves,
        imbalance_before: imbalance_of(table, objects),
        imbalance_after: imbalance_of(&after, objects),
    })
}

fn changed(members: &[Share], changes: &[Change]) -> Result<Vec<Share>, ChangeError> {
    let mut weights: BTreeMap<InstanceId, u32> =
        members.iter().map(|member| (member.id.clone(), member.weight)).collect();
    for change in changes {
        match change {
            Change::Join(share) => {
                if weights.insert(share.id.clone(), share.weight).is_some() {
                    return Err(ChangeError::Member(share.id.clone()));
                }
            }
            Change::Leave(id) => {
                weights.remove(id).ok_or_else(|| ChangeError::NotAMember(id.clone()))?;
            }
            Change::Weigh(share) => {
                let weight = weights.get_mut(&share.id);
                *weight.ok_or_else(|| ChangeError::NotAMember(share.id.clone()))? = share.weight;
            }
        }
    }
    Ok(weights.into_iter().map(|(id, weight)| Share { id, weight }).collect())
}

fn moves(before: &Slots, after: &Slots, objects: &[u64]) -> Vec<Move> {
    let mut moved: BTreeMap<(&InstanceId, &InstanceId), (usize, u64)> = BTreeMap::new();
    for (slot, count) in objects.iter().enumerate() {
        let slot = SlotId(u16::try_from(slot).expect("slots are numbered in 16 bits"));
        if let (Some(from), Some(to)) = (before.owner_of(slot), after.owner_of(slot))
            && from != to
        {
            let (slots, objects) = moved.entry((from, to)).or_default();
            (*slots, *objects) = (*slots + 1, *objects + count);
        }
    }
    let each = moved.into_iter().map(|((from, to), (slots, objects))| Move {
        from: from.clone(),
        to: to.clone(),
        slots,
        objects,
    });
    each.collect()
}

fn imbalance_of(table: &Slots, objects: &[u64]) -> f64 {
    let mut held = vec![0; table.members().len()];
    for (owner, count) in table.owners().iter().zip(objects) {
        if let Some(index) = owner {
            held[*index] += count;
        }
    }
    let weights: Vec<u32> = table.members().iter().map(|member| member.weight).collect();
    imbalance(&held, &weights)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn share(id: &str, weight: u32) -> Share {
        Share { id: id.parse().unwrap(), weight }
    }

    #[track_caller]
    fn check(changes: &[Change], expected: &Expect) {
        let members = [share("a", 100), share("b", 100)];
        let table = Slots::empty(64).unwrap().with_members(&members, &Load::unknown());
        let objects = vec![10; 64];
        let told = match simulate(&table, &objects, changes) {
            Err(error) => error.to_string(),
            Ok(it) => {
                let moves = it.moves.iter().map(|it| {
                    format!("{} → {}: {} slots, {} objects\n", it.from, it.to, it.slots, it.objects)
                });
                let (before, after) = (it.imbalance_before, it.imbalance_after);
                let moves: String = moves.collect();
                format!("{moves}{before:.3} → {after:.3}, {} writes", it.writes)
            }
        };
        expected.assert_eq(&told);
    }

    #[test]
    fn what_would_be() {
        check(&[], &expect!["1.000 → 1.000, 0 writes"]);
        check(
            &[Change::Join(share("c", 100))],
            &expect![[r#"
            a → c: 11 slots, 110 objects
            b → c: 10 slots, 100 objects
            1.000 → 1.031, 630 writes"#]],
        );
        check(
            &[Change::Leave("b".parse().unwrap())],
            &expect![[r#"
            b → a: 32 slots, 320 objects
            1.000 → 1.000, 320 writes"#]],
        );
        check(
            &[Change::Weigh(share("b", 300))],
            &expect![[r#"
            a → b: 16 slots, 160 objects
            1.000 → 1.000, 480 writes"#]],
        );
    }

    #[test]
    fn what_cannot_be() {
        check(&[Change::Join(share("a", 100))], &expect!["a is already a member"]);
        check(&[Change::Leave("c".parse().unwrap())], &expect!["c is no member"]);
        check(&[Change::Weigh(share("c", 1))], &expect!["c is no member"]);
    }
}
