//! The simulation finds the mistakes it is made to find.

use super::{Fault, Plot, World};

/// Within so many lives each mistake must show.
const LIVES_MAX: u64 = 200;

#[track_caller]
fn check_found(fault: Fault, hosts: usize) {
    check_found_at_sea(fault, hosts, true);
}

#[track_caller]
fn check_found_at_sea(fault: Fault, hosts: usize, is_rough: bool) {
    let live = |seed| {
        let fault = Some(fault);
        World::new(Plot { seed, hosts, tasks: 16, is_rough, crash_at: None, fault }).live()
    };
    let found = (0..LIVES_MAX).any(|seed| live(seed).is_err());
    assert!(found, "{fault:?} is not noticed in {LIVES_MAX} lives");
}

#[test]
fn a_claim_without_its_fence_is_found() {
    // With others around, they take the task before the late claim arrives.
    check_found(Fault::ClaimWithoutFence, 1);
}

#[test]
fn a_requeue_from_a_live_node_is_found() {
    check_found(Fault::RequeueFromLiveNode, 4);
}

#[test]
fn a_completion_by_a_stale_owner_is_found() {
    check_found(Fault::CompletionByStaleOwner, 4);
}

#[test]
fn a_resend_with_another_write_id_is_found() {
    check_found(Fault::ResendWithNewWriteId, 4);
}

/// Nodes whose clocks were behind left tasks lying that others had taken in.
#[test]
fn a_submit_that_is_timed_by_the_submitters_clock_is_found() {
    check_found_at_sea(Fault::QueuedByTheClock, 3, false);
}
