//! A node and its lease: kept, lost, and what becomes of ends meanwhile.

use std::time::Duration;

use bytes::Bytes;
use expect_test::expect;
use tasks::core::agent::{Event, Leftovers};
use tasks::core::id::AttemptNumber;
use tasks::core::keys::Key;
use tasks::core::node::TELL_EVERY;
use tasks::core::record::Usage;
use tasks::core::time::Boottime;
use tasks::core::transition::Finished;
use tasks::core::txn::{LeaseId, Op};

use super::story::{Story, ended, stopped};
use crate::scene::{Scene, exited, flagged, spec};

#[test]
fn a_node_cut_off_kills_everything_and_comes_back_as_another() {
    let (mut story, task) = Story::running(flagged());
    story.is_cut = true;
    story.pass(Duration::from_secs(7));
    story.report(task, 1, stopped());
    story.pass(Duration::from_secs(4));
    story.scene.store.revoke(LeaseId(101));
    story.is_cut = false;
    story.pass(Duration::from_secs(3));
    story.report(task, 2, ended(0));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 6700 ms: stops attempt 1 with 0 s of grace
        after 7000 ms: revokes lease 101
        after 12000 ms: registers
        after 12000 ms: starts attempt 2
        after 14000 ms: complete after [Some(NodeLost), Some(Exited)]
    "#]]
    .assert_eq(&story.end(task));
}

/// The end was there before the deadline, the store was not. It is recorded once the store is back,
/// though the node is another by then.
#[test]
fn a_result_survives_the_fence() {
    let (mut story, task) = Story::running(spec());
    story.is_cut = true;
    story.pass(Duration::from_secs(2));
    story.report(task, 1, ended(7));
    story.pass(Duration::from_secs(6));
    story.is_cut = false;
    story.pass(Duration::from_secs(2));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 8800 ms: registers
        after 10000 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(task));
}

/// As long as nobody knows what became of the task, its end is worth keeping.
#[test]
fn a_result_outlives_a_record_that_cannot_be_read() {
    let (mut story, task) = Story::running(spec());
    story.is_cut = true;
    story.report(task, 1, ended(7));
    let sound = story.scene.store.get(Key::Task(task)).expect("it runs");
    let value = Bytes::copy_from_slice(sound.value());
    let put = |value| vec![Op::Put(Key::Task(task), value)];
    story.scene.store.meddle(put(Bytes::from_static(b"garbage")));
    story.is_cut = false;
    story.pass(Duration::from_secs(2));
    assert!(story.agent.is_unrecorded(task, AttemptNumber(1)), "the end is given up");
    story.scene.store.meddle(put(value));
    story.pass(Duration::from_secs(6));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 8000 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(task));
}

#[test]
fn a_new_daemon_publishes_what_it_finds_before_it_gives_up_the_old_lease() {
    let mut scene = Scene::new();
    let before = scene.register(2);
    let queued = scene.submit(spec());
    let running = scene.claim(&queued, &before);
    let found: Finished = scene.end(&running, exited(0));
    let (ended, lease) = (vec![(queued.id(), found)], Some(LeaseId(2)));
    let leftovers = Leftovers { ended, lease, ..Leftovers::default() };
    let story = Story::recovering(scene, leftovers);
    expect![[r#"
        after 0 ms: revokes lease 2
        after 0 ms: registers
        after 0 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(queued.id()));
}

/// It was said to go on for ever: whoever had canceled it waited in vain for its end.
#[test]
fn what_a_new_daemon_killed_of_a_canceled_task_is_said_to_have_stopped() {
    let mut scene = Scene::new();
    let before = scene.register(1);
    let queued = scene.submit(spec());
    let running = scene.claim(&queued, &before);
    let plan = scene.plan_cancel(&running);
    scene.store.win(&plan);
    let stopped = vec![(queued.id(), AttemptNumber(1), Usage::default())];
    let leftovers = Leftovers { stopped, lease: Some(LeaseId(1)), ..Leftovers::default() };
    let story = Story::recovering(scene, leftovers);
    expect![[r#"
        after 0 ms: revokes lease 1
        after 0 ms: registers
        after 0 ms: canceled after [Some(Canceled)]
    "#]]
    .assert_eq(&story.end(queued.id()));
}

/// The thread that keeps the lease was in time, the agent was held up beside it: it went by what it had
/// heard last and killed what ran, though nobody doubted that the node was alive.
#[test]
fn a_node_that_was_held_up_goes_on_if_its_lease_was_kept() {
    let kept = |sent| {
        let (mut story, task) = Story::running(spec());
        story.at = Duration::from_secs(9);
        let (lease, remaining) = (LeaseId(101), Duration::from_secs(10));
        let sent = Boottime(Duration::from_millis(sent));
        story.tell(Event::KeptAlive { lease, sent, remaining });
        story.report(task, 1, ended(0));
        story.end(task)
    };
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 9000 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&kept(6600));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 9000 ms: stops attempt 1 with 0 s of grace
        after 9000 ms: registers
        after 9000 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&kept(2300));
}

/// The next registration was given up for the answer to what the one before had told of itself.
#[test]
fn an_answer_to_the_registration_before_does_not_fence() {
    let mut story = Story::new(Scene::new());
    story.withheld = Some(Vec::new());
    let task = story.submit(flagged());
    story.pass(TELL_EVERY);
    let withheld = story.withheld.take().expect("it is withheld");
    assert_eq!(withheld.len(), 1, "what is reserved is told");
    story.is_cut = true;
    story.pass(Duration::from_secs(7));
    story.report(task, 1, stopped());
    story.scene.store.revoke(LeaseId(101));
    story.is_cut = false;
    story.pass(Duration::from_secs(2));
    let present = story.agent.node_id();
    assert!(present.is_some(), "it has registered anew");
    for (token, txn) in withheld {
        let answer = story.scene.store.txn(&txn);
        assert!(!answer.succeeded, "the key is gone");
        story.tell(Event::Answered { token, answer });
    }
    assert_eq!(story.agent.node_id(), present);
}
