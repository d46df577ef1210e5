//! The check for keys that are written twice agrees with one that compares all pairs of writes.

use mvcc::check::{self, RequestError};
use proptest::prelude::*;

use crate::{arbitrary, model::duplicates, world::TXN_OPS_MAX};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn are_found(txn in arbitrary::any_txn()) {
        let expected =
            if duplicates::are_in(&txn) { Err(RequestError::DuplicateKey) } else { Ok(()) };
        prop_assert_eq!(check::txn(&txn, TXN_OPS_MAX), expected);
    }
}
