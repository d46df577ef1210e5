//! What a node takes of the queue, and what keeps it from it.

use std::time::Duration;

use expect_test::expect;
use tasks::core::admission::{Hindrance, Machine};
use tasks::core::agent::Event;
use tasks::core::keys::Key;
use tasks::core::node::TELL_EVERY;
use tasks::core::status::{Queued, QueuedReason, Status};
use tasks::core::time::later;
use tasks::core::txn::Op;
use tasks::wire;

use super::story::{Story, ended};
use crate::scene::{Scene, spec};

/// What a task waits for is in the store, for whichever node is asked.
#[test]
fn a_machine_without_space_takes_nothing_and_tells_the_others_why() {
    let machine = |disk_free_bytes| Machine {
        memory_available_bytes: 4 << 30,
        memory_pressure: None,
        disk_free_bytes,
        disk_total_bytes: 10 << 30,
    };
    let mut story = Story::new(Scene::new());
    story.tell(Event::Measured(machine(1 << 30)));
    let task = story.submit(spec());
    story.pass(TELL_EVERY);
    assert_eq!(story.told_hindrance(), Some(Hindrance::Disk));
    story.tell(Event::Measured(machine(5 << 30)));
    story.pass(TELL_EVERY);
    assert_eq!(story.told_hindrance(), None);
    story.report(task, 1, ended(0));
    expect![[r#"
        after 0 ms: registers
        after 2000 ms: starts attempt 1
        after 4000 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(task));
}

/// Each task was compared alone with a measurement that none of them was in yet: what the machine had
/// left for one was given to all.
#[test]
fn memory_that_is_promised_since_the_measurement_is_not_promised_again() {
    let room_for_one = Machine {
        memory_available_bytes: (512 + 256 + 128) << 20,
        memory_pressure: None,
        disk_free_bytes: 5 << 30,
        disk_total_bytes: 10 << 30,
    };
    let mut story = Story::new(Scene::new());
    story.tell(Event::Measured(room_for_one));
    let first = story.scene.submit(spec()).id();
    let second = story.submit(spec());
    story.pass(Duration::from_secs(1));
    assert_eq!([first, second].map(|id| story.state(id)), ["running", "queued"]);
    assert_eq!(story.agent.hindrance(), None, "the machine as it was measured bears it");
    // The first uses nothing of what it was promised.
    story.tell(Event::Measured(room_for_one));
    assert_eq!(story.state(second), "running");
}

/// More than are looked at.
const MANY: usize = 1025;

/// The first 1,024 places of the queue were looked at, whatever lay there: so many tasks that no node
/// had room for kept every node from all that came after them.
#[test]
fn what_no_node_can_run_keeps_nothing_from_being_claimed() {
    let mut scene = Scene::new();
    for _ in 0..MANY {
        let resources = wire::Resources { cpu_millis: Some(1001), ..Default::default() };
        scene.submit(wire::TaskSpec { resources: Some(resources), ..spec() });
    }
    let good = scene.submit(spec()).id();
    let mut story = Story::new(scene);
    story.report(good, 1, ended(0));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 0 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(good));
}

/// As above, with tasks whose backoff is not over. They are taken when it is.
#[test]
fn what_waits_for_its_backoff_keeps_nothing_from_being_claimed() {
    let mut scene = Scene::new();
    let not_before = Some(later(scene.now, Duration::from_secs(60)));
    let mut delayed = Vec::new();
    for _ in 0..MANY {
        let mut task = scene.submit(wire::TaskSpec { priority: 1, ..spec() }).task;
        let reason = QueuedReason::ExitRetry;
        task.status = Status::Queued(Queued { not_before, reason });
        scene.store.meddle(vec![Op::Put(Key::Task(task.id), task.encode())]);
        delayed.push(task.id);
    }
    let good = scene.submit(spec()).id();
    let mut story = Story::new(scene);
    story.report(good, 1, ended(0));
    story.pass(Duration::from_secs(59));
    let taken = |story: &Story| delayed.iter().filter(|id| story.state(**id) == "running").count();
    assert_eq!(taken(&story), 0, "a backoff is waited for");
    story.pass(Duration::from_secs(1));
    assert_eq!(taken(&story), 10, "what there is room for");
    assert_eq!(story.state(good), "complete");
}
