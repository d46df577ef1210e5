//! A node at work: it takes what fits, runs it, records what came of it, and leaves in order.

use tasks::core::explain::explain;
use tasks::core::retry::START_FAILURES_MAX;
use tasks::core::status::{FailedReason, QueuedReason, Status};
use tasks::core::time::Epoch;
use tasks::core::transition::CancelRefused;
use tasks::node::{TaskUpdate, UPDATES_MAX, UpdatesEnded};
use tasks::store::CancelError;
use tasks::wire;

use super::computer::{Computer, flagged, steps, whole};
use super::etcd::Etcd;
use super::proxy::Proxy;
use super::waiting::{PATIENCE, soon, until};

fn exit_code(status: &Status) -> i32 {
    match status {
        Status::Complete(complete) => complete.exit.code,
        other => panic!("not complete: {other:?}"),
    }
}

#[tokio::test]
async fn a_task_is_run_and_its_end_is_recorded() {
    let etcd = Etcd::start().await;
    let computer = Computer::new(etcd.address());
    let daemon = computer.start().await;
    let id = etcd.submit(steps("exit 3")).await;
    let ended = daemon.ended(id).await;
    assert_eq!(exit_code(&ended.task.status), 3);
    assert_eq!(ended.task.attempts.len(), 1);
    computer.attempts(0).await;
    for (metric, value) in [
        ("windlass_task_claims_total{result=\"won\"}", 1.0),
        ("windlass_task_transitions_total{to=\"running\"}", 1.0),
        ("windlass_task_transitions_total{to=\"complete\"}", 1.0),
        ("windlass_task_queue_seconds_count", 1.0),
        ("windlass_task_start_seconds_count", 1.0),
        ("windlass_task_run_seconds_count", 1.0),
        ("windlass_node_capacity{resource=\"cpu\"}", 1000.0),
        ("windlass_node_fenced_total", 0.0),
    ] {
        let is_seen = || (daemon.metric(metric) - value).abs() < 1e-9;
        until(metric, async || is_seen().then_some(())).await;
    }
    assert!(daemon.metric("windlass_node_lease_remaining_seconds") > 0.0);
    let too_late = etcd.client().cancel(id, "tests", soon()).await.unwrap_err();
    let CancelError::Refused(CancelRefused::Ended { status, .. }) = too_late else {
        panic!("{too_late:?}")
    };
    assert_eq!(status, "complete");
    etcd.assert_in_sync().await;
    daemon.stop().await;
    assert_eq!(etcd.nodes().await, [], "it has given up its lease");
}

/// Nodes looked only at what came after them.
#[tokio::test]
async fn reg03_tasks_queued_before_any_node_run() {
    let etcd = Etcd::start().await;
    let first = etcd.submit(steps("exit 0")).await;
    let second = etcd.submit(steps("exit 1")).await;
    let computer = Computer::new(etcd.address());
    let daemon = computer.start().await;
    assert_eq!(exit_code(&daemon.ended(first).await.task.status), 0);
    assert_eq!(exit_code(&daemon.ended(second).await.task.status), 1);
}

/// Watchers skipped deletions, so that nodes kept what was gone.
#[tokio::test]
async fn reg04_deletes_reach_watchers() {
    let etcd = Etcd::start().await;
    let computer = Computer::new(etcd.address());
    let daemon = computer.start().await;
    let mut updates = daemon.handle().updates().unwrap();
    let id = etcd.submit(steps("exit 0")).await;
    daemon.ended(id).await;
    let client = etcd.client();
    client.gc(Epoch(u64::MAX), soon()).await.unwrap();
    let deleted = async {
        loop {
            if let TaskUpdate::Deleted(of) = updates.next().await.expect("it is fast enough") {
                return of;
            }
        }
    };
    assert_eq!(tokio::time::timeout(PATIENCE, deleted).await.expect("in time"), id);
    let known = daemon.handle().look(move |view| view.cache.task(id).is_some()).await;
    assert_eq!(known, Ok(false));
}

/// A cancel that came before the start was overlooked; and a watch that broke was taken for one.
#[tokio::test]
async fn reg06_cancel_before_start_not_lost() {
    let etcd = Etcd::start().await;
    let client = etcd.client();
    let queued = etcd.submit(steps("exit 0")).await;
    client.cancel(queued, "tests", soon()).await.unwrap();
    let proxy = Proxy::start(etcd.address()).await;
    let computer = Computer::new(proxy.address());
    let daemon = computer.start().await;

    let claimed = etcd.submit(steps("stubborn sleep 1000")).await;
    daemon.running(claimed).await;
    client.cancel(claimed, "tests", soon()).await.unwrap();
    let grace = wire::TaskSpec { grace_ms: Some(0), ..steps("sleep 1000") };
    let at_once = etcd.submit(grace).await;
    client.cancel(at_once, "tests", soon()).await.unwrap();

    let kept = etcd.submit(steps("sleep 1 exit 0")).await;
    daemon.running(kept).await;
    proxy.mute();
    etcd.submit(wire::TaskSpec { name: "news".to_owned(), ..steps("exit 0") }).await;
    proxy.until_lost().await;
    proxy.heal();
    assert_eq!(exit_code(&daemon.ended(kept).await.task.status), 0, "a broken watch is no cancel");

    let record = client.get(queued).await.unwrap().unwrap();
    assert!(record.task.attempts.is_empty(), "it was never started");
    for id in [queued, at_once, claimed] {
        let status = client.get(id).await.unwrap().unwrap().task.status;
        assert!(matches!(status, Status::Canceled(_)), "{status:?}");
    }
}

/// A running task that is canceled is stopped, and its owner says when.
#[tokio::test]
async fn a_canceled_task_is_stopped() {
    let etcd = Etcd::start().await;
    let computer = Computer::new(etcd.address());
    let daemon = computer.start().await;
    let id = etcd.submit(steps("sleep 1000")).await;
    daemon.running(id).await;
    computer.attempts(1).await;
    etcd.client().cancel(id, "tests", soon()).await.unwrap();
    let stopped = daemon.until(id, "the stop", |record| match &record.task.status {
        Status::Canceled(canceled) => canceled.stopped_at.is_some(),
        _ => false,
    });
    stopped.await;
    computer.attempts(0).await;
    etcd.assert_in_sync().await;
}

#[tokio::test]
async fn does_not_steal_what_does_not_fit() {
    let etcd = Etcd::start().await;
    let computer = Computer::new(etcd.address());
    let daemon = computer.start().await;
    let cpu = |millis| {
        let resources = wire::Resources { cpu_millis: Some(millis), ..Default::default() };
        wire::TaskSpec { resources: Some(resources), ..steps("exit 0") }
    };
    let large = etcd.submit(cpu(whole().cpu_millis + 1)).await;
    let small = etcd.submit(cpu(whole().cpu_millis)).await;
    daemon.ended(small).await;
    let now = jiff::Timestamp::now();
    let explained = daemon.handle().look(move |view| {
        let nodes: Vec<_> = view.cache.nodes().collect();
        view.cache.task(large).map(|task| explain(task, &nodes, now))
    });
    let explained = explained.await.unwrap().expect("it waits");
    assert!(explained.is_unsatisfiable);
    assert_eq!(explained.nodes.len(), 1);
    let status = etcd.client().get(large).await.unwrap().unwrap().task.status;
    assert!(matches!(status, Status::Queued(_)), "{status:?}");
}

/// No more run at once than fit, and all of them come to their end.
#[tokio::test]
async fn a_backlog_is_worked_off_within_what_fits() {
    let etcd = Etcd::start().await;
    let computer = Computer::new(etcd.address());
    let daemon = computer.start().await;
    let specs = (0..60).map(|_| steps("exit 0")).collect();
    let submitted = etcd.client().submit_all(specs, "tests", soon()).await;
    let fits = usize::try_from(whole().cpu_millis / 100).unwrap();
    for each in submitted {
        daemon.ended(each.unwrap().id).await;
        assert!(computer.machine.attempts().len() <= fits);
    }
    computer.attempts(0).await;
    etcd.assert_in_sync().await;
}

#[tokio::test]
async fn what_cannot_be_started_is_tried_again_and_fails_in_the_end() {
    let etcd = Etcd::start().await;
    let computer = Computer::new(etcd.address());
    let daemon = computer.start().await;
    let id = etcd.submit(steps("unstartable")).await;
    let tried = daemon.until(id, "a failure", |record| record.task.counters.start_failures > 0);
    let Status::Queued(queued) = tried.await.task.status else { panic!("it waits") };
    assert_eq!(queued.reason, QueuedReason::StartFailed);
    let ended = daemon.ended(id).await.task;
    let Status::Failed(failed) = ended.status else { panic!("it has failed") };
    assert_eq!(failed.reason, FailedReason::StartFailed);
    assert_eq!(ended.counters.start_failures, START_FAILURES_MAX);
    let tries = usize::try_from(START_FAILURES_MAX).unwrap() + 1;
    assert_eq!(ended.attempts.len(), tries, "each try is told: {:?}", ended.attempts);
    etcd.assert_in_sync().await;
}

#[tokio::test]
async fn a_node_that_is_asked_to_end_gives_back_what_it_had() {
    let etcd = Etcd::start().await;
    let computer = Computer::new(etcd.address());
    let daemon = computer.start().await;
    let again = etcd.submit(flagged("sleep 1000")).await;
    let never = etcd.submit(steps("sleep 1000")).await;
    daemon.running(again).await;
    daemon.running(never).await;
    computer.attempts(2).await;
    daemon.stop().await;
    assert_eq!(computer.machine.attempts(), []);
    assert_eq!(etcd.nodes().await, []);
    let client = etcd.client();
    let status = async |id| client.get(id).await.unwrap().unwrap().task.status;
    let Status::Queued(queued) = status(again).await else { panic!("it is queued again") };
    assert_eq!(queued.reason, QueuedReason::Drained);
    let Status::Failed(failed) = status(never).await else { panic!("it has failed") };
    assert_eq!(failed.reason, FailedReason::Drained);
    etcd.assert_in_sync().await;
}

#[tokio::test]
async fn a_drained_node_takes_nothing_more_and_still_answers() {
    let etcd = Etcd::start().await;
    let computer = Computer::new(etcd.address());
    let daemon = computer.start().await;
    let last = etcd.submit(steps("sleep 1 exit 0")).await;
    daemon.running(last).await;
    // What is claimed and has not begun is handed back.
    computer.attempts(1).await;
    daemon.handle().drain().await.unwrap();
    daemon.standing(|standing| standing.is_draining).await;
    let late = etcd.submit(steps("exit 0")).await;
    daemon.standing(|standing| standing.has_left).await;
    assert_eq!(exit_code(&daemon.ended(last).await.task.status), 0);
    until("the late task", async || {
        let known = daemon.handle().look(move |view| view.cache.task(late).cloned()).await;
        known.expect("it answers")
    })
    .await;
    let status = etcd.client().get(late).await.unwrap().unwrap().task.status;
    assert!(matches!(status, Status::Queued(_)), "{status:?}");
    daemon.stop().await;
}

/// Whoever does not listen in time is told so, and holds up nobody.
#[tokio::test]
async fn a_slow_listener_loses_its_place() {
    let etcd = Etcd::start().await;
    let computer = Computer::new(etcd.address());
    let daemon = computer.start().await;
    let mut updates = daemon.handle().updates().unwrap();
    let large = wire::Resources { cpu_millis: Some(1 << 40), ..Default::default() };
    let spec = wire::TaskSpec { resources: Some(large), ..steps("exit 0") };
    let specs = vec![spec; UPDATES_MAX + 1];
    let submitted = etcd.client().submit_all(specs, "tests", soon()).await;
    assert!(submitted.iter().all(Result::is_ok));
    until("all of them", async || {
        let known = daemon.handle().look(|view| view.cache.queue_len()).await;
        (known == Ok(UPDATES_MAX + 1)).then_some(())
    })
    .await;
    assert_eq!(updates.next().await.unwrap_err(), UpdatesEnded::TooSlow);
    let mut fresh = daemon.handle().updates().unwrap();
    let id = submitted[0].as_ref().unwrap().id;
    etcd.client().cancel(id, "tests", soon()).await.unwrap();
    let TaskUpdate::Changed(record) = fresh.next().await.unwrap() else { panic!("a change") };
    assert_eq!(record.id(), id);
    daemon.stop().await;
    assert_eq!(fresh.next().await.unwrap_err(), UpdatesEnded::Stopped);
}
