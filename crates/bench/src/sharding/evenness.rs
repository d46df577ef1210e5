//! How full the fullest instance is compared with the mean: as tables come out, without a cluster, and
//! as it was measured.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use sharding::core::{
    key::Key,
    names::InstanceId,
    object::GroupKind,
    partition::{Load, Partition, Ring, Share, Slots},
};

use super::report::Evenness;

const SLOTS: usize = 1024;
const KEYS: usize = 10_000;
const TOKENS: u32 = 100;
const IMBALANCE_MAX_PERCENT: u32 = 5;

/// Two in a hundred, as rings have it by default.
const MOVES_MAX: usize = SLOTS / 50;

/// With five and with ten instances, and then what was measured.
pub(super) fn all(measured: Vec<Evenness>) -> Result<Vec<Evenness>> {
    let mut all = simulated(&[5, 10])?;
    all.extend(measured);
    Ok(all)
}

/// Both partitions with so many equal instances and ten thousand objects.
pub fn simulated(counts: &[u32]) -> Result<Vec<Evenness>> {
    let keys: Vec<Key> = (0..KEYS).map(key).collect();
    let mut all = Vec::new();
    for count in counts {
        let shares = (0..*count).map(|number| share(&format!("i-{number}")));
        let shares = shares.collect::<Result<Vec<Share>>>()?;
        let slots = even_slots(&shares, &keys)?;
        let ring = Ring::new(&shares);
        let instances = shares.len();
        let of =
            |way: &str, max_over_mean| Evenness { way: way.to_owned(), instances, max_over_mean };
        all.push(of("slots, simulated", max_over_mean(&counts_of(&slots, &keys), instances)?));
        let ringed = max_over_mean(&counts_of(&ring, &keys), instances)?;
        all.push(of("ring of 100 tokens, simulated", ringed));
    }
    Ok(all)
}

/// Of what each instance has.
pub(super) fn max_over_mean(counts: &BTreeMap<String, usize>, instances: usize) -> Result<f64> {
    let total: usize = counts.values().sum();
    ensure!(total > 0 && instances > 0, "there is nothing to compare");
    let most = counts.values().max().copied().unwrap_or_default();
    #[expect(clippy::cast_precision_loss, reason = "thousands of objects")]
    let ratio = (most * instances) as f64 / total as f64;
    Ok(ratio)
}

fn share(id: &str) -> Result<Share> {
    let id: InstanceId = id.parse()?;
    Ok(Share { id, weight: TOKENS })
}

fn key(number: usize) -> Key {
    let path = format!("project-{}/homepage-{number:06}", number % 17);
    Key { kind: GroupKind::new("example.com", "Site"), path }
}

/// A table that was evened out once, as after the first count.
fn even_slots(shares: &[Share], keys: &[Key]) -> Result<Slots> {
    let table = Slots::empty(SLOTS)?.with_members(shares, &Load::unknown());
    let mut objects = vec![0; SLOTS];
    for key in keys {
        objects[usize::from(table.slot(key).0)] += 1;
    }
    let load = Load { objects, imbalance_max_percent: IMBALANCE_MAX_PERCENT, moves_max: MOVES_MAX };
    Ok(table.with_members(shares, &load))
}

fn counts_of(partition: &impl Partition, keys: &[Key]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for owner in keys.iter().filter_map(|key| partition.owner(key)) {
        *counts.entry(owner.to_string()).or_default() += 1;
    }
    counts
}
