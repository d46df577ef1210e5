//! Each row of the table of transitions: what it makes of the task, and when it is refused.

use expect_test::{Expect, expect};
use jiff::Timestamp;
use tasks::core::record::{Record, SCHEMA, Usage};
use tasks::core::status::{Queued, QueuedReason, Status};
use tasks::core::transition::{
    CancelStep, Claimant, Ending, Stamp, Touch, TransitionError, cancel, claim, delete, finish,
    requeue, touch,
};
use tasks::core::txn::{Answer, Txn};
use tasks::wire;

use crate::scene::{Scene, exited, flagged, spec};

/// A task that a node is running.
struct Running {
    scene: Scene,
    by: Claimant,
    task: Record,
}

fn running(spec: wire::TaskSpec) -> Running {
    let mut scene = Scene::new();
    let by = scene.register(1);
    let queued = scene.submit(spec);
    let task = scene.claim(&queued, &by);
    Running { scene, by, task }
}

/// The status, briefly, and the counters.
fn brief(record: &Record) -> String {
    let task = &record.task;
    let status = match &task.status {
        Status::Queued(queued) => {
            let wait = queued.not_before.map(|at| at.duration_since(task.submitted_at).as_secs());
            let wait = wait.map_or("at once".to_owned(), |wait| format!("not before +{wait} s"));
            format!("queued, {wait}: {:?}", queued.reason)
        }
        Status::Running(running) => format!("running attempt {}", running.attempt),
        Status::Complete(complete) => format!("complete with {}", complete.exit.code),
        Status::Canceled(canceled) => {
            format!("canceled, stopped: {}", canceled.stopped_at.is_some())
        }
        Status::Failed(failed) => format!("failed {:?}: {}", failed.reason, failed.message),
    };
    let causes: Vec<_> = task.attempts.iter().map(|attempt| attempt.cause).collect();
    let counters = task.counters;
    let counted = [counters.cluster_restarts, counters.start_failures, counters.exit_retries];
    format!("{status}; attempts {causes:?}; counters {counted:?}\n")
}

/// Ends the attempts of a task one by one as said, and tells what it became each time.
fn check_endings(spec: wire::TaskSpec, endings: &[Ending], expected: &Expect) {
    let Running { mut scene, by, mut task } = running(spec);
    let mut told = String::new();
    for ending in endings {
        let finished = scene.end(&task, ending.clone());
        let plan = finish(&task, &finished, scene.stamp()).expect("its owner says so");
        let ended = scene.store.win(&plan);
        scene.assert_in_sync();
        told += &brief(&ended);
        if ended.task.status.is_final() {
            break;
        }
        scene.pass(600);
        task = scene.claim(&ended, &by);
    }
    expected.assert_eq(&told);
}

#[test]
fn a_command_that_ends_is_complete() {
    check_endings(
        spec(),
        &[exited(0)],
        &expect![[r#"
        complete with 0; attempts [Some(Exited)]; counters [0, 0, 0]
    "#]],
    );
    check_endings(
        spec(),
        &[exited(3)],
        &expect![[r#"
        complete with 3; attempts [Some(Exited)]; counters [0, 0, 0]
    "#]],
    );
    check_endings(
        spec(),
        &[Ending::TimedOut],
        &expect![[r#"
        failed Timeout: it ran too long; attempts [Some(Timeout)]; counters [0, 0, 0]
    "#]],
    );
    check_endings(
        spec(),
        &[Ending::ScratchExceeded],
        &expect![[r#"
        failed ScratchExceeded: it wrote too much scratch; attempts [Some(ScratchExceeded)]; counters [0, 0, 0]
    "#]],
    );
}

#[test]
fn a_failed_exit_is_retried_as_often_as_asked() {
    let spec = wire::TaskSpec { retries: 2, ..spec() };
    check_endings(
        spec,
        &[exited(1), exited(1), exited(1)],
        &expect![[r#"
        queued, not before +10 s: ExitRetry; attempts [Some(Exited)]; counters [0, 0, 1]
        queued, not before +620 s: ExitRetry; attempts [Some(Exited), Some(Exited)]; counters [0, 0, 2]
        complete with 1; attempts [Some(Exited), Some(Exited), Some(Exited)]; counters [0, 0, 2]
    "#]],
    );
}

#[test]
fn never_started_is_retried_three_times() {
    let never = || Ending::NeverStarted { message: "no rootfs".to_owned() };
    check_endings(
        spec(),
        &[never(), never(), never(), never()],
        &expect![[r#"
        queued, not before +1 s: StartFailed; attempts [Some(StartFailed)]; counters [0, 1, 0]
        queued, not before +602 s: StartFailed; attempts [Some(StartFailed), Some(StartFailed)]; counters [0, 2, 0]
        queued, not before +1204 s: StartFailed; attempts [Some(StartFailed), Some(StartFailed), Some(StartFailed)]; counters [0, 3, 0]
        failed StartFailed: no rootfs; attempts [Some(StartFailed), Some(StartFailed), Some(StartFailed), Some(StartFailed)]; counters [0, 3, 0]
    "#]],
    );
}

#[test]
fn a_drained_node_requeues_what_is_flagged() {
    check_endings(
        flagged(),
        &[Ending::Drained, Ending::HandedBack, exited(0)],
        &expect![[r#"
        queued, at once: Drained; attempts [Some(Drained)]; counters [0, 0, 0]
        queued, at once: HandedBack; attempts [Some(Drained), Some(HandedBack)]; counters [0, 0, 0]
        complete with 0; attempts [Some(Drained), Some(HandedBack), Some(Exited)]; counters [0, 0, 0]
    "#]],
    );
    check_endings(
        spec(),
        &[Ending::HandedBack, Ending::Drained],
        &expect![[r#"
        queued, at once: HandedBack; attempts [Some(HandedBack)]; counters [0, 0, 0]
        failed Drained: its node was drained; attempts [Some(HandedBack), Some(Drained)]; counters [0, 0, 0]
    "#]],
    );
}

#[test]
fn node_delete_requeues_flagged_fails_unflagged() {
    let lose = |spec| {
        let Running { mut scene, task, .. } = running(spec);
        let stamp = scene.stamp();
        scene.lose(1);
        let plan = requeue(&task, stamp).unwrap();
        let after = scene.store.win(&plan);
        scene.assert_in_sync();
        brief(&after)
    };
    expect![[r#"
        queued, at once: NodeLost; attempts [Some(NodeLost)]; counters [1, 0, 0]
        failed NodeLost: its node was lost, and it may have been started; attempts [Some(NodeLost)]; counters [0, 0, 0]
    "#]].assert_eq(&(lose(flagged()) + &lose(spec())));
}

#[test]
fn a_task_that_loses_its_nodes_too_often_fails() {
    let Running { mut scene, mut task, .. } = running(flagged());
    let mut told = String::new();
    for number in 1..=6 {
        scene.lose(number);
        let plan = requeue(&task, scene.stamp()).unwrap();
        let after = scene.store.win(&plan);
        told += &brief(&after);
        if !after.task.status.is_final() {
            let by = scene.register(number + 1);
            task = scene.claim(&after, &by);
        }
    }
    scene.assert_in_sync();
    expect![[r#"
        queued, at once: NodeLost; attempts [Some(NodeLost)]; counters [1, 0, 0]
        queued, at once: NodeLost; attempts [Some(NodeLost), Some(NodeLost)]; counters [2, 0, 0]
        queued, at once: NodeLost; attempts [Some(NodeLost), Some(NodeLost), Some(NodeLost)]; counters [3, 0, 0]
        queued, at once: NodeLost; attempts [Some(NodeLost), Some(NodeLost), Some(NodeLost), Some(NodeLost)]; counters [4, 0, 0]
        queued, at once: NodeLost; attempts [Some(NodeLost), Some(NodeLost), Some(NodeLost), Some(NodeLost), Some(NodeLost)]; counters [5, 0, 0]
        failed NodeLost: its nodes were lost too often; attempts [Some(NodeLost), Some(NodeLost), Some(NodeLost), Some(NodeLost), Some(NodeLost), Some(NodeLost)]; counters [5, 0, 0]
    "#]].assert_eq(&told);
}

#[test]
fn a_cancel_is_final_and_its_owner_adds_when_it_stopped() {
    let Running { mut scene, by, task } = running(spec());
    let plan = scene.plan_cancel(&task);
    let canceled = scene.store.win(&plan);
    scene.assert_in_sync();
    assert_eq!(cancel(&canceled, "again", scene.stamp()), Ok(CancelStep::Done));

    let stopped = Touch { host: by.host, usage: Usage::default(), stopped_at: Some(scene.now) };
    let plan = touch(&canceled, stopped, scene.stamp().write_id).unwrap();
    let touched = scene.store.win(&plan);
    scene.assert_in_sync();
    expect![[r#"
        canceled, stopped: false; attempts [None]; counters [0, 0, 0]
        canceled, stopped: true; attempts [Some(Canceled)]; counters [0, 0, 0]
    "#]]
    .assert_eq(&(brief(&canceled) + &brief(&touched)));
    assert_eq!(canceled.task.status.key(task.id()), touched.task.status.key(task.id()));
}

#[test]
fn only_ended_tasks_are_deleted() {
    let Running { mut scene, task, .. } = running(spec());
    let key = task.task.status.key(task.id());
    assert!(matches!(delete(key, task.modified), Err(TransitionError::NotFrom { .. })));
    let finished = scene.end(&task, exited(0));
    let plan = finish(&task, &finished, scene.stamp()).unwrap();
    let ended = scene.store.win(&plan);
    let plan = delete(ended.task.status.key(ended.id()), ended.modified).unwrap();
    scene.store.settle(&plan);
    assert_eq!(scene.store.record(task.id()), None);
    scene.assert_in_sync();
}

#[test]
fn what_makes_no_sense_is_refused_before_it_is_sent() {
    let Running { mut scene, by, task } = running(spec());
    let other = scene.register(2);
    let mut told = String::new();
    let mut tell = |error: TransitionError| told += &format!("{error}\n");
    let stamp = scene.stamp();

    tell(claim(&task, &other, stamp).unwrap_err());
    let mut finished = scene.end(&task, exited(0));
    finished.node = other.node;
    tell(finish(&task, &finished, stamp).unwrap_err());
    let foreign = Touch { host: other.host, usage: Usage::default(), stopped_at: None };
    tell(touch(&task, foreign, stamp.write_id).unwrap_err());

    let queued = scene.submit(spec());
    tell(requeue(&queued, stamp).unwrap_err());
    tell(finish(&queued, &scene.end(&task, exited(0)), stamp).unwrap_err());
    scene.pass(1);
    let mut later = scene.submit(spec());
    let (not_before, reason) = (Some(scene.now), QueuedReason::ExitRetry);
    later.task.status = Status::Queued(Queued { not_before, reason });
    tell(claim(&later, &by, stamp).unwrap_err());

    let mut newer = queued.clone();
    newer.task.schema = SCHEMA + 1;
    tell(claim(&newer, &by, stamp).unwrap_err());

    let plan = finish(&task, &scene.end(&task, exited(0)), stamp).unwrap();
    let complete = scene.store.win(&plan);
    tell(claim(&complete, &by, stamp).unwrap_err());
    tell(requeue(&complete, stamp).unwrap_err());
    let told = told.replace(&task.id().to_string(), "$RUN");
    let told = told.replace(&queued.id().to_string(), "$QUEUED");
    expect![[r#"
        $RUN is running already
        $RUN does not belong to this node
        $RUN does not belong to this node
        $QUEUED is queued already
        $QUEUED is queued and cannot become ended
        $LATER is not to be started before 2023-11-14T22:13:21Z
        $QUEUED has schema 2, newer than 1: only newer nodes change it
        $RUN is complete and cannot become running
        $RUN is complete and cannot become queued
    "#]]
    .assert_eq(&told.replace(&later.id().to_string(), "$LATER"));
}

/// The words of a transaction on the wire, since a wrong compare is a broken fence.
#[test]
fn the_fences_are_in_the_transactions() {
    let Running { mut scene, by, task } = running(spec());
    let queued = scene.submit(spec());
    let compares = |txn: &Txn| {
        let compares = txn.compares.iter().map(|compare| format!("{compare:?}\n"));
        compares.collect::<String>() + "\n"
    };
    let stamp = scene.stamp();
    let told = [
        compares(&claim(&queued, &by, stamp).unwrap().txn),
        compares(&finish(&task, &scene.end(&task, exited(0)), stamp).unwrap().txn),
        compares(&requeue(&task, stamp).unwrap().txn),
    ];
    let told = told.concat().replace(&task.id().to_string(), "$RUN");
    let told = told.replace(&queued.id().to_string(), "$QUEUED");
    expect![[r#"
        ModifiedAt(Task($QUEUED), Revision(5))
        Exists(Status(Queued($QUEUED)))
        CreatedAt(Node($NODE), Revision(2))

        ModifiedAt(Task($RUN), Revision(4))
        Exists(Status(Running($NODE, $RUN)))

        ModifiedAt(Task($RUN), Revision(4))
        Exists(Status(Running($NODE, $RUN)))
        Absent(Node($NODE))

    "#]]
    .assert_eq(&told.replace(&by.node.to_string(), "$NODE"));
}

#[test]
fn an_answer_of_another_shape_settles_nothing() {
    let mut scene = Scene::new();
    let plan = scene.plan_submit(spec());
    let answer = Answer { revision: scene.store.revision(), succeeded: false, results: Vec::new() };
    assert!(plan.settle(&answer).is_err());
}

/// `not_before` was the submitter's own time, so that nodes whose clocks were behind it left the task
/// lying, however idle they were.
#[test]
fn what_may_start_at_once_waits_for_nobodys_clock() {
    let mut scene = Scene::new();
    let by = scene.register(1);
    let queued = scene.submit(flagged());
    let behind = Stamp { now: Timestamp::UNIX_EPOCH, ..scene.stamp() };
    let claimed = scene.store.win(&claim(&queued, &by, behind).expect("it may start at once"));
    scene.lose(1);
    let plan = requeue(&claimed, scene.stamp()).expect("its node is gone");
    let requeued = scene.store.win(&plan);
    let by = scene.register(2);
    let behind = Stamp { now: Timestamp::UNIX_EPOCH, ..scene.stamp() };
    let claimed = scene.store.win(&claim(&requeued, &by, behind).expect("it may start at once"));
    let never = Ending::NeverStarted { message: String::new() };
    let plan =
        finish(&claimed, &scene.end(&claimed, never), scene.stamp()).expect("its owner says so");
    let failed = scene.store.win(&plan);
    let refused = claim(&failed, &by, scene.stamp()).expect_err("its backoff is not over");
    assert!(matches!(refused, TransitionError::TooEarly { .. }), "{refused}");
}
