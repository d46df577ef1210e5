//! C4, C16, C21, C23: ranges, upcoming nodes and wrong sizes.

use crate::scene::beginning;
use crate::story::Story;

#[test]
fn c4_ranges_and_upcoming_follow_targets_and_requests() {
    let mut story = Story::new();
    story.observe("g1 T=4: ready");
    story.observe("g1 T=1: ready");
    assert_eq!(story.group("g1"), "healthy, 1..1, upcoming 0, missing 0");

    let check = |asked: u32, facts: &str, group: &str| {
        let mut story = Story::new();
        story.ask("g1", asked, 0);
        story.observe(facts);
        assert_eq!(story.group("g1"), group, "{facts}");
    };
    check(1, "g1 T=6: 5 ready", "healthy, 5..6, upcoming 1, missing 1");
    check(3, "g1 T=4: ready", "healthy, 1..4, upcoming 3, missing 3");
    check(0, "g1 T=4: 4 ready", "healthy, 4..4, upcoming 0, missing 0");
}

#[test]
fn c16_upcoming_is_what_is_neither_there_nor_broken() {
    let check = |asked: u32, facts: &str, count: u32, named: &[&str]| {
        let mut story = Story::new();
        story.ask("g1", asked, 0);
        story.observe(facts);
        let upcoming = story.registry.upcoming(&"g1".into(), story.now);
        let names: Vec<&str> = upcoming.nodes.iter().map(|name| name.as_str()).collect();
        assert_eq!((upcoming.count, &names[..]), (count, named), "{facts}");
    };
    check(6, "g1 T=7: ready", 6, &[]);
    check(1, "g1 T=2: unready", 1, &[]);
    check(2, "g1 T=2: starting", 2, &["g1-1"]);
    check(1, "g1 T=1: unready", 0, &[]);
    check(1, "g1 T=2: ready, leaving", 0, &[]);
}

#[test]
fn c21_a_wrong_size_is_remembered_since_when() {
    let since = |story: &Story| {
        let size = story.registry.wrong_size(&"g1".into())?;
        Some(size.since.duration_since(beginning()).as_secs())
    };
    let mut story = Story::new();
    story.observe("g1 T=2: 2 ready");
    assert_eq!(since(&story), None, "equal");
    story.observe("g1 T=3: 2 ready");
    story.at("10s").observe("g1 T=3: 3 ready");
    assert_eq!(since(&story), None, "wrong, then right");
    story.at("20s").observe("g1 T=4: 3 ready");
    assert_eq!(since(&story), Some(20), "below");
    story.at("30s").observe("g1 T=2: 3 ready");
    assert_eq!(since(&story), Some(30), "above");
    story.at("40s").observe("g1 T=4: 3 ready");
    story.at("50s").observe("g1 T=4: 3 ready");
    assert_eq!(since(&story), Some(40), "below, same pair");
    story.at("60s").observe("g1 T=4: ready, 3 instance");
    assert_eq!(since(&story), None, "explained by the unregistered");
    story.at("20m").observe("g1 T=4: ready, 3 instance");
    assert_eq!(story.classes().matches("LongUnregistered").count(), 3);
    assert_eq!(since(&story), None, "explained by those that stay so");
}

#[test]
fn c23_what_is_awaited_was_asked_for_and_did_not_fail() {
    let facts = "g1 T=3 provision=2m: ready";
    let mut story = Story::new();
    story.observe(facts);
    assert_eq!(story.upcoming("g1"), 0, "no request");
    story.ask("g1", 2, 1).observe(facts);
    assert_eq!(story.upcoming("g1"), 2, "request");
    story.at("2m").observe(facts);
    story.ask("g1", 2, 1).observe(facts);
    assert_eq!(story.backoff("g1"), "timeout 5m of 5m");
    assert_eq!(story.upcoming("g1"), 0, "a new request during the backoff");
}
