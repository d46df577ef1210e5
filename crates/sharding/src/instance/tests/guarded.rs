//! What `wrap` promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::runtime::controller::Action;

use super::scene::{D, GRACE, Probe, Scene, poll, seen, stored};
use crate::core::instance::{Command, Event};
use crate::instance::Reconcile;

const MS: Duration = Duration::from_millis(1);

/// Begins a reconcile that runs until it is stopped.
fn begin(
    scene: &Scene,
    probe: &Probe,
    object: ConfigMap,
) -> Reconcile<impl Future<Output = Result<Action, kube::Error>> + use<>> {
    let probe = probe.clone();
    let mut reconcile = scene.shard.wrap(move |_: Arc<ConfigMap>, _: Arc<()>| probe.future());
    reconcile(Arc::new(object), Arc::new(()))
}

fn is_done(polled: &Poll<Result<Action, kube::Error>>) -> bool {
    matches!(polled, Poll::Ready(Ok(action)) if *action == Action::await_change())
}

fn acknowledgements(commands: &[Command]) -> usize {
    commands.iter().filter(|command| matches!(command, Command::Acknowledge { .. })).count()
}

#[tokio::test]
async fn at_the_deadline_no_further_step_is_taken() {
    let (scene, probe) = (Scene::new(), Probe::default());
    let mut running = begin(&scene, &probe, stored("a-0", 7, false));
    assert!(poll(&mut running).is_pending());
    scene.pause(D * 2 / 3 - MS);
    assert!(poll(&mut running).is_pending());
    assert_eq!(probe.polled(), 2);
    scene.pause(MS);
    assert!(is_done(&poll(&mut running)));
    assert_eq!(probe.polled(), 2, "the Lease is looked at before the poll");
    assert!(probe.is_gone());
    let mut next = begin(&scene, &probe, stored("a-0", 7, false));
    assert!(is_done(&poll(&mut next)), "and nothing else begins");
    assert_eq!(probe.polled(), 2);
}

#[tokio::test]
async fn a_drained_object_is_given_up_after_its_grace_and_only_when_nothing_runs() {
    let (mut scene, probe) = (Scene::new(), Probe::default());
    let mut running = begin(&scene, &probe, stored("a-0", 7, false));
    assert!(poll(&mut running).is_pending());
    scene.desk.tell(Event::Seen(Box::new(seen("a-0", 8, true))));
    assert_eq!(scene.pass(GRACE - MS), [], "it may finish");
    let commands = scene.pass(MS);
    let [Command::Cancel(name)] = &commands[..] else { panic!("{commands:?}") };
    scene.desk.cancel(name);
    assert_eq!(acknowledgements(&scene.pass(MS)), 0, "its future is not gone yet");
    assert!(is_done(&poll(&mut running)));
    assert!(probe.is_gone());
    assert_eq!(acknowledgements(&scene.pass(MS)), 1);
}

#[tokio::test]
async fn a_reconcile_that_ends_by_itself_lets_its_object_go_at_once() {
    let (mut scene, probe) = (Scene::new(), Probe::default());
    let running = begin(&scene, &probe, stored("a-0", 7, false));
    scene.desk.tell(Event::Seen(Box::new(seen("a-0", 8, true))));
    assert_eq!(scene.pass(MS), []);
    drop(running);
    assert_eq!(acknowledgements(&scene.pass(MS)), 1, "never polled, and gone all the same");
}

#[tokio::test]
async fn of_two_reconciles_of_one_object_the_last_end_counts() {
    let (mut scene, probe) = (Scene::new(), Probe::default());
    let one = begin(&scene, &probe, stored("a-0", 7, false));
    let other = begin(&scene, &probe, stored("a-0", 7, false));
    scene.desk.tell(Event::Seen(Box::new(seen("a-0", 8, true))));
    drop(one);
    assert_eq!(acknowledgements(&scene.pass(MS)), 0);
    drop(other);
    assert_eq!(acknowledgements(&scene.pass(MS)), 1);
}

#[tokio::test]
async fn what_is_not_ours_or_draining_is_skipped() {
    let (scene, probe) = (Scene::new(), Probe::default());
    for object in [stored("b-0", 7, false), stored("a-0", 8, true), ConfigMap::default()] {
        let mut skipped = begin(&scene, &probe, object);
        assert!(is_done(&poll(&mut skipped)));
    }
    let mut stale = begin(&scene, &probe, stored("a-0", 7, false));
    assert!(is_done(&poll(&mut stale)), "an older state than that which was draining");
    assert_eq!(probe.polled(), 0);
}

#[tokio::test]
async fn whoever_waits_is_woken_to_be_stopped() {
    #[derive(Default)]
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (scene, probe) = (Scene::new(), Probe::default());
    let mut running = begin(&scene, &probe, stored("a-0", 7, false));
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    assert!(running.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(count.0.load(Ordering::Relaxed), 0);
    scene.desk.close();
    assert_eq!(count.0.load(Ordering::Relaxed), 1);
    assert!(is_done(&poll(&mut running)));
}

#[tokio::test]
async fn outcomes_and_errors_are_the_users_own() {
    #[derive(Debug, PartialEq, thiserror::Error)]
    #[error("odd")]
    struct Odd;
    let scene = Scene::new();
    let mut reconcile = scene.shard.wrap(|object: Arc<ConfigMap>, _: Arc<()>| async move {
        let is_odd = object.metadata.resource_version.as_deref() == Some("7");
        if is_odd { Err(Odd) } else { Ok(Action::requeue(GRACE)) }
    });
    let mut answer = |version| {
        let object = Arc::new(stored("a-0", version, false));
        reconcile(object, Arc::new(())).now_or_never().unwrap()
    };
    assert_eq!(answer(7), Err(Odd));
    assert_eq!(answer(8), Ok(Action::requeue(GRACE)));
}

#[tokio::test]
async fn stopping_waits_for_what_runs() {
    let (mut scene, probe) = (Scene::new(), Probe::default());
    let mut running = begin(&scene, &probe, stored("a-0", 7, false));
    scene.desk.tell(Event::Stop(crate::instance::Stop::Release));
    assert_eq!(scene.pass(D), [], "the Lease is renewed, and nothing ends");
    assert!(poll(&mut running).is_pending());
    let mut next = begin(&scene, &probe, stored("a-0", 7, false));
    assert!(is_done(&poll(&mut next)), "nothing begins");
    drop(running);
    assert_eq!(scene.pass(MS), []);
    assert_eq!(scene.desk.take_commands(), [Command::Left]);
}
