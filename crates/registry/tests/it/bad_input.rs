//! Facts that make no sense are left out or taken the harmless way, and reported.

use expect_test::{Expect, expect};
use registry::Step;

use crate::story::Story;

/// What a first look at the facts tells, and the classes it finds.
#[track_caller]
fn check(text: &str, expected: &Expect) {
    let mut story = Story::new();
    let told = story.see(text);
    expected.assert_eq(&format!("{told}{}\n", story.classes()));
}

#[test]
fn groups_that_make_no_sense_are_ignored() {
    check(
        "g1 T=1 min=3 max=2: ready",
        &expect![[r#"
            report group GroupId("g1") ignored: its minimum is above its maximum
            Ready g1-1
        "#]],
    );
    check(
        "g1 T=-1: ready",
        &expect![[r#"
            report group GroupId("g1") ignored: a size of it is negative or too large
            Ready g1-1
        "#]],
    );
    check(
        "g1 T=1: ready\n g1 T=2: unready name=other id=sim/other",
        &expect![[r#"
            report group GroupId("g1") ignored: its id is listed more than once
            Ready g1-1, Unready other
        "#]],
    );
}

#[test]
fn times_in_the_future_are_now() {
    check(
        "g1 T=2: starting created=+5m, unready since=+1m",
        &expect![[r#"
            report the creation time of node g1-1 is in the future: taken as now
            report the transition time of node g1-2 is in the future: taken as now
            Starting g1-1, Unready g1-2
        "#]],
    );
}

#[test]
fn of_two_nodes_with_one_machine_the_younger_counts_and_neither_is_removed() {
    let facts = "g1 T=1: unready name=old created=48h id=sim/a, unready name=new id=sim/a";
    let mut story = Story::new();
    assert_eq!(
        story.see(facts),
        "report several nodes call themselves sim/a; the youngest counts\n"
    );
    assert_eq!(story.registry.terms(&"g1".into(), story.now).unwrap().counts.unready, 1);
    assert_eq!(story.removable(), "");
}

#[test]
fn a_node_without_provider_id_belongs_to_the_instance_called_like_it() {
    check(
        "g1 T=1: ready no-id",
        &expect![[r#"
            Ready g1-1
        "#]],
    );
    check(
        "g1 T=2: ready no-id name=a id=x/a, ready name=b id=y/a",
        &expect![[r#"
            report node a has no provider id and fits no instance: unmanaged
            Ready a, Ready b, Unregistered x/a
        "#]],
    );
    check(
        "g1 T=1: ready\n g2 T=0: ready no-id unlisted name=g1-1x",
        &expect![[r#"
            report node g1-1x has no provider id and fits no instance: unmanaged
            Ready g1-1, Ready g1-1x
        "#]],
    );
}

#[test]
fn a_node_whose_group_is_not_told_belongs_where_its_machine_is_listed() {
    let mut story = Story::new();
    assert_eq!(
        story.see("g1 T=1: ready unknown"),
        "report the provider does not tell which group node g1-1 is in\n"
    );
    assert_eq!(story.group("g1"), "healthy, 1..1, upcoming 0, missing 0");
}

#[test]
fn an_instance_in_two_groups_makes_both_stale() {
    check(
        "g1 T=1: ready id=sim/a\n g2 T=1: instance id=sim/a\n g3 T=1: ready",
        &expect![[r#"
            report instance sim/a is listed in several groups
            report the sizes of group g1 are not known: an instance is listed in another group too
            report the sizes of group g2 are not known: an instance is listed in another group too
            Ready g1-1, Ready g3-1
        "#]],
    );
}

#[test]
fn a_group_that_vanishes_keeps_request_and_backoff_for_an_hour() {
    let mut story = Story::new();
    story.ask("g1", 2, 1).observe("g1 T=3: ready");
    story.increased("g1", 0, Step::Failed { message: "no".to_owned() });
    assert_eq!(story.at("30m").see("-: ready name=g1-1"), "");
    assert_eq!(story.registry.node(&"g1-1".into()).unwrap().group, None);
    assert_eq!(story.requests("g1"), "2 since 0s");
    story.at("89m").observe("-: ready");
    assert_eq!(story.requests("g1"), "2 since 0s");
    story.at("90m").observe("-: ready");
    assert_eq!(story.requests("g1"), "");
}

#[test]
fn options_that_make_no_sense_are_the_default() {
    check(
        "g1 T=1 startup=-5m unready=200h: starting created=14m",
        &expect![[r#"
            report the unready time of group g1 is negative or over 7 days: ignored
            report the startup time of group g1 is negative or over 7 days: ignored
            Starting g1-1
        "#]],
    );
}

#[test]
fn without_any_node_nothing_is_removed() {
    let mut story = Story::new();
    story.observe("g1 T=2: 2 instance");
    assert_eq!(story.at("20m").see("g1 T=2: 2 instance"), "");
    assert!(story.at("21m").see("g1 T=2: 2 instance\n -: ready").contains("remove"));
}

#[test]
fn a_clock_that_goes_back_is_waited_for() {
    let mut story = Story::new();
    story.at("10m").observe("g1 T=2: ready, instance");
    assert_eq!(
        story.at("5m").see("g1 T=2: ready, instance"),
        "report the clock went back to 2026-03-01T10:05:00Z; 2026-03-01T10:10:00Z is used until it \
         has caught up\n"
    );
}

#[test]
fn after_a_time_in_which_nobody_looked_nothing_is_removed_for_a_while() {
    let facts = "g1 T=3: 2 ready, instance";
    let tolerance = registry::Config::default().settle_timeout;
    let mut story = Story::with(|config| config.observation_gap_tolerance = Some(tolerance));
    story.observe(facts);
    story.unneeded(&["g1-1"]);
    assert_eq!(story.at("20m").see(facts), "");
    assert_eq!(story.removable(), "", "its time began anew");
    assert_eq!(story.at("21m").see(facts), "");
    assert_eq!(story.at("22m").see(facts), "remove sim/g1-3: LongUnregistered\n");
}

#[test]
fn a_disrupted_zone_keeps_its_nodes_and_holds_back_its_groups() {
    let facts = "g1 T=4: ready zone=a, 3 unready zone=a\n g2 T=9: 9 ready zone=b\n\
                 g3 T=2: ready zone=a, ready zone=b";
    let mut story = Story::with(|config| config.unready_count_ok = 5);
    story.observe(facts);
    assert!(story.registry.zone_health("a").unwrap().is_disrupted());
    assert_eq!(story.removable(), "");
    let refusals = ["g1", "g2", "g3"].map(|group| story.refusals(group));
    assert_eq!(refusals, ["zone disrupted", "", ""]);
    story.observe(&facts.replace("3 unready", "2 unready zone=a, ready"));
    assert_eq!(story.removable(), "Unready g1-2, Unready g1-3");
}
