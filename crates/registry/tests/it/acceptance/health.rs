//! C1–C3, C5–C8: health and status.

use expect_test::expect;

use crate::story::Story;

#[test]
fn c1_a_group_that_waits_for_what_it_asked_for_is_healthy() {
    let mut story = Story::new();
    story.ask("g1", 4, 1);
    assert_eq!(story.see("g1 T=5: ready\n g2 T=1: ready"), "");
    expect![[r#"
        cluster Healthy InProgress NoCandidates
        g1 Healthy InProgress NoCandidates
        g2 Healthy NoActivity NoCandidates"#]]
    .assert_eq(&story.statuses());
}

#[test]
fn c2_an_empty_group_is_healthy_and_does_nothing() {
    let mut story = Story::new();
    assert_eq!(story.see("g1 T=0"), "");
    assert_eq!(story.group("g1"), "healthy, 0..0, upcoming 0, missing 0");
    assert!(!story.registry.is_scaling_up(&"g1".into(), story.now));
    assert!(!story.registry.has_scale_up_started(&"g1".into()));
}

#[test]
fn c3_an_empty_group_that_asked_is_healthy_and_scaling() {
    let mut story = Story::new();
    story.at("-10s").observe("g1 T=0");
    story.at("-3s").ask("g1", 3, 0);
    assert_eq!(story.at("0s").see("g1 T=3"), "");
    assert_eq!(story.group("g1"), "healthy, 0..3, upcoming 3, missing 3");
    assert!(story.registry.is_scaling_up(&"g1".into(), story.now));
    assert!(story.registry.has_scale_up_started(&"g1".into()));
}

#[test]
fn c5_one_unready_node_is_within_the_limits() {
    let mut story = Story::new();
    assert_eq!(story.see("g1 T=1: ready\n g2 T=1: unready"), "");
    expect![[r#"
        cluster Healthy NoActivity NoCandidates
        g1 Healthy NoActivity NoCandidates
        g2 Healthy NoActivity NoCandidates"#]]
    .assert_eq(&story.statuses());
}

#[test]
fn c6_candidates_are_of_groups() {
    let mut story = Story::new();
    story.observe("g1 T=1: ready\n g2 T=1: unready\n -: ready");
    story.unneeded(&["g1-1", "--1"]);
    expect![[r#"
        cluster Healthy NoActivity CandidatesPresent
        g1 Healthy NoActivity CandidatesPresent
        g2 Healthy NoActivity NoCandidates"#]]
    .assert_eq(&story.statuses());
    let status = story.registry.status(story.now);
    assert_eq!(status.cluster_wide.unwrap().scale_down.candidates, 1);
}

#[test]
fn c7_a_group_that_misses_nodes_nobody_asked_for_is_unhealthy() {
    let mut story = Story::new();
    story.observe("g1 T=5: ready");
    expect![[r#"
        cluster Healthy NoActivity NoCandidates
        g1 Unhealthy Unhealthy NoCandidates"#]]
    .assert_eq(&story.statuses());
}

#[test]
fn c8_two_groups_of_one_unready_node_are_an_unhealthy_cluster() {
    let mut story = Story::new();
    expect![[r#"
        halt: 2 of 2 autoscaled nodes are unready, more than 1 and more than 10%: g1-1, g2-1
        event ClusterUnhealthy: 2 of 2 autoscaled nodes are unready, more than 1 and more than 10%: g1-1, g2-1
    "#]]
    .assert_eq(&story.see("g1 T=1: unready\n g2 T=1: unready"));
    expect![[r#"
        cluster Unhealthy NoActivity NoCandidates
        g1 Healthy NoActivity NoCandidates
        g2 Healthy NoActivity NoCandidates"#]]
    .assert_eq(&story.statuses());
}
