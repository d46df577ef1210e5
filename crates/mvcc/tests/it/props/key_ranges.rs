//! A range contains the keys that etcd's definition says, and knows where it ends.

use mvcc::KeyRange;
use proptest::prelude::*;

use crate::{arbitrary, model::is_in_range};

proptest! {
    #[test]
    fn by_definition(start in arbitrary::key(), end in arbitrary::range_end(), key in arbitrary::key()) {
        let range = KeyRange::new(&start, &end);
        prop_assert_eq!(range.contains(&key), is_in_range(&key, &start, &end));
        prop_assert_eq!(range.single().is_some(), end.is_empty());
    }

    #[test]
    fn past_means_past_for_all_greater_keys(
        start in arbitrary::key(),
        end in arbitrary::range_end(),
        key in arbitrary::key(),
        greater in arbitrary::key(),
    ) {
        let range = KeyRange::new(&start, &end);
        if range.is_past(&key) {
            prop_assert!(!range.contains(&key));
            prop_assert!(greater < key || range.is_past(&greater));
        }
    }
}
