//! Explanations, word by word.

use std::time::Duration;

use expect_test::{Expect, expect};
use registry::{Registry, Step, Target};

use crate::story::{Story, config};

#[track_caller]
fn check(story: &Story, target: &Target, expected: &Expect) {
    let text = story.registry.explain(target, story.now).expect("it is known");
    expected.assert_eq(&text);
}

fn node(name: &str) -> Target {
    Target::Node(name.into())
}

#[test]
fn a_broken_start() {
    let facts =
        "pool-a T=3 min=1: 2 ready, starting name=pool-a-7 created=+131s since=+133s zone=z2";
    let mut story = Story::new();
    story.at("3m").observe(facts);
    story.at("1100s").observe(facts);
    story.at("1213s");
    check(
        &story,
        &node("pool-a-7"),
        &expect![[r#"
            node pool-a-7   group pool-a   zone z2
            class    BrokenStart for 3m02s, since 10:17:11
            because  Ready=False since 10:02:13, created 10:02:11, never Ready; limit 15m
            effect   pool-a is not expanded before 10:47:11 or until this node is gone
            next     remove at 10:22:13, if pool-a (3, min 1) misses no node
            seen     Starting 10:02:11 · BrokenStart 10:17:11 · flaps 0"#]],
    );
}

/// Everything there is, at once.
fn motley() -> Story {
    let mut story = Story::with(|config| config.unready_count_ok = 3);
    story.observe(
        "g1 T=9: ready, unready since=5m, starting, leaving, ready deleting, suspended, unready kept\n\
         -: unready",
    );
    story.unneeded(&["g1-1"]);
    story
}

#[test]
fn a_ready_node_that_is_unneeded() {
    check(
        &motley(),
        &node("g1-1"),
        &expect![[r#"
        node g1-1   group g1
        class    Ready for 24h, since 2026-02-28 10:00:00
        because  Ready=True since 2026-02-28 10:00:00, created 2026-02-28 10:00:00
        effect   none
        next     remove at 10:10:00, if it is unneeded until then
        seen     Ready 2026-02-28 10:00:00 · flaps 0"#]],
    );
}

#[test]
fn unready_nodes() {
    check(
        &motley(),
        &node("g1-2"),
        &expect![[r#"
        node g1-2   group g1
        class    Unready for 5m, since 09:55:00
        because  Ready=False since 09:55:00, created 2026-02-28 10:00:00; limit 20m
        effect   is one of 2 unready among 7 nodes
        next     remove at 10:15:00, if g1 (9, min 0) misses no node
        seen     Unready 09:55:00 · flaps 0"#]],
    );
    check(
        &motley(),
        &node("g1-7"),
        &expect![[r#"
        node g1-7   group g1
        class    Unready for 1h, since 09:00:00
        because  Ready=False since 09:00:00, created 2026-02-28 10:00:00; limit 20m
        effect   is one of 2 unready among 7 nodes
        next     stays: its annotation forbids it
        seen     Unready 09:00:00 · flaps 0"#]],
    );
    check(
        &motley(),
        &node("--1"),
        &expect![[r#"
        node --1   unmanaged
        class    Unready for 1h, since 09:00:00
        because  Ready=False since 09:00:00, created 2026-02-28 10:00:00; limit 20m
        effect   counts neither as ready nor as unready
        next     stays: it belongs to no group
        seen     Unready 09:00:00 · flaps 0"#]],
    );
}

#[test]
fn nodes_that_come_and_go() {
    check(
        &motley(),
        &node("g1-3"),
        &expect![[r#"
        node g1-3   group g1
        class    Starting for 1m, since 09:59:00
        because  Ready=False since 09:59:00, created 09:59:00; limit 15m
        effect   counts as upcoming in g1
        next     BrokenStart at 10:14:00, if it is not Ready by then
        seen     Starting 09:59:00 · flaps 0"#]],
    );
    check(
        &motley(),
        &node("g1-4"),
        &expect![[r#"
        node g1-4   group g1
        class    Leaving for 10s, since 09:59:50
        because  tainted to be deleted since 09:59:50
        effect   counts neither as ready nor as unready
        next     gone by 10:11:50, else its taint is lifted
        seen     Leaving 09:59:50 · flaps 0"#]],
    );
    check(
        &motley(),
        &node("g1-5"),
        &expect![[r#"
        node g1-5   group g1
        class    Leaving for 0s, since 10:00:00
        because  the provider deletes its machine
        effect   counts neither as ready nor as unready
        next     the provider deletes its machine
        seen     Leaving 10:00:00 · flaps 0"#]],
    );
    check(
        &motley(),
        &node("g1-6"),
        &expect![[r#"
        node g1-6   group g1
        class    Suspended for 24h, since 2026-02-28 10:00:00
        because  Suspended=True
        effect   counts neither as ready nor as unready
        next     nothing
        seen     Suspended 2026-02-28 10:00:00 · flaps 0"#]],
    );
}

#[test]
fn a_node_that_is_gone_and_one_that_flaps() {
    let mut story = Story::new();
    story.observe("g1 T=2: 2 ready");
    story.at("1m").observe("g1 T=1: ready unlisted, unready since=+50s");
    story.at("2m").observe("g1 T=1: ready unlisted, ready since=+110s");
    check(
        &story,
        &node("g1-1"),
        &expect![[r#"
        node g1-1   group g1
        class    Gone for 1m, since 10:01:00
        because  its machine is no longer listed
        effect   counts neither as ready nor as unready
        next     Kubernetes removes the Node object
        seen     Gone 10:01:00 · flaps 0"#]],
    );
    check(
        &story,
        &node("g1-2"),
        &expect![[r#"
        node g1-2   group g1
        class    Ready for 10s, since 10:01:50
        because  Ready=True since 10:01:50, created 2026-02-28 10:00:00
        effect   none
        next     nothing
        seen     Unready 10:00:50 · Ready 10:01:50 · flaps 1"#]],
    );
}

#[test]
fn instances() {
    let mut story = Story::new();
    story.observe("g1 T=4: ready, instance");
    story
        .at("15m")
        .observe("g1 T=4: ready, instance, instance, instance error=QUOTA, instance deleting");
    for (id, expected) in [
        (
            "sim/g1-2",
            expect![[r#"
            instance sim/g1-2   group g1
            class    LongUnregistered for 0s, since 10:15:00
            because  listed since 10:00:00, no Node has registered; limit 15m
            next     delete now"#]],
        ),
        (
            "sim/g1-3",
            expect![[r#"
            instance sim/g1-3   group g1
            class    Unregistered for 0s, since 10:15:00
            because  listed since 10:15:00, no Node has registered; limit 15m
            next     LongUnregistered at 10:30:00"#]],
        ),
        (
            "sim/g1-4",
            expect![[r#"
            instance sim/g1-4   group g1
            class    CreateFailed for 0s, since 10:15:00
            because  listed since 10:15:00, not created: QUOTA
            next     delete now"#]],
        ),
        (
            "sim/g1-5",
            expect![[r#"
            instance sim/g1-5   group g1
            class    CloudDeleting for 0s, since 10:15:00
            because  listed since 10:15:00, being deleted
            next     the provider deletes it"#]],
        ),
    ] {
        check(&story, &Target::Instance(id.into()), &expected);
    }
}

#[test]
fn groups() {
    let facts = "g1 T=5 min=1 max=10: ready, starting\n g2 T=1 target-fails: ready";
    let mut story = Story::new();
    story.ask("g1", 4, 1).observe(facts);
    check(
        &story,
        &Target::Group("g1".into()),
        &expect![[r#"
            group g1   target 5   min 1   max 10
            sizes    range 1..5, registered 2, upcoming 4, missing 3
            terms    R 1, S 0, N 1, U 0, D 0, X 0, L 0, E 0, T 5, I 4
            request  own +4 since 10:00:00, until 10:15:00
            backoff  none
            wrong    2 registered of 5 since 10:00:00
            refused  nothing"#]],
    );
    check(
        &story,
        &Target::Group("g2".into()),
        &expect![[r#"
        group g2   target unknown   min 0   max 1000
        stale    target: unavailable
        request  none
        backoff  none
        wrong    no
        refused  sizes unknown"#]],
    );
    story.at("16m").observe("g1 T=5 min=1 max=10: ready");
    check(
        &story,
        &Target::Group("g1".into()),
        &expect![[r#"
        group g1   target 5   min 1   max 10
        sizes    range 5..5, registered 1, upcoming 0, missing 4
        terms    R 1, S 0, N 0, U 0, D 0, X 0, L 0, E 0, T 5, I 0
        request  none
        backoff  until 10:21:00 after timeout: Scale-up timed out for node group g1 after 16m0s
        wrong    1 registered of 5 since 10:16:00
        refused  not ready for scale-up, in backoff after failed scale-up until 10:21:00"#]],
    );
    story.increased("g1", 2, Step::Failed { message: "no".to_owned() });
    story.ask("g1", 2, 5);
    check(
        &story,
        &Target::Group("g1".into()),
        &expect![[r#"
        group g1   target 5   min 1   max 10
        sizes    range 3..5, registered 1, upcoming 0, missing 4
        terms    R 1, S 0, N 0, U 0, D 0, X 0, L 0, E 0, T 5, I 2
        request  own +2 since 10:16:00, until 10:31:00, not settled
        backoff  until 10:21:00 after apiCallError: no
        wrong    1 registered of 5 since 10:16:00
        refused  not ready for scale-up, increase not settled, in backoff after failed scale-up until 10:21:00"#]],
    );
}

/// What comes next, of a node or an instance.
fn next(story: &Story, target: &Target) -> String {
    let text = story.registry.explain(target, story.now).expect("it is known");
    let line = text.lines().find_map(|line| line.strip_prefix("next     "));
    line.expect("something comes next").to_owned()
}

/// Nodes were said to go at a time at which nothing was removed yet, so whoever waited for it waited in
/// vain and was not told why.
#[test]
fn what_comes_next_waits_until_something_may_be_removed() {
    let mut hasty = config();
    hasty.times.unneeded = Duration::from_mins(1);
    let mut story = Story::of(Registry::rebuild(hasty));
    story.observe("g1 T=3: ready, unready since=19m, instance error=QUOTA");
    story.unneeded(&["g1-1"]);
    let until = "remove at 10:05:00, if it is unneeded until then";
    assert_eq!(next(&story, &node("g1-1")), until);
    assert_eq!(next(&story, &Target::Instance("sim/g1-3".into())), "delete at 10:05:00");
    story.at("5m").observe("g1 T=2: ready, unready since=19m");
    assert_eq!(
        (next(&story, &node("g1-1")).as_str(), story.removable().as_str()),
        (until, "Unneeded g1-1")
    );
}

#[test]
fn while_the_cluster_is_unhealthy_nothing_goes() {
    let mut story = Story::new();
    story.observe("g1 T=4: ready, 2 unready since=1h, instance error=QUOTA");
    for target in [node("g1-2"), Target::Instance("sim/g1-4".into())] {
        assert_eq!(next(&story, &target), "stays: the cluster is unhealthy");
    }
}

#[test]
fn nothing_is_said_of_the_unknown() {
    assert_eq!(Story::new().registry.explain(&node("x"), Story::new().now), None);
}
