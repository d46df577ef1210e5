//! Evening out by count: equal shares of slots are not equal shares of objects.

use super::{Load, Slots};

/// Below this many objects per instance, chance alone makes differences that would not pay for a
/// move.
pub const BALANCED_MEAN_MIN: u64 = 200;

/// Objects of a member, for each unit of its weight.
#[derive(Clone, Copy, Debug)]
struct Burden {
    objects: u64,
    weight: u32,
}

/// How far the fullest member is above the mean, by weight. 1 is even; 1 too where nothing is.
#[must_use]
pub fn imbalance(objects: &[u64], weights: &[u32]) -> f64 {
    let (sum, weight) =
        (objects.iter().sum::<u64>(), weights.iter().copied().map(u64::from).sum::<u64>());
    let burdens = objects.iter().zip(weights).filter(|(_, weight)| **weight > 0);
    let burdens = burdens.map(|(objects, weight)| Burden { objects: *objects, weight: *weight });
    let fullest = burdens.map(Burden::per_weight).fold(0.0, f64::max);
    if sum == 0 || weight == 0 { 1.0 } else { fullest / (to_f64(sum) / to_f64(weight)) }
}

/// Moves slots from the fullest member to the emptiest, each lowering the greater of the two.
pub(super) fn even_out(table: &mut Slots, load: &Load) {
    let members = table.members().len();
    if load.objects.len() != table.count() || members < 2 {
        return;
    }
    for _ in 0..load.moves_max {
        let objects = objects_of_members(table, load);
        let weights: Vec<u32> = table.members().iter().map(|member| member.weight).collect();
        let enough = BALANCED_MEAN_MIN * u64::try_from(members).expect("members are few");
        let bound = 1.0 + f64::from(load.imbalance_max_percent) / 100.0;
        if objects.iter().sum::<u64>() < enough || imbalance(&objects, &weights) <= bound {
            return;
        }
        let Some((slot, to)) = best_move(table, load, &objects) else { return };
        table.give(slot, to);
    }
}

fn objects_of_members(table: &Slots, load: &Load) -> Vec<u64> {
    let mut objects = vec![0; table.members().len()];
    for (owner, count) in table.owners().iter().zip(&load.objects) {
        if let Some(index) = owner {
            objects[*index] += count;
        }
    }
    objects
}

/// The slot of the fullest that leaves the greater of the two smallest. Of equals, the first.
fn best_move(table: &Slots, load: &Load, objects: &[u64]) -> Option<(usize, usize)> {
    let burden = |index: usize, objects: u64| {
        Burden { objects, weight: table.members()[index].weight }.per_weight()
    };
    let compare =
        |a: &usize, b: &usize| burden(*a, objects[*a]).total_cmp(&burden(*b, objects[*b]));
    let members = 0..objects.len();
    let (from, to) = (members.clone().max_by(compare)?, members.min_by(compare)?);
    let after =
        |count: u64| burden(from, objects[from] - count).max(burden(to, objects[to] + count));
    let of_fullest = table.owners().iter().zip(&load.objects).enumerate();
    let of_fullest = of_fullest.filter(|(_, (owner, count))| **owner == Some(from) && **count > 0);
    let (slot, worst) = of_fullest
        .map(|(slot, (_, count))| (slot, after(*count)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    (worst < burden(from, objects[from])).then_some((slot, to))
}

#[expect(clippy::cast_precision_loss, reason = "counts of objects are far below 2^52")]
fn to_f64(count: u64) -> f64 {
    count as f64
}

// === impl Burden ===

impl Burden {
    fn per_weight(self) -> f64 {
        to_f64(self.objects) / f64::from(self.weight)
    }
}
