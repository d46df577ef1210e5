//! What a node runs: claimed, started, stopped, and what is recorded of it.

use std::time::Duration;

use expect_test::expect;
use tasks::core::agent::Report;
use tasks::core::id::Revision;
use tasks::core::keys::Key;
use tasks::core::record::Usage;
use tasks::core::status::Status;
use tasks::core::transition::Ending;

use super::story::{Story, ended, stopped};
use crate::scene::{Scene, exited, spec};

#[test]
fn a_task_that_waited_before_any_node_came_is_run() {
    let mut scene = Scene::new();
    let task = scene.submit(spec()).id();
    let mut story = Story::new(scene);
    story.pass(Duration::from_millis(200));
    story.report(task, 1, ended(0));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 200 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(task));
}

#[test]
fn a_canceled_task_is_stopped_and_says_when() {
    let (mut story, task) = Story::running(spec());
    story.cancel(task);
    story.pass(Duration::from_millis(100));
    story.report(task, 1, stopped());
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 100 ms: stops attempt 1 with 10 s of grace
        after 100 ms: canceled after [Some(Canceled)]
    "#]]
    .assert_eq(&story.end(task));
}

/// It was stopped, or ended by itself meanwhile: what it had used was dropped either way.
#[test]
fn what_a_canceled_task_used_is_kept() {
    let usage = Usage { peak_memory_bytes: 7 << 20, cpu_ms: 900 };
    for report in [Report::Stopped(usage), Report::Ended(exited(0), usage)] {
        let (mut story, task) = Story::running(spec());
        story.cancel(task);
        story.pass(Duration::from_millis(100));
        story.report(task, 1, report);
        let record = story.record(task);
        assert_eq!(record.task.last_attempt().expect("it ran").usage, usage);
        assert!(matches!(record.task.status, Status::Canceled(it) if it.stopped_at.is_some()));
    }
}

#[test]
fn what_never_started_is_tried_again_after_a_while() {
    let (mut story, task) = Story::running(spec());
    let never = Ending::NeverStarted { message: "no rootfs".to_owned() };
    story.report(task, 1, Report::Ended(never, Usage::default()));
    story.pass(Duration::from_secs(2));
    story.report(task, 2, ended(0));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 1000 ms: starts attempt 2
        after 2000 ms: complete after [Some(StartFailed), Some(Exited)]
    "#]]
    .assert_eq(&story.end(task));
}

#[test]
fn a_task_that_runs_here_and_is_not_known_here_is_said_not_to_have_started() {
    let (mut story, task) = Story::running(spec());
    story.report(task, 1, ended(0));
    // Somebody writes a claim in this node's name.
    let node = story.agent.node_id().expect("it is registered");
    let queued = story.scene.submit(spec());
    let mut claimant = story.scene.register(9);
    claimant.node = node;
    let key = story.scene.store.get(Key::Node(node)).expect("it is registered");
    claimant.registered = Revision(key.create_revision());
    story.scene.pass(1);
    let forged = story.scene.claim(&queued, &claimant);
    story.pass(Duration::from_secs(33));
    assert_eq!(story.record(forged.id()).task.counters.start_failures, 1);
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 31000 ms: starts attempt 2
        after 33000 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(task));
}

#[test]
fn a_task_that_ended_a_day_ago_is_forgotten() {
    let mut scene = Scene::new();
    let [old, young] = [(); 2].map(|()| {
        let ended = scene.submit(spec());
        let plan = scene.plan_cancel(&ended);
        scene.pass(3600);
        scene.store.win(&plan).id()
    });
    scene.pass(24 * 3600 - 7000);
    let mut story = Story::new(scene);
    story.pass(Duration::from_secs(61));
    assert_eq!(story.scene.store.record(old), None);
    assert!(story.scene.store.record(young).is_some());
    story.scene.assert_in_sync();
}
