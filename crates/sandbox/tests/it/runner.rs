//! The seed's tests of the runner: a command is created, run, watched and canceled.

use std::time::Duration;

use sandbox::{Event, Kind, Outcome, Spec};

use crate::scene::{Scene, ended, exited, shell, spec};

/// Long against everything a test does.
const REST: &str = "sleep 1000";
const NO_GRACE: Duration = Duration::ZERO;

/// Makes a test of each on both runtimes.
macro_rules! on_both {
    ($($test:ident)*) => {
        mod process {
            $(
                #[tokio::test]
                async fn $test() {
                    super::$test(sandbox::Kind::Process).await;
                }
            )*
        }

        mod native {
            $(
                #[tokio::test]
                async fn $test() {
                    if crate::native::alone::is_root(stringify!($test)) {
                        super::$test(sandbox::Kind::Native).await;
                    }
                }
            )*
        }
    };
}

on_both! {
    container_create_and_run
    watch_cancel_returns_on_cancel
    watch_cancel_returns_on_context_cancel
    nonzero_exit_is_not_an_error
    a_command_that_is_not_there_never_starts
    a_directory_that_is_not_there_is_named
    a_timeout_is_held_by_the_shim
    a_stop_with_less_grace_is_sooner
}

async fn container_create_and_run(kind: Kind) {
    let mut scene = Scene::open(kind).await;
    let mut attempt = scene.start(shell("echo hello; echo trouble >&2; pwd; cat"));
    assert_eq!(attempt.next().await, Some(Event::Created));
    assert_eq!(attempt.next().await, Some(Event::Started));
    let end = ended(&mut attempt).await;
    assert_eq!(end.outcome, exited(0));
    assert!(end.usage.peak_memory_bytes > 0, "{end:?}");
    assert_eq!((end.log.bytes, end.log.dropped_bytes), (16, 0));
    assert_eq!(attempt.next().await, None, "nothing follows the end");
    assert_eq!(scene.output(attempt.id()), "hello\n/\n");
}

/// However far the attempt is, a cancel ends it and is answered.
async fn watch_cancel_returns_on_cancel(kind: Kind) {
    let mut scene = Scene::open(kind).await;
    let mut before_start = scene.start(shell(REST));
    before_start.stop(NO_GRACE);
    assert!(is_stopped(&ended(&mut before_start).await.outcome));

    let mut during_create = scene.start(shell(REST));
    assert_eq!(during_create.next().await, Some(Event::Created));
    during_create.stop(NO_GRACE);
    assert!(is_stopped(&ended(&mut during_create).await.outcome));

    let mut running = scene.running(REST).await;
    running.stop(Duration::from_secs(1000));
    assert_eq!(ended(&mut running).await.outcome, Outcome::Stopped, "TERM is enough");

    let mut after_exit = scene.running("exit 4").await;
    let end = ended(&mut after_exit).await;
    after_exit.stop(NO_GRACE);
    assert_eq!(end.outcome, exited(4), "what has ended stays as it ended");
    assert_eq!(after_exit.next().await, None);
}

/// Whether the command had begun by then is a race.
fn is_stopped(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Stopped | Outcome::StoppedBeforeStart)
}

/// Whoever watches can stop watching; the attempt neither ends nor hangs by that.
async fn watch_cancel_returns_on_context_cancel(kind: Kind) {
    let mut scene = Scene::open(kind).await;
    let mut attempt = scene.running(REST).await;
    let stopper = attempt.stopper();
    let waiting = tokio::time::timeout(Duration::from_millis(1), attempt.next()).await;
    assert!(waiting.is_err(), "the wait is given up, the attempt goes on");
    drop(attempt);
    stopper.stop(NO_GRACE);
    scene.host.close().await;
}

async fn nonzero_exit_is_not_an_error(kind: Kind) {
    let mut scene = Scene::open(kind).await;
    assert_eq!(scene.run("exit 3").await.outcome, exited(3));
    assert_eq!(scene.run("kill -9 $$").await.outcome, crate::scene::killed());
}

async fn a_command_that_is_not_there_never_starts(kind: Kind) {
    let mut scene = Scene::open(kind).await;
    let mut attempt = scene.start(spec(&["/no/such/program"]));
    let Outcome::NeverStarted { reason } = ended(&mut attempt).await.outcome else {
        panic!("it started")
    };
    assert!(reason.contains("o such file"), "{reason}");
}

/// All that was said was that a system call had failed, or that there was no such command.
async fn a_directory_that_is_not_there_is_named(kind: Kind) {
    let mut scene = Scene::open(kind).await;
    let spec = Spec { workdir: "/no/such/folder".into(), ..shell("pwd") };
    let Outcome::NeverStarted { reason } = ended(&mut scene.start(spec)).await.outcome else {
        panic!("it started")
    };
    assert!(reason.ends_with("there is no directory /no/such/folder to start in"), "{reason}");
}

async fn a_timeout_is_held_by_the_shim(kind: Kind) {
    let mut scene = Scene::open(kind).await;
    let mut spec = shell("trap 'echo asked' TERM; while :; do sleep 0.01; done");
    spec.timeout = Some(Duration::from_millis(200));
    spec.grace = Duration::from_millis(200);
    let mut attempt = scene.start(spec);
    assert_eq!(ended(&mut attempt).await.outcome, Outcome::TimedOut);
    assert_eq!(scene.output(attempt.id()), "asked\n", "TERM came first");
}

async fn a_stop_with_less_grace_is_sooner(kind: Kind) {
    let mut scene = Scene::open(kind).await;
    let mut attempt = scene.running("trap '' TERM; echo ready; sleep 1000").await;
    attempt.stop(Duration::from_secs(1000));
    attempt.stop(NO_GRACE);
    assert_eq!(ended(&mut attempt).await.outcome, Outcome::Stopped);
}
