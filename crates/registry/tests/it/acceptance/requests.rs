//! C11–C14, C20, C22: requests and how they end.

use expect_test::expect;
use registry::Step;

use crate::story::Story;

const LATE: &str = "g1 T=5 provision=2m: ready";

/// A request of four that is a minute late.
fn late() -> Story {
    let mut story = Story::new();
    story.at("-3m").ask("g1", 4, 1);
    story.at("0s");
    story
}

#[test]
fn c11_a_request_that_is_late_fails() {
    let mut story = late();
    expect![[r#"
        reduce g1 by 4
        failure g1 timeout 4: Scale-up timed out for node group g1 after 3m0s
        event ScaleUpTimedOut: Nodes added to group g1 failed to register within 3m0s
    "#]]
    .assert_eq(&story.see(LATE));
    expect![[r#"
        cluster Healthy NoActivity NoCandidates
        g1 Unhealthy Unhealthy NoCandidates"#]]
    .assert_eq(&story.statuses());
}

#[test]
fn c12_a_request_that_is_late_is_reverted_once() {
    let mut story = late();
    story.observe(LATE);
    assert_eq!(story.decreased("g1", 4, Step::Requested), "");
    assert_eq!(story.decreased("g1", 4, Step::Done), "");
    assert_eq!(story.requests("g1"), "");
    assert_eq!(story.at("10s").see("g1 T=1 provision=2m: ready"), "");
}

#[test]
fn c13_a_refused_revert_is_told() {
    let mut story = late();
    story.observe(LATE);
    story.decreased("g1", 4, Step::Requested);
    let told = story.decreased("g1", 4, Step::Failed { message: "busy".to_owned() });
    expect![[r#"
        event FailedToRevertScaleUp: Failed to lower the size of group g1: busy
    "#]]
    .assert_eq(&told);
    assert_eq!(story.requests("g1"), "");
    assert_eq!(story.at("10s").see(LATE), "reduce g1 by 4\n", "and tried again");
}

#[test]
fn c14_what_arrived_is_not_reverted() {
    let mut story = late();
    expect![[r#"
        reduce g1 by 2
        failure g1 timeout 2: Scale-up timed out for node group g1 after 3m0s
        event ScaleUpTimedOut: Nodes added to group g1 failed to register within 3m0s
    "#]]
    .assert_eq(&story.see("g1 T=5 provision=2m: 3 ready"));
}

#[test]
fn c20_requests_add_up_and_never_go_below_nothing() {
    let mut story = Story::new();
    story.ask("g1", 100, 0);
    assert_eq!(story.requests("g1"), "100 since 0s");
    story.at("10s").decreased("g1", 20, Step::Done);
    assert_eq!(story.requests("g1"), "80 since 0s");
    story.at("20s").ask("g1", 30, 80);
    assert_eq!(story.requests("g1"), "110 since 20s");
    story.at("30s").decreased("g1", 200, Step::Done);
    assert_eq!(story.requests("g1"), "");
    story.at("40s").decreased("g1", 200, Step::Done);
    assert_eq!(story.requests("g1"), "");
}

#[test]
fn c22_creation_errors_are_counted_by_code() {
    let mut story = Story::new();
    story.ask("g1", 3, 1);
    expect![[r#"
        remove sim/g1-2: CreateFailed
        remove sim/g1-3: CreateFailed
        failure g1 RESOURCE_POOL_EXHAUSTED 2: RESOURCE_POOL_EXHAUSTED it is
        event ScaleUpFailed: Failed adding 2 nodes to group g1 due to RESOURCE_POOL_EXHAUSTED
    "#]]
    .assert_eq(&story.see(
        "g1 T=4: ready, 2 instance creating error=RESOURCE_POOL_EXHAUSTED, instance creating",
    ));
    assert_eq!(story.requests("g1"), "1 since 0s");
    assert_eq!(story.backoff("g1"), "RESOURCE_POOL_EXHAUSTED 5m of 5m");
}

/// A refused increase moved the deadline of the one that was already open, so a group that its provider
/// refused again and again kept waiting for nodes that were long overdue.
#[test]
fn a_refused_increase_moves_no_deadline() {
    let refused = || Step::Failed { message: "quota".to_owned() };
    let mut story = Story::new();
    story.ask("g1", 4, 1);
    story.increased("g1", 4, Step::Done);
    story.at("10s").observe("g1 T=5: ready, 4 instance creating");
    story.at("5m").ask("g1", 2, 5);
    assert_eq!(story.requests("g1"), "6 since 300s");
    story.increased("g1", 2, refused());
    assert_eq!(story.requests("g1"), "4 since 0s");
    story.at("6m").ask("g1", 2, 5);
    story.increased("g1", 2, Step::Unknown);
    assert_eq!(story.requests("g1"), "6 since 360s", "it may have been made");
    story.at("7m").ask("g1", 1, 7);
    story.increased("g1", 1, refused());
    assert_eq!(story.requests("g1"), "6 since 360s");
}
