//! The history finds the mistakes it is made to find.

use super::calm::imbalance_at_last;
use super::{Fault, Plot, World};

/// Within so many lives each mistake must show.
const LIVES_MAX: u64 = 200;

#[track_caller]
fn check_found(fault: Fault, expected: &[&str]) {
    let live = |seed| {
        let fault = Some(fault);
        let plot =
            Plot { seed, instances: 3, objects: 20, is_rough: true, is_fenced: false, fault };
        World::new(plot).live()
    };
    let found = (0..LIVES_MAX).find_map(|seed| Some((seed, live(seed).err()?)));
    let Some((seed, found)) = found else {
        panic!("{fault:?} is not noticed in {LIVES_MAX} lives")
    };
    let is_expected = expected.iter().any(|words| found.contains(words));
    assert!(is_expected, "{fault:?}, seed {seed}: {found}");
}

#[test]
fn an_object_given_up_while_it_is_worked_on_is_found() {
    check_found(Fault::AckWhileBusy, &["who worked on it"]);
}

#[test]
fn an_instance_that_ignores_the_loss_of_its_lease_is_found() {
    check_found(Fault::LossIgnored, &["worked on by"]);
}

#[test]
fn an_acknowledgement_that_comes_too_late_is_found() {
    check_found(Fault::UnguardedAck, &["went from", "worked on by"]);
}

#[test]
fn children_that_go_first_are_found() {
    check_found(Fault::ChildrenFirst, &["before its parent"]);
}

#[test]
fn a_lease_taken_from_a_live_instance_is_found() {
    check_found(Fault::UnguardedAcquire, &["was taken"]);
}

#[test]
fn a_move_from_the_dead_without_their_lease_is_found() {
    check_found(Fault::DeadMoveWithoutHold, &["neither dead nor overdue", "before its parent"]);
}

#[test]
fn a_move_before_its_deadline_is_found() {
    // Of an instance whose Lease the sharder held until that was deleted, it is told by the children.
    check_found(Fault::ForceBeforeDeadline, &["neither dead nor overdue", "and its child"]);
}

#[test]
fn an_instance_that_says_it_has_seen_and_works_on_is_found() {
    check_found(Fault::SeenBeforeStopped, &["taken by force", "worked on by"]);
}

#[test]
fn a_parent_that_goes_before_its_children_is_found() {
    check_found(Fault::ChildrenForgotten, &["and its child"]);
}

#[test]
fn an_object_that_waits_too_long_for_its_owner_is_found() {
    check_found(Fault::AssignsLate, &["while somebody was ready"]);
}

#[test]
fn shares_that_nobody_evens_out_are_found() {
    let imbalance = imbalance_at_last(Some(Fault::CountsNothing));
    assert!(imbalance > 1.05, "{imbalance}");
}

#[test]
fn a_reconcile_that_goes_on_without_its_lease_is_found() {
    check_found(Fault::NoPollCheck, &["worked on by"]);
}
