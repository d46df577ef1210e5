//! Both partitions owe the same, and the slots owe more: balance, proportion, few moves.

use std::collections::BTreeMap;

use proptest::prelude::*;
use sharding::core::key::Key;
use sharding::core::object::GroupKind;
use sharding::core::partition::suite::check_step;
use sharding::core::partition::{Load, Partition, Ring, Share, Slots};

const SLOTS: usize = 1024;
const INSTANCES_MAX: u32 = 12;

fn share(number: u32, weight: u32) -> Share {
    Share { id: format!("controller-{number}").parse().expect("a label"), weight }
}

/// Names as they occur: counted, hashed, per team, of the cluster.
fn key(pattern: usize, number: usize) -> Key {
    let path = match pattern {
        0 => format!("default/secret-{number}"),
        1 => format!("team-{number}/web"),
        2 => format!("project-{}/homepage-{:x}", number % 17, number * 7919),
        3 => format!("/node-{number:05}"),
        4 => format!("shop/order-{:08x}-{:04x}", number * 2_654_435_761 % 0xffff_ffff, number),
        _ => format!("tenant-{}/db-{}", number / 10, number % 10),
    };
    Key { kind: GroupKind::new("example.com", "Site"), path }
}

fn keys(count: usize) -> Vec<Key> {
    (0..count).map(|number| key(number % 6, number)).collect()
}

fn empty() -> Slots {
    Slots::empty(SLOTS).expect("a power of two")
}

/// Stories of members: each step lists who is there, with its weight.
fn stories() -> impl Strategy<Value = Vec<Vec<Share>>> {
    let weight = prop_oneof![4 => Just(100_u32), 1 => 0..=1000_u32];
    let member = (0..INSTANCES_MAX, weight).prop_map(|(number, weight)| share(number, weight));
    let members = proptest::collection::vec(member, 0..8).prop_map(|mut members| {
        members.sort();
        members.dedup_by(|a, b| a.id == b.id);
        members
    });
    proptest::collection::vec(members, 1..8)
}

fn check_story<P: Partition>(first: P, story: &[Vec<Share>]) -> Result<(), TestCaseError> {
    let keys = keys(200);
    let (mut partition, mut before) = (first, Vec::new());
    for members in story {
        let next = check_step(&partition, &before, members, &keys);
        partition = next.map_err(|broken| TestCaseError::fail(broken.to_string()))?;
        before.clone_from(members);
    }
    Ok(())
}

/// Joins and leaves of equal members.
fn equal_stories() -> impl Strategy<Value = Vec<Vec<Share>>> {
    let set = proptest::collection::btree_set(0..INSTANCES_MAX, 1..10);
    let members = set.prop_map(|set| set.into_iter().map(|number| share(number, 100)).collect());
    proptest::collection::vec(members, 1..10)
}

fn held(table: &Slots) -> BTreeMap<String, usize> {
    let members = table.members().iter();
    members.map(|member| (member.id.to_string(), table.held_by(&member.id))).collect()
}

fn moved(before: &Slots, after: &Slots) -> usize {
    let pairs = before.owners().iter().zip(after.owners());
    pairs
        .filter(|(old, new)| {
            let id = |table: &'_ Slots, owner: &Option<usize>| {
                owner.map(|it| table.members()[it].id.clone())
            };
            id(before, old) != id(after, new)
        })
        .count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn slots_keep_their_word(story in stories()) {
        check_story(empty(), &story)?;
    }

    #[test]
    fn the_ring_keeps_its_word(story in stories()) {
        check_story(Ring::default(), &story)?;
    }

    #[test]
    fn equal_members_differ_by_one_slot_after_any_joins_and_leaves(story in equal_stories()) {
        let mut table = empty();
        for members in story {
            table = table.with_members(&members, &Load::unknown());
            let held = held(&table);
            let (most, least) = (held.values().max(), held.values().min());
            prop_assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{:?}", held);
        }
    }

    #[test]
    fn shares_are_proportional_to_weights(story in stories()) {
        let mut table = empty();
        for members in story {
            table = table.with_members(&members, &Load::unknown());
            let total: u32 = table.members().iter().map(|member| member.weight).sum();
            for member in table.members() {
                let ideal = f64::from(member.weight) / f64::from(total) * 1024.0;
                let held = f64::from(u32::try_from(table.held_by(&member.id)).expect("small"));
                if ideal > 40.0 {
                    prop_assert!((held / ideal - 1.0).abs() <= 0.05, "{} of {}", held, ideal);
                }
            }
        }
    }

    #[test]
    fn a_join_moves_no_more_than_its_share(count in 1..20_u32) {
        let members: Vec<Share> = (0..=count).map(|number| share(number, 100)).collect();
        let (newcomer, old) = members.split_last().expect("at least two");
        let before = empty().with_members(old, &Load::unknown());
        let after = before.with_members(&members, &Load::unknown());
        let bound = SLOTS.div_ceil(members.len());
        prop_assert!(moved(&before, &after) <= bound);
        prop_assert_eq!(moved(&before, &after), after.held_by(&newcomer.id));
        let keys = keys(5_000);
        let moved = keys.iter().filter(|key| before.owner(key) != after.owner(key)).count();
        let share = ratio(moved, keys.len());
        let ideal = 1.0 / f64::from(count + 1);
        prop_assert!(share <= ideal + 0.02, "{} moved, ideally {}", share, ideal);
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    f64::from(u32::try_from(part).expect("small")) / f64::from(u32::try_from(whole).expect("small"))
}

/// Chance alone spreads objects over slots with a variance equal to the mean.
#[test]
fn slots_are_about_as_even_as_chance_on_realistic_names() {
    const KEYS: usize = 20_480;
    for pattern in 0..6 {
        let mut counts = vec![0_u32; SLOTS];
        for number in 0..KEYS {
            counts[usize::from(empty().slot(&key(pattern, number)).0)] += 1;
        }
        let mean = ratio(KEYS, SLOTS);
        let squares = counts.iter().map(|count| (f64::from(*count) - mean).powi(2));
        let deviation = (squares.sum::<f64>() / ratio(SLOTS, 1)).sqrt();
        assert!(deviation <= 2.0 * mean.sqrt(), "pattern {pattern}: {deviation:.2} of {mean}");
    }
}

/// Objects of the fullest instance compared with the mean.
fn max_over_mean(partition: &impl Partition, keys: &[Key], members: usize) -> f64 {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for key in keys {
        *counts.entry(partition.owner(key)).or_default() += 1;
    }
    let most = counts.values().max().copied().unwrap_or(0);
    ratio(most * members, keys.len())
}

/// What count balancing is for: after it, the fullest has at most five percent more than the mean.
#[test]
fn counting_makes_shares_even() {
    let keys = keys(10_000);
    for count in [3, 5, 10] {
        let members: Vec<Share> = (0..count).map(|number| share(number, 100)).collect();
        let table = empty().with_members(&members, &Load::unknown());
        let mut objects = vec![0; SLOTS];
        for key in &keys {
            objects[usize::from(table.slot(key).0)] += 1;
        }
        let load = Load { objects, imbalance_max_percent: 5, moves_max: SLOTS / 50 };
        let even = table.with_members(&members, &load);
        let after = max_over_mean(&even, &keys, members.len());
        assert!(after <= 1.05, "{count} instances: {after:.3}");
        let ring = max_over_mean(&Ring::new(&members), &keys, members.len());
        assert!(ring > after, "{count} instances: the ring has {ring:.3}");
    }
}
