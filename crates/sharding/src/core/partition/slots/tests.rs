use expect_test::{Expect, expect};

use super::super::table::Kept;
use super::*;
use crate::core::object::GroupKind;

fn share(id: &str, weight: u32) -> Share {
    Share { id: id.parse().unwrap(), weight }
}

fn shares(text: &str) -> Vec<Share> {
    let each = text.split_whitespace().map(|word| match word.split_once(':') {
        Some((id, weight)) => share(id, weight.parse().unwrap()),
        None => share(word, 100),
    });
    each.collect()
}

/// The owners of 64 slots after each line of members.
#[track_caller]
fn check(story: &[&str], expected: &Expect) {
    let mut table = Slots::empty(64).unwrap();
    let mut told = String::new();
    for line in story {
        table = table.with_members(&shares(line), &Load::unknown());
        let letter = |owner: &Option<usize>| match owner {
            Some(index) => table.members[*index].id.to_string(),
            None => ".".to_owned(),
        };
        let owners: String = table.owners.iter().map(letter).collect();
        told.push_str(&format!("{owners} {line}\n"));
    }
    expected.assert_eq(&told);
}

#[test]
fn a_table_fills_evenly_and_moves_little() {
    check(
        &["", "a b", "a b c", "a c", "a c d:300", "a c d:0", ""],
        &expect![[r#"
            ................................................................ 
            bbabaabbbbaababbbaaaaaaabbabaaabaabbabababbbaaabaaaabbabbbaabbbb a b
            cbcbcabbccaababbccacccaabcacacabaabcababacbbacabccaacbabbbacbbbc a b c
            cacccacaccaacaacccacccaaacacacaaaaacacaaacacacacccaaccaccaaccaac a c
            dddccdcdddaacdacddddddddddadaddadaadacaddddcdcdcdddadcaccdddcadd a c d:300
            caaccccaccaaccaccaaaaaacccacaaaacaacacaaacccccacaacaccaccaaacacc a c d:0
            ................................................................ 
        "#]],
    );
}

/// 40 names in a row, in many namespaces: no instance of two is left with next to nothing.
#[test]
fn names_that_are_counted_up_are_spread() {
    let table = Slots::empty(1024).unwrap().with_members(&shares("a b"), &Load::unknown());
    for namespace in ["restarted", "default", "shop"]
        .into_iter()
        .map(str::to_owned)
        .chain((0..500).map(|number| format!("team-{number}")))
    {
        let keys = (0..40).map(|number| Key {
            kind: GroupKind::new("", "Secret"),
            path: format!("{namespace}/site-{number:04}"),
        });
        let of_a = keys.filter(|key| table.owner(key).unwrap().as_str() == "a").count();
        assert!((8..=32).contains(&of_a), "{namespace}: {of_a} of 40");
    }
}

#[test]
fn tables_are_kept_and_read_again() {
    let table = Slots::empty(64).unwrap().with_members(&shares("a b:50"), &Load::unknown());
    let kept = Kept::new(7, &table);
    assert_eq!(kept.read(), Ok(table));
    let text = serde_json::to_string(&kept).unwrap();
    assert!(text.starts_with(r#"{"epoch":7,"instances":[{"id":"a","weight":100},"#), "{text}");
    assert_eq!(serde_json::from_str::<Kept>(&text).unwrap(), kept);
}

#[test]
fn kept_tables_that_contradict_themselves_are_refused() {
    let member = |id: &str| share(id, 100);
    let error = |members: Vec<Share>, owners| Slots::restore(members, owners).unwrap_err();
    assert_eq!(error(vec![], vec![None; 63]), SlotsError::Count(63));
    assert_eq!(error(vec![], vec![None; 32]), SlotsError::Count(32));
    assert_eq!(error(vec![], vec![None; 16_384]), SlotsError::Count(16_384));
    let stranger = SlotsError::Owner { slot: 0, index: 1, instances: 1 };
    assert_eq!(error(vec![member("a")], vec![Some(1); 64]), stranger);
    let twice = SlotsError::Twice("a".parse().unwrap());
    assert_eq!(error(vec![member("a"), member("a")], vec![Some(1); 64]), twice);
}

#[test]
fn members_kept_in_any_order_are_the_same_table() {
    let owners: Vec<Option<usize>> = (0..64).map(|slot| Some(slot % 2)).collect();
    let swapped = owners.iter().map(|owner| owner.map(|index| 1 - index)).collect();
    let one = Slots::restore(shares("a b"), owners).unwrap();
    assert_eq!(Slots::restore(shares("b a"), swapped), Ok(one));
}

#[test]
fn a_lost_table_is_rebuilt_from_what_objects_say() {
    let tally = |entries: &[(u16, &str, u64)]| {
        let entry = |(slot, id, objects): &(u16, &str, u64)| {
            ((SlotId(*slot), id.parse().unwrap()), *objects)
        };
        entries.iter().map(entry).collect::<BTreeMap<_, _>>()
    };
    let tally = tally(&[(0, "b", 3), (0, "a", 2), (1, "gone", 9), (1, "a", 1), (2, "gone", 1)]);
    let table = Slots::rebuild(64, &shares("a b"), &tally).unwrap();
    let owner = |slot: u16| table.owner_of(SlotId(slot)).unwrap().as_str();
    assert_eq!((owner(0), owner(1)), ("b", "a"));
    assert_eq!(table.held_by(&"a".parse().unwrap()), 32);
}

#[test]
fn counts_are_evened_out_within_the_bounds() {
    let table = Slots::empty(64).unwrap().with_members(&shares("a b"), &Load::unknown());
    // Slots of a have 12 objects each, those of b 8: 1.2 times the mean.
    let objects: Vec<u64> =
        table.owners.iter().map(|owner| if *owner == Some(0) { 12 } else { 8 }).collect();
    let held_by_a = |moves_max, factor: u64| {
        let objects = objects.iter().map(|count| count * factor).collect();
        let load = Load { objects, imbalance_max_percent: 5, moves_max };
        table.with_members(&shares("a b"), &load).held_by(&"a".parse().unwrap())
    };
    assert_eq!(held_by_a(100, 1), 28, "until five percent are left");
    assert_eq!(held_by_a(2, 1), 30, "no more than allowed");
    assert_eq!(held_by_a(0, 1), 32);
    assert_eq!(held_by_a(100, 0), 32, "too few to matter");
}
