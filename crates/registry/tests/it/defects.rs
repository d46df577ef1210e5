//! What upstream does wrong, and is not done here: B1–B17.

use expect_test::expect;
use registry::{Registry, Step, Targets};

use crate::story::{Story, config};

/// The same registry in another process.
fn restarted(story: &Story) -> Story {
    let registry = Registry::restore(config(), &story.registry.save(), story.now).expect("a state");
    Story { registry, now: story.now }
}

#[test]
fn b1_a_restart_forgets_no_request_and_no_deadline() {
    let facts = "g1 T=3: ready";
    let mut story = Story::new();
    story.ask("g1", 2, 1).observe(facts);
    let mut story = restarted(story.at("1m"));
    assert_eq!(story.see(facts), "");
    assert_eq!(story.upcoming("g1"), 2);
    assert_eq!(story.at("14m").see(facts), "");
    assert!(story.at("15m").see(facts).starts_with("reduce g1 by 2"));
}

#[test]
fn b1_a_lost_state_removes_nothing_while_a_deletion_may_be_under_way() {
    let facts = "g1 T=4: ready, unready since=1h, instance error=QUOTA";
    let mut story = Story::of(Registry::rebuild(config()));
    assert!(!story.see(facts).contains("remove"));
    assert!(!story.at("4m").see(facts).contains("remove"));
    assert_eq!(story.at("5m").see(facts), "remove sim/g1-3: CreateFailed\n");
    assert_eq!(story.at("19m").removable(), "", "there may have been a halt");
    story.at("20m").observe("g1 T=2: ready, unready since=1h");
    assert_eq!(story.removable(), "Unready g1-2");
}

#[test]
fn b2_an_increase_by_others_is_waited_for_and_ends_silently() {
    let mut story = Story::new();
    story.observe("g1 T=1: ready");
    story.at("1m").observe("g1 T=3: ready");
    assert_eq!((story.upcoming("g1"), story.requests("g1").as_str()), (2, "2 since 60s"));
    story.at("2m").observe("g1 T=3: 2 ready");
    assert_eq!((story.upcoming("g1"), story.requests("g1").as_str()), (1, "1 since 60s"));
    assert_eq!(story.at("16m").see("g1 T=3: 2 ready"), "");
    assert_eq!((story.upcoming("g1"), story.requests("g1").as_str()), (0, ""));
    assert!(story.at("17m").see("g1 T=3: 2 ready").starts_with("reduce g1 by 1"));
}

#[test]
fn b2_a_lost_state_adopts_what_is_missing_and_asks_for_nothing_at_first() {
    let mut story = Story::of(Registry::rebuild(config()));
    story.observe("g1 T=3: ready, instance");
    assert_eq!((story.upcoming("g1"), story.requests("g1").as_str()), (2, "2 since 0s"));
    assert_eq!(story.refusals("g1"), "nothing is remembered from before");
    story.at("2m").observe("g1 T=3: ready, instance");
    assert_eq!((story.upcoming("g1"), story.refusals("g1").as_str()), (2, ""));
}

#[test]
fn b2_a_lost_state_adopts_what_is_missing_once_sizes_are_known() {
    let mut story = Story::of(Registry::rebuild(config()));
    story.observe("g1 T=3 target-fails: ready\n g2 T=2: ready");
    assert_eq!((story.requests("g1").as_str(), story.requests("g2").as_str()), ("", "1 since 0s"));
    story.at("10m").observe("g1 T=3: ready\n g2 T=2: ready");
    assert_eq!(story.requests("g1"), "2 since 600s");
}

#[test]
fn b2_an_increase_that_does_not_show_did_not_happen() {
    let mut story = Story::new();
    story.observe("g1 T=1: ready");
    story.ask("g1", 3, 1);
    story.increased("g1", 3, Step::Unknown);
    assert_eq!(story.at("10s").see("g1 T=1: ready"), "");
    assert_eq!((story.upcoming("g1"), story.refusals("g1").as_str()), (3, "increase not settled"));
    expect![[r#"
        failure g1 targetNotRaised 3: the target of g1 is 1, not 4 as asked for
    "#]]
    .assert_eq(&story.at("2m").see("g1 T=1: ready"));
    assert_eq!((story.upcoming("g1"), story.requests("g1").as_str()), (0, ""));
}

#[test]
fn b2_of_an_increase_that_shows_in_part_the_rest_did_not_happen() {
    let mut story = Story::new();
    story.observe("g1 T=1: ready");
    story.ask("g1", 3, 1).at("10s").observe("g1 T=2: ready");
    let text = story.at("2m").see("g1 T=2: ready");
    assert!(text.starts_with("failure g1 targetNotRaised 2"), "{text}");
    assert_eq!(story.requests("g1"), "1 since 0s");
}

#[test]
fn b2_what_others_add_to_our_increase_is_told_apart() {
    let mut story = Story::new();
    story.observe("g1 T=1: ready");
    story.ask("g1", 2, 3).at("10s").observe("g1 T=5: ready");
    assert_eq!(
        (story.upcoming("g1"), story.requests("g1").as_str()),
        (4, "2 since 0s, 2 since 10s")
    );
    story.at("20s").observe("g1 T=5: 3 ready");
    assert_eq!(story.requests("g1"), "2 since 10s", "arrivals are credited to us first");
}

#[test]
fn b3_a_timeout_reverts_what_is_missing() {
    let mut story = Story::new();
    story.ask("g1", 4, 1);
    let text = story.at("15m").see("g1 T=5: 3 ready, starting created=+14m");
    assert!(text.starts_with("reduce g1 by 1\nfailure g1 timeout 1"), "{text}");
}

#[test]
fn b4_two_timers_do_not_shrink_a_group_twice() {
    let facts = "g1 T=5: 3 ready";
    let mut story = Story::new();
    story.ask("g1", 2, 3).observe(facts);
    let text = story.at("15m").see(facts);
    assert_eq!(text.matches("reduce").count(), 1, "{text}");
    assert_eq!(text.matches("failure").count(), 1, "{text}");
    story.decreased("g1", 2, Step::Done);
    assert_eq!(story.registry.wrong_size(&"g1".into()), None);
    assert_eq!(story.see("g1 T=3: 3 ready"), "");
}

#[test]
fn b4_a_group_that_loses_instances_is_not_also_lowered() {
    let facts = "g1 T=4: ready, instance";
    let mut story = Story::new();
    story.ask("g1", 3, 1).observe(facts);
    let text = story.at("15m").see(facts);
    assert!(text.contains("remove sim/g1-2") && !text.contains("reduce"), "{text}");
    story.deleted("sim/g1-2", Step::Requested);
    assert_eq!(story.at("16m").see("g1 T=3: ready"), "reduce g1 by 2\n");
}

#[test]
fn b5_a_group_without_sizes_is_left_alone_and_others_are_not() {
    let good = "g1 T=3: ready, 2 instance\n g2 T=3: ready, 2 instance";
    let bad = "g1 T=3 instances-fail: ready, 2 instance\n g2 T=3: ready, 2 instance";
    let mut story = Story::new();
    story.observe(good);
    expect![[r#"
        remove sim/g2-2: LongUnregistered
        remove sim/g2-3: LongUnregistered
        report the sizes of group g1 are not known: instances: unavailable
    "#]]
    .assert_eq(&story.at("15m").see(bad));
    assert_eq!(story.refusals("g1"), "sizes unknown, not ready for scale-up");
    assert_eq!(story.refusals("g2"), "");
}

#[test]
fn b5_no_request_expires_while_sizes_are_unknown() {
    let mut story = Story::new();
    story.ask("g1", 2, 1).observe("g1 T=3: ready");
    let text = story.at("20m").see("g1 target-fails: ready");
    assert!(!text.contains("failure"), "{text}");
    assert_eq!(story.group("g1"), "healthy, 1..3, upcoming 2, missing 2", "as last known");
    assert_eq!(story.at("21m").see("g1 T=3: 3 ready"), "", "they came meanwhile");
}

#[test]
fn b6_unmanaged_nodes_do_not_halt() {
    assert_eq!(Story::new().see("g1 T=1: ready\n -: 9 unready"), "");
}

#[test]
fn b7_a_halt_names_its_numbers_limits_and_first_nodes() {
    let text = Story::new().see("g1 T=7: 7 unready");
    let halt = "halt: 7 of 7 autoscaled nodes are unready, more than 1 and more than 10%: \
                g1-1, g1-2, g1-3, g1-4, g1-5 and 2 more";
    assert_eq!(text.lines().next(), Some(halt));
}

#[test]
fn b8_a_busy_unready_node_is_removed_too() {
    let mut story = Story::new();
    story.observe("g1 T=1: unready since=20m");
    assert_eq!(story.registry.unneeded_since(&"g1-1".into()), None);
    assert_eq!(story.removable(), "Unready g1-1");
}

#[test]
fn b9_a_lower_target_takes_no_instance_that_is_listed() {
    let facts = "g1 T=4 provision=2m: ready, ready running";
    let mut story = Story::new();
    story.deleted("sim/g1-2", Step::Requested);
    story.deleted("sim/g1-2", Step::Unknown);
    story.observe(facts);
    assert_eq!(story.group("g1"), "unhealthy, 4..5, upcoming 0, missing 3");
    let text = story.at("2m").see(facts);
    assert!(text.starts_with("reduce g1 by 2\n"), "the machine is still there: {text}");
}

#[test]
fn b10_a_failed_listing_does_not_reset_timers() {
    let mut story = Story::new();
    story.observe("g1 T=2: ready, instance");
    story.at("10m").observe("g1 T=2 instances-fail: ready");
    assert!(story.at("15m").see("g1 T=2: ready, instance").contains("remove sim/g1-2"));
}

#[test]
fn b11_startup_times_are_each_group_s_own() {
    let mut story = Story::new();
    story.observe("g1 T=1 startup=35m: broken\n g2 T=1: broken\n -: broken");
    assert_eq!(story.classes(), "Starting g1-1, BrokenStart --1, BrokenStart g2-1");
}

#[test]
fn b12_an_absent_or_zero_option_is_the_default() {
    let mut story = Story::new();
    assert_eq!(story.see("g1 T=1 startup=0s: starting created=14m"), "");
    assert_eq!(story.class("g1-1"), "Starting");
}

#[test]
fn b13_a_failed_listing_of_groups_does_not_mean_that_there_are_none() {
    let mut story = Story::new();
    story.ask("g1", 1, 2).observe("g1 T=3: 2 unready since=1h, instance");
    let text = story.at("20m").see("groups-fail no route\n g1: 2 unready since=1h");
    assert!(!text.contains("remove") && !text.contains("failure"), "{text}");
    assert_eq!(story.classes(), "Unready g1-1, Unready g1-2, Unregistered sim/g1-3");
    assert_eq!((story.removable().as_str(), story.requests("g1").as_str()), ("", "1 since 0s"));
    assert!(story.at("21m").see("g1 T=3: 2 ready, instance").contains("remove sim/g1-3"));
}

#[test]
fn b14_questions_take_the_time_as_an_argument() {
    let mut story = Story::new();
    story.observe("g1 T=1: ready");
    story.increased("g1", 1, Step::Failed { message: "no".to_owned() });
    assert_eq!(story.refusals("g1"), "in backoff after failed scale-up");
    story.at("5m");
    assert_eq!(story.refusals("g1"), "");
}

#[test]
fn b15_backoff_needs_nothing_but_a_group() {
    let mut story = Story::new();
    story.increased("never-seen", 1, Step::Failed { message: "no".to_owned() });
    assert_eq!(story.backoff("never-seen"), "apiCallError 5m of 5m");
}

#[test]
fn b16_an_event_names_few_codes() {
    let instance = |code: &str| format!("instance error={code}");
    let members: Vec<String> = ["A", "B", "C", "D", "E"].map(instance).to_vec();
    let text = Story::new().see(&format!("g1 T=6: ready, {}", members.join(", ")));
    let event = "event ScaleUpFailed: Failed adding 5 nodes to group g1 due to A, B, C and 2 more";
    assert_eq!(text.lines().find(|line| line.starts_with("event")), Some(event));
}

#[test]
fn b17_what_vanishes_before_it_was_ready_is_a_failure() {
    let mut story = Story::new();
    story.ask("g1", 2, 1).observe("g1 T=3: ready, starting, instance");
    expect![[r#"
        failure g1 lostBeforeReady 2: 2 instances of g1 vanished before they were Ready
    "#]]
    .assert_eq(&story.at("1m").see("g1 T=3: ready, starting unlisted"));
    assert_eq!(story.backoff("g1"), "lostBeforeReady 5m of 5m");
    assert_eq!(story.requests("g1"), "2 since 0s");
    assert_eq!(story.at("2m").see("g1 T=3: ready, starting unlisted"), "", "told once");
    assert_eq!(story.at("3m").see("g1 T=3: ready"), "");
}

#[test]
fn b17_what_we_delete_and_what_was_ready_is_not_lost() {
    let mut story = Story::new();
    story.observe("g1 T=3: ready, ready, instance");
    story.deleted("sim/g1-3", Step::Requested);
    assert_eq!(story.at("6m").see("g1 T=3: ready, ready, instance"), "");
    assert_eq!(story.at("7m").see("g1 T=1: ready"), "");
}

#[test]
fn targets_read_apart_change_sizes_and_close_nothing() {
    let mut story = Story::new();
    story.ask("g1", 2, 1).observe("g1 T=3: ready");
    let targets = Targets([("g1".into(), 1)].into());
    story.at("20m").registry.refresh_targets(&targets);
    assert_eq!(story.group("g1"), "healthy, -1..1, upcoming 0, missing 0");
    assert_eq!(story.requests("g1"), "2 since 0s");
}
