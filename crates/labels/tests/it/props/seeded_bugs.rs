//! The properties find the mistakes they are made to find. Two more are found by the stories.

use super::{Chance, Fault, Life, Order, SEEDS, first_broken};

#[track_caller]
fn check_found(fault: Fault) {
    assert!(first_broken(Order::AddedOvertakes, fault).is_some(), "{fault:?} is not noticed");
}

#[test]
fn dedupe_by_highest_rv_is_found() {
    check_found(Fault::DedupeByHighestRv);
}

#[test]
fn d3_without_amend_is_found() {
    check_found(Fault::NoAmend);
}

#[test]
fn an_unguarded_patch_is_found() {
    check_found(Fault::UnguardedPatch);
}

#[test]
fn cached_absence_is_found() {
    check_found(Fault::CachedAbsence);
}

#[test]
fn unordered_posting_is_found() {
    let fault = Some(Fault::UnorderedPosting);
    let mut lives = SEEDS.map(|seed| Life::new(Chance::new(seed), Order::Permuted, fault));
    assert!(lives.any(|life| life.live_and_compare().is_err()), "unordered posting is not noticed");
}
