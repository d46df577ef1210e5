//! How a node leaves.

use std::time::Duration;

use expect_test::expect;
use tasks::core::agent::{Event, Report};

use super::story::{Story, ended, stopped};
use crate::scene::{flagged, spec};

#[test]
fn a_draining_node_takes_nothing_and_leaves_when_it_is_empty() {
    let (mut story, first) = Story::running(flagged());
    story.tell(Event::Drain);
    let second = story.submit(spec());
    story.pass(Duration::from_secs(2));
    story.report(first, 1, ended(0));
    story.pass(Duration::from_secs(1));
    assert_eq!(story.state(second), "queued");
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 2000 ms: revokes lease 101
        after 2000 ms: has left
        after 3000 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(first));
}

#[test]
fn what_does_not_end_is_stopped_after_ten_minutes_of_draining() {
    let (mut story, task) = Story::running(spec());
    story.tell(Event::Drain);
    story.pass(Duration::from_secs(601));
    story.report(task, 1, stopped());
    story.pass(Duration::from_secs(1));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 600000 ms: stops attempt 1 with 10 s of grace
        after 601000 ms: revokes lease 101
        after 601000 ms: has left
        after 602000 ms: failed after [Some(Drained)]
    "#]]
    .assert_eq(&story.end(task));
}

#[test]
fn a_node_that_is_to_leave_now_stops_what_runs_and_says_why() {
    let (mut story, task) = Story::running(flagged());
    story.tell(Event::Leave);
    story.pass(Duration::from_secs(1));
    story.report(task, 1, stopped());
    story.pass(Duration::from_secs(1));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 0 ms: stops attempt 1 with 10 s of grace
        after 1000 ms: revokes lease 101
        after 1000 ms: has left
        after 2000 ms: queued after [Some(Drained)]
    "#]]
    .assert_eq(&story.end(task));
}

/// Whatever was stopped for a drain was said to have run: a task without the flag failed, though no
/// instruction of it had been executed.
#[test]
fn a_node_that_leaves_hands_back_what_never_began() {
    let (mut story, task) = Story::running(spec());
    story.tell(Event::Leave);
    story.report(task, 1, Report::StoppedBeforeStart);
    story.pass(Duration::from_secs(1));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 0 ms: stops attempt 1 with 10 s of grace
        after 0 ms: revokes lease 101
        after 0 ms: has left
        after 1000 ms: queued after [Some(HandedBack)]
    "#]]
    .assert_eq(&story.end(task));
}
