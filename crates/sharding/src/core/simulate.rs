//! What would happen if instances joined, left or had another weight. Changes nothing.

use std::collections::BTreeMap;

use super::key::Key;
use super::names::InstanceId;
use super::partition::{Load, Partition, Share, SlotId, Table, imbalance};

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
    /// Main objects.
    pub objects: u64,
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
    /// None with consistent hashing, which has none.
    pub slots: usize,
    pub objects: u64,
}

/// A change under trial: told of every main object, it says what would become of them.
#[derive(Clone, Debug)]
pub struct Trial {
    before: Table,
    after: Table,
    /// Those who are there after it, whether they get anything or not.
    members: Vec<Share>,
    counted: u64,
    /// Objects by who has them and who would.
    objects: BTreeMap<(InstanceId, InstanceId), u64>,
}

// === impl Trial ===

impl Trial {
    pub fn new(table: &Table, changes: &[Change]) -> Result<Self, ChangeError> {
        let members = changed(table.members(), changes)?;
        let after = table.with_members(&members, &Load::unknown());
        let before = table.clone();
        Ok(Self { before, after, members, counted: 0, objects: BTreeMap::new() })
    }

    /// There is a main object that counts by this key.
    pub fn count(&mut self, key: &Key) {
        self.counted += 1;
        if let (Some(from), Some(to)) = (self.before.owner(key), self.after.owner(key)) {
            *self.objects.entry((from.clone(), to.clone())).or_default() += 1;
        }
    }

    #[must_use]
    pub fn end(self) -> Simulation {
        let moves = self.moves();
        let writes = moves.iter().map(|it| {
            let stays = self.members.iter().any(|member| member.id == it.from);
            it.objects * if stays { WRITES_PER_MOVE } else { WRITES_PER_TAKEOVER }
        });
        Simulation {
            writes: writes.sum(),
            moves,
            objects: self.counted,
            imbalance_before: self.imbalance_of(&self.before, |(from, _)| from),
            imbalance_after: self.imbalance_of(&self.after, |(_, to)| to),
        }
    }

    /// Slots without objects are moves too.
    fn moves(&self) -> Vec<Move> {
        let mut moved: BTreeMap<&(InstanceId, InstanceId), (usize, u64)> = BTreeMap::new();
        let slots = self.moved_slots();
        for pair in &slots {
            moved.entry(pair).or_default().0 += 1;
        }
        for (pair, count) in self.objects.iter().filter(|((from, to), _)| from != to) {
            moved.entry(pair).or_default().1 += count;
        }
        let each = moved.into_iter().map(|((from, to), (slots, objects))| Move {
            from: from.clone(),
            to: to.clone(),
            slots,
            objects,
        });
        each.collect()
    }

    fn moved_slots(&self) -> Vec<(InstanceId, InstanceId)> {
        let (Table::Slots(before), Table::Slots(after)) = (&self.before, &self.after) else {
            return Vec::new();
        };
        let slots = (0..before.count()).filter_map(|slot| u16::try_from(slot).ok()).map(SlotId);
        let owners = slots.filter_map(|slot| before.owner_of(slot).zip(after.owner_of(slot)));
        let moved = owners.filter(|(from, to)| from != to);
        moved.map(|(from, to)| (from.clone(), to.clone())).collect()
    }

    fn imbalance_of(
        &self,
        table: &Table,
        owner: impl Fn(&(InstanceId, InstanceId)) -> &InstanceId,
    ) -> f64 {
        let held = |id: &InstanceId| {
            let own = self.objects.iter().filter(|(pair, _)| owner(pair) == id);
            own.map(|(_, count)| count).sum()
        };
        let objects: Vec<u64> = table.members().iter().map(|member| held(&member.id)).collect();
        let weights: Vec<u32> = table.members().iter().map(|member| member.weight).collect();
        imbalance(&objects, &weights)
    }
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

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::core::object::GroupKind;
    use crate::core::partition::{Ring, Slots};

    fn share(id: &str, weight: u32) -> Share {
        Share { id: id.parse().unwrap(), weight }
    }

    fn members() -> [Share; 2] {
        [share("a", 100), share("b", 100)]
    }

    fn slots() -> Table {
        Table::Slots(Slots::empty(64).unwrap().with_members(&members(), &Load::unknown()))
    }

    fn told(table: &Table, changes: &[Change]) -> String {
        let mut trial = match Trial::new(table, changes) {
            Err(error) => return error.to_string(),
            Ok(trial) => trial,
        };
        let kind = GroupKind::new("example.com", "Site");
        for number in 0..640 {
            trial.count(&Key { kind: kind.clone(), path: format!("shop/site-{number}") });
        }
        let it = trial.end();
        assert_eq!(it.objects, 640);
        let moves = it.moves.iter().map(|it| {
            format!("{} → {}: {} slots, {} objects\n", it.from, it.to, it.slots, it.objects)
        });
        let (before, after) = (it.imbalance_before, it.imbalance_after);
        let moves: String = moves.collect();
        format!("{moves}{before:.3} → {after:.3}, {} writes", it.writes)
    }

    #[track_caller]
    fn check(changes: &[Change], expected: &Expect) {
        expected.assert_eq(&told(&slots(), changes));
    }

    #[test]
    fn what_would_be() {
        check(&[], &expect!["1.037 → 1.037, 0 writes"]);
        check(
            &[Change::Join(share("c", 100))],
            &expect![[r#"
            a → c: 11 slots, 103 objects
            b → c: 10 slots, 97 objects
            1.037 → 1.102, 600 writes"#]],
        );
        check(
            &[Change::Leave("b".parse().unwrap())],
            &expect![[r#"
            b → a: 32 slots, 332 objects
            1.037 → 1.000, 332 writes"#]],
        );
        check(
            &[Change::Weigh(share("b", 300))],
            &expect![[r#"
            a → b: 16 slots, 157 objects
            1.037 → 1.019, 471 writes"#]],
        );
    }

    #[test]
    fn what_cannot_be() {
        check(&[Change::Join(share("a", 100))], &expect!["a is already a member"]);
        check(&[Change::Leave("c".parse().unwrap())], &expect!["c is no member"]);
        check(&[Change::Weigh(share("c", 1))], &expect!["c is no member"]);
    }

    /// A ring that is divided by consistent hashing was refused, for having no slots.
    #[test]
    fn what_would_be_without_slots() {
        let ring = Table::Ring(Ring::new(&members()));
        let expected = expect![[r#"
            a → c: 0 slots, 119 objects
            b → c: 0 slots, 133 objects
            1.081 → 1.181, 756 writes"#]];
        expected.assert_eq(&told(&ring, &[Change::Join(share("c", 100))]));
    }
}
