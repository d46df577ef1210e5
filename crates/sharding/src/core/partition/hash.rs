//! The slot of a key: a weighted sum of its characters, plain enough that an admission policy can
//! compute it too, so that policies can assign objects one day without moving any.

use std::sync::LazyLock;

use xxhash_rust::xxh64::xxh64;

use super::slots::SlotId;
use crate::core::key::Key;

/// The prime 2³¹ − 1: sums of products with it stay within 64 bits.
const MODULUS: u64 = (1 << 31) - 1;
/// A namespace, a slash and a name.
const CHARACTERS_MAX: usize = 63 + 1 + 253;

static WEIGHTS: LazyLock<Vec<u64>> = LazyLock::new(|| (0..CHARACTERS_MAX).map(weight).collect());

pub(super) fn slot(key: &Key, slots: usize) -> SlotId {
    let salt = xxh64(key.kind.to_string().as_bytes(), 0) % MODULUS;
    let terms = key.path.chars().enumerate().map(|(at, character)| {
        let weight = WEIGHTS.get(at).copied().unwrap_or_else(|| weight(at));
        code(character) * weight
    });
    let sum = terms.fold(salt, |sum, term| (sum + term) % MODULUS);
    let slots = u64::try_from(slots).expect("a number of slots is small");
    SlotId(u16::try_from(sum % slots).expect("slots are numbered in 16 bits"))
}

fn weight(at: usize) -> u64 {
    1 + xxh64(format!("windlass/{at}").as_bytes(), 0) % (MODULUS - 1)
}

/// The place of a character, counted from 2, in `a-z0-9-./A-Z`; 1 for all others.
fn code(character: char) -> u64 {
    let from = |first: char, place: u64| u64::from(character) - u64::from(first) + place;
    match character {
        'a'..='z' => from('a', 2),
        '0'..='9' => from('0', 28),
        '-' => 38,
        '.' => 39,
        '/' => 40,
        'A'..='Z' => from('A', 41),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::object::GroupKind;

    #[test]
    fn characters_have_their_places() {
        for (character, expected) in [
            ('a', 2),
            ('z', 27),
            ('0', 28),
            ('9', 37),
            ('-', 38),
            ('.', 39),
            ('/', 40),
            ('A', 41),
            ('Z', 66),
            ('_', 1),
            ('é', 1),
        ] {
            assert_eq!(code(character), expected, "{character}");
        }
    }

    /// Worked out apart from the code, from XXH64 of the words alone: kept assignments depend on it.
    #[test]
    fn slots_are_what_they_have_always_been() {
        let kind = GroupKind::new("", "Secret");
        let slot_of = |path: &str| slot(&Key { kind: kind.clone(), path: path.to_owned() }, 1024).0;
        assert_eq!([slot_of("a/b"), slot_of("default/token"), slot_of("/node-1")], [948, 366, 444]);
    }

    #[test]
    fn kinds_with_equal_names_are_spread_apart() {
        let key = |kind: &str| Key { kind: GroupKind::new("", kind), path: "a/b".to_owned() };
        assert_ne!(slot(&key("Secret"), 1024), slot(&key("ConfigMap"), 1024));
    }

    #[test]
    fn paths_longer_than_any_name_have_a_slot_too() {
        let path = "x".repeat(CHARACTERS_MAX + 100);
        let key = Key { kind: GroupKind::new("", "Secret"), path };
        assert!(slot(&key, 64).0 < 64);
    }
}
