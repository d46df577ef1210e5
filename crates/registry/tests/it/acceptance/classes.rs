//! C9, C10, C15, C17–C19, C24: what nodes and instances are.

use registry::Step;

use crate::story::Story;

#[test]
fn c9_a_node_that_was_never_ready_is_a_broken_start() {
    let mut story = Story::new();
    story.observe("g1 T=2: unready created=30m since=20m, unready created=30m since=30m");
    assert_eq!(story.classes(), "BrokenStart g1-2, Unready g1-1");
}

#[test]
fn c10_a_group_may_allow_more_time_to_start() {
    let mut story = Story::new();
    story.observe(
        "g1 T=2 startup=35m: unready created=30m since=20m, unready created=30m since=30m",
    );
    assert_eq!(story.classes(), "Starting g1-1, Starting g1-2");
}

#[test]
fn c15_a_deletion_past_its_deadline_is_dropped_without_failure() {
    let mut story = Story::new();
    story.at("-10m").observe("g1 T=2: 2 ready");
    story.at("-5m").deleted("sim/g1-2", Step::Requested);
    story.at("-1m").observe("g1 T=1: 2 ready");
    assert_eq!(story.group("g1"), "healthy, 1..2, upcoming 0, missing 0");
    assert_eq!(story.class("g1-2"), "Leaving");
    assert_eq!(story.at("5m").see("g1 T=1: 2 ready"), "");
    assert_eq!(story.group("g1"), "healthy, 1..1, upcoming 0, missing 0");
    assert_eq!(story.class("g1-2"), "Ready");
}

#[test]
fn c17_a_node_to_be_deleted_whose_presence_is_unknown_is_gone() {
    let mut story = Story::new();
    story.observe("g1 T=1: ready, leaving unlisted");
    assert_eq!(story.classes(), "Gone g1-2, Ready g1-1");
    assert_eq!(story.upcoming("g1"), 0);
}

#[test]
fn c18_an_unregistered_instance_is_upcoming_until_it_is_late() {
    let check = |story: &Story, unregistered: usize, upcoming: u32| {
        assert_eq!(story.registry.unregistered().count(), unregistered);
        assert_eq!(story.upcoming("g1"), upcoming);
    };
    let mut story = Story::new();
    story.at("-1m").ask("g1", 1, 1);
    story.observe("g1 T=2 provision=10s: ready, instance");
    check(&story, 1, 1);
    story.at("1m").observe("g1 T=2 provision=10s: ready, instance");
    check(&story, 1, 0);
    story.at("70s").observe("g1 T=2 provision=10s: 2 ready");
    check(&story, 0, 0);
    assert!(story.registry.is_registered(&"sim/g1-2".into()));
}

#[test]
fn c19_a_node_whose_instance_vanished_is_gone_while_it_exists() {
    let mut story = Story::new();
    story.observe("g1 T=2: ready, ready");
    assert_eq!(story.class("g1-2"), "Ready");
    story.at("10s").observe("g1 T=1: ready, ready unlisted");
    assert_eq!(story.class("g1-2"), "Gone");
    story.at("20s").observe("g1 T=1: ready, ready unlisted");
    assert_eq!(story.class("g1-2"), "Gone");
    story.at("30s").observe("g1 T=1: ready");
    assert_eq!(story.class("g1-2"), "none");
}

#[test]
fn c24_a_suspended_node_counts_neither_way() {
    let mut story = Story::new();
    story.observe("g1 T=1: suspended");
    assert_eq!(story.classes(), "Suspended g1-1");
    assert_eq!(story.group("g1"), "healthy, 1..1, upcoming 0, missing 0");
    story.observe("g1 T=1: ready suspended=false");
    assert_eq!(story.classes(), "Ready g1-1");
}
