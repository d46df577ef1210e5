//! The situations and the answers the registry is made for: UC1–UC8, S1–S4.

use expect_test::expect;
use registry::{Config, Registry, Step, UnreadyScope};

use crate::story::Story;

#[test]
fn uc1_nodes_that_were_asked_for_are_waited_for() {
    let mut story = Story::new();
    story.ask("g1", 2, 1);
    assert_eq!(story.see("g1 T=3: ready"), "");
    assert_eq!(story.upcoming("g1"), 2);
    story.at("14m").observe("g1 T=3: ready, instance");
    assert_eq!(story.upcoming("g1"), 2);
    story.at("870s").observe("g1 T=3: 3 ready");
    assert_eq!((story.upcoming("g1"), story.requests("g1").as_str()), (0, ""));
}

#[test]
fn uc1_at_most_what_was_asked_for_is_waited_for() {
    let mut story = Story::new();
    story.observe("g1 T=6: ready");
    story.ask("g1", 2, 4);
    story.observe("g1 T=6: ready");
    assert_eq!(story.upcoming("g1"), 2, "three of the five that are missing nobody asked for");
}

#[test]
fn uc2_a_young_node_is_starting_and_never_a_candidate() {
    let mut story = Story::new();
    story.observe("g1 T=2: ready, starting created=1m");
    assert_eq!(story.classes(), "Ready g1-1, Starting g1-2");
    assert_eq!(story.upcoming("g1"), 1);
    story.at("13m").observe("g1 T=2: ready, starting created=1m");
    assert_eq!((story.class("g1-2").as_str(), story.removable().as_str()), ("Starting", ""));
    assert_eq!(story.registry.cluster_health().unready, 0);
}

#[test]
fn uc3_a_group_with_a_broken_start_is_not_expanded_for_half_an_hour() {
    let mut story = Story::new();
    story.observe("g1 T=2: ready, starting created=1m\n g2 T=1: ready");
    assert_eq!(story.refusals("g1"), "");
    story.at("14m").observe("g1 T=2: ready, starting created=1m\n g2 T=1: ready");
    assert_eq!(story.class("g1-2"), "BrokenStart");
    assert_eq!(
        (story.refusals("g1").as_str(), story.refusals("g2").as_str()),
        ("broken start", "")
    );
    story.at("43m").observe("g1 T=2: ready, starting created=1m\n g2 T=1: ready");
    assert_eq!(story.refusals("g1"), "broken start");
    story.at("44m").observe("g1 T=2: ready, starting created=1m\n g2 T=1: ready");
    assert_eq!(story.refusals("g1"), "");
}

#[test]
fn uc3_a_broken_start_is_removed_like_an_unready_node() {
    let mut story = Story::new();
    story.observe("g1 T=2: ready, broken created=19m");
    assert_eq!((story.class("g1-2").as_str(), story.removable().as_str()), ("BrokenStart", ""));
    story.at("1m").observe("g1 T=2: ready, broken created=19m");
    assert_eq!(story.removable(), "BrokenStart g1-2");
}

#[test]
fn uc4_a_creation_error_is_acted_on_at_once_and_once() {
    let facts = "g1 T=2: ready, instance creating error=QUOTA";
    let mut story = Story::new();
    story.ask("g1", 1, 1);
    expect![[r#"
        remove sim/g1-2: CreateFailed
        failure g1 QUOTA 1: QUOTA it is
        event ScaleUpFailed: Failed adding 1 nodes to group g1 due to QUOTA
    "#]]
    .assert_eq(&story.see(facts));
    assert_eq!(story.refusals("g1"), "in backoff after failed scale-up");
    assert_eq!(story.at("10s").see(facts), "remove sim/g1-2: CreateFailed\n", "told once");
    story.deleted("sim/g1-2", Step::Requested);
    assert_eq!(story.at("20s").see(facts), "", "the deletion is under way");
}

#[test]
fn uc5_an_instance_that_does_not_register_is_removed() {
    let facts = "g1 T=3: ready, 2 instance";
    let mut story = Story::new();
    assert_eq!(story.see(facts), "");
    assert_eq!(story.at("14m").see(facts), "");
    expect![[r#"
        remove sim/g1-2: LongUnregistered
        remove sim/g1-3: LongUnregistered
    "#]]
    .assert_eq(&story.at("15m").see(facts));
    story.deleted("sim/g1-2", Step::Requested);
    assert_eq!(
        story.deleted("sim/g1-2", Step::Done),
        "event DeleteUnregistered: Removed unregistered node sim/g1-2\n"
    );
    story.deleted("sim/g1-3", Step::Requested);
    assert_eq!(
        story.deleted("sim/g1-3", Step::Failed { message: "no".to_owned() }),
        "event DeleteUnregisteredFailed: Failed to remove unregistered node sim/g1-3: no\n"
    );
    assert_eq!(story.at("15m").see(facts), "remove sim/g1-3: LongUnregistered\n");
}

#[test]
fn uc5_a_group_is_not_taken_below_its_minimum_unless_forced() {
    let facts = "g1 T=3 min=2: ready, 2 instance";
    let mut story = Story::new();
    story.observe(facts);
    assert_eq!(story.at("15m").see(facts), "remove sim/g1-2: LongUnregistered\n");
    let mut story = Story::with(|config| config.removes_unregistered_below_min = true);
    story.observe(facts);
    assert_eq!(story.at("15m").see(facts).lines().count(), 2);
}

#[test]
fn uc5_removals_of_one_group_are_few_at_a_time() {
    let mut story = Story::new();
    story.observe("g1 T=30: ready, 29 instance");
    let decisions = story.at("15m").observe("g1 T=30: ready, 29 instance").decisions;
    assert_eq!(decisions.len(), registry::REMOVALS_PER_GROUP_MAX);
}

#[test]
fn uc6_a_node_that_stays_unready_is_removed() {
    let mut story = Story::new();
    story.observe("g1 T=2: ready, unready since=19m");
    assert_eq!(story.removable(), "");
    story.at("1m").observe("g1 T=2: ready, unready since=19m");
    assert_eq!(story.removable(), "Unready g1-2");
}

#[test]
fn uc6_nothing_is_removed_from_a_group_that_misses_nodes() {
    let mut story = Story::new();
    story.observe("g1 T=3: ready, unready since=1h");
    assert_eq!(story.removable(), "");
    story.observe("g1 T=2: ready, unready since=1h");
    assert_eq!(story.removable(), "Unready g1-2");
}

#[test]
fn uc6_the_time_of_a_halt_does_not_count() {
    let mut story = Story::new();
    let broken = "g1 T=4: 2 ready, 2 unready since=1h";
    story.observe(broken);
    assert_eq!(story.removable(), "");
    let mended = "g1 T=4: 3 ready, unready since=1h";
    story.at("10m").observe(mended);
    assert_eq!(story.removable(), "");
    story.at("29m").observe(mended);
    assert_eq!(story.removable(), "");
    story.at("30m").observe(mended);
    assert_eq!(story.removable(), "Unready g1-4");
}

#[test]
fn uc6_a_flapping_node_stays_and_its_flaps_are_counted() {
    let mut story = Story::new();
    story.observe("g1 T=1: ready");
    for minutes in (3..60).step_by(6) {
        let unready = format!("g1 T=1: unready since=+{minutes}m");
        story.at(&format!("{minutes}m")).observe(&unready);
        assert_eq!(story.removable(), "");
        let ready = format!("g1 T=1: ready since=+{}m", minutes + 3);
        story.at(&format!("{}m", minutes + 3)).observe(&ready);
    }
    assert_eq!(story.registry.node(&"g1-1".into()).unwrap().flaps, 10);
    story.at("200m").observe("g1 T=1: ready since=+60m");
    assert_eq!(story.registry.node(&"g1-1".into()).unwrap().flaps, 0);
}

#[test]
fn uc6_an_annotation_or_a_flag_forbids_it() {
    let mut story = Story::new();
    story.observe("g1 T=1: unready since=1h kept");
    assert_eq!(story.removable(), "");
    let mut story = Story::with(|config| config.removes_unready = false);
    story.observe("g1 T=1: unready since=1h");
    assert_eq!(story.removable(), "");
}

#[test]
fn uc6_unreadiness_that_no_condition_dates_is_counted_from_when_it_was_seen() {
    let mut story = Story::new();
    let tainted = "g1 T=1: ready taint=startup-taint.cluster-autoscaler.kubernetes.io/network";
    story.observe(tainted);
    assert_eq!((story.class("g1-1").as_str(), story.removable().as_str()), ("Unready", ""));
    story.at("20m").observe(tainted);
    assert_eq!(story.removable(), "Unready g1-1");
}

#[test]
fn uc7_nodes_that_leave_count_neither_as_ready_nor_as_unready() {
    let mut story = Story::new();
    assert_eq!(story.see("g1 T=6: 3 ready, 2 leaving, unready leaving=1m"), "");
    assert_eq!(story.classes().matches("Leaving").count(), 3);
    assert_eq!(story.group("g1"), "healthy, 6..6, upcoming 0, missing 0");
    assert_eq!(story.see("g1 T=3: 3 ready, 2 leaving deleting, unready deleting"), "");
    assert_eq!(story.group("g1"), "healthy, 3..3, upcoming 0, missing 0");
}

#[test]
fn uc7_a_drain_that_takes_too_long_is_rolled_back() {
    let mut story = Story::new();
    assert_eq!(story.at("11m").see("g1 T=1: ready leaving=0s"), "");
    assert_eq!(story.at("12m").see("g1 T=1: ready leaving=0s"), "lift the taint of g1-1\n");
}

#[test]
fn uc7_a_deletion_that_had_no_effect_is_rolled_back() {
    let mut story = Story::new();
    story.observe("g1 T=1: ready leaving=0s running");
    story.deleted("sim/g1-1", Step::Requested);
    story.deleted("sim/g1-1", Step::Unknown);
    assert_eq!(story.at("4m").see("g1 T=1: ready leaving=0s running"), "");
    assert_eq!(story.at("5m").see("g1 T=1: ready leaving=0s running"), "lift the taint of g1-1\n");
}

#[test]
fn uc8_too_many_unready_nodes_halt_everything_and_forget_the_unneeded() {
    let mut story = Story::of(Registry::new(Config::default()));
    story.observe("g1 T=10: 10 ready");
    story.unneeded(&["g1-1"]);
    let text = story.at("10m").see("g1 T=10: 5 ready, 5 unready since=0s");
    expect![[r#"
        halt: 5 of 10 autoscaled nodes are unready, more than 3 and more than 45%: g1-10, g1-6, g1-7, g1-8, g1-9
        event ClusterUnhealthy: 5 of 10 autoscaled nodes are unready, more than 3 and more than 45%: g1-10, g1-6, g1-7, g1-8, g1-9
    "#]]
    .assert_eq(&text);
    assert_eq!(
        (story.removable().as_str(), story.registry.unneeded_since(&"g1-1".into())),
        ("", None)
    );
    assert_eq!(story.refusals("g1"), "cluster unhealthy, not ready for scale-up");
    let again = story.at("11m").see("g1 T=10: 5 ready, 5 unready since=0s");
    assert_eq!(again.lines().count(), 1, "the event is told once");
    assert_eq!(story.at("12m").see("g1 T=10: 6 ready, 4 unready since=0s"), "");
}

#[test]
fn uc8_few_nodes_are_no_reason_whatever_their_part() {
    let mut story = Story::of(Registry::new(Config::default()));
    assert_eq!(story.see("g1 T=4: ready, 3 unready"), "");
    assert!(story.see("g1 T=8: 4 ready, 4 unready").starts_with("halt"));
}

#[test]
fn uc8_while_halted_requests_expire_and_reductions_wait() {
    let facts = "g1 T=9: 2 ready, 2 unready";
    let mut story = Story::new();
    story.ask("g1", 5, 4);
    story.observe(facts);
    let text = story.at("15m").see(facts);
    assert!(text.contains("failure g1 timeout 5"), "{text}");
    assert!(!text.contains("reduce"), "{text}");
    assert_eq!(story.requests("g1"), "");
    assert_eq!(story.at("16m").see("g1 T=9: 4 ready"), "reduce g1 by 5\n");
}

#[test]
fn uc8_unregistered_instances_are_kept_while_halted_unless_asked_for() {
    let facts = "g1 T=3: 2 unready, instance";
    let mut story = Story::new();
    story.observe(facts);
    assert!(!story.at("15m").see(facts).contains("remove"));
    let mut story = Story::with(|config| config.removes_unregistered_when_unhealthy = true);
    story.observe(facts);
    assert!(story.at("15m").see(facts).contains("remove sim/g1-3: LongUnregistered"));
}

#[test]
fn s1_the_cluster_is_judged_by_its_autoscaled_nodes() {
    let facts = "g1 T=5: 5 ready\n -: 5 unready";
    assert_eq!(Story::new().see(facts), "");
    let mut story = Story::with(|config| config.unready_scope = UnreadyScope::All);
    assert!(story.see(facts).starts_with("halt: 5 of 10 nodes are unready"));
}

#[test]
fn s2_a_group_is_judged_by_what_it_lacks() {
    let mut story = Story::new();
    story.observe("g1 T=4: 2 ready, 2 unready\n g2 T=30: 30 ready");
    assert_eq!(
        (story.refusals("g1").as_str(), story.refusals("g2").as_str()),
        ("not ready for scale-up", "")
    );
}

#[test]
fn s3_upcoming_names_what_has_registered_and_counts_the_rest() {
    let mut story = Story::new();
    story.ask("g1", 3, 1);
    story.observe("g1 T=4: ready, starting, instance");
    let upcoming = story.registry.all_upcoming(story.now);
    let upcoming = &upcoming["g1"];
    assert_eq!((upcoming.count, upcoming.nodes.len()), (3, 1));
    story.observe("g2 T=2 absent");
    assert_eq!(story.upcoming("g2"), 2, "the cloud will have the group");
}

#[test]
fn s4_what_stays_missing_is_given_up() {
    let facts = "g1 T=4: 2 ready";
    let mut story = Story::new();
    assert_eq!(story.see(facts), "");
    assert_eq!(story.at("14m").see(facts), "");
    expect![[r#"
        reduce g1 by 2
        failure g1 missingNodes 2: 2 nodes of g1 are missing for 15m
    "#]]
    .assert_eq(&story.at("15m").see(facts));
    assert_eq!(story.backoff("g1"), "missingNodes 5m of 5m");
    assert_eq!(story.at("16m").see(facts), "reduce g1 by 2\n", "told once, until it is done");
    story.decreased("g1", 2, Step::Done);
    assert_eq!(story.see("g1 T=2: 2 ready"), "");
}

#[test]
fn s4_a_change_restarts_the_timer() {
    let mut story = Story::new();
    story.observe("g1 T=4: 2 ready");
    story.at("14m").observe("g1 T=4: 3 ready");
    assert_eq!(story.at("28m").see("g1 T=4: 3 ready"), "");
    assert!(story.at("29m").see("g1 T=4: 3 ready").starts_with("reduce g1 by 1"));
}

#[test]
fn s4_what_an_open_request_waits_for_is_left_to_it() {
    let facts = "g1 T=4: 2 ready";
    let mut story = Story::new();
    story.observe("g1 T=4: 2 ready");
    story.at("10m").ask("g1", 1, 3).observe(facts);
    let text = story.at("15m").see(facts);
    assert!(text.starts_with("reduce g1 by 1\nfailure g1 missingNodes 1"), "{text}");
}
