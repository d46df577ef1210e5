//! A host on a fake machine: the shim's decisions on virtual time, with real records and logs.

use std::time::Duration;

use sandbox::{
    Attempt, AttemptId, Boottime, Event, Exit, Host, Kind, Options, Order, Outcome,
    fake::Machine,
    host::Engine,
    log::{Start, Stream, Streams},
};
use tempfile::TempDir;
use uuid::Uuid;

use crate::scene::{exited, spec, text};

struct Scene {
    _dir: TempDir,
    host: Host,
    machine: Machine,
}

// === impl Scene ===

impl Scene {
    async fn open() -> Self {
        Self::open_until(|_| Boottime::NEVER).await
    }

    async fn open_until(deadline: impl FnOnce(&Machine) -> Boottime) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let machine = Machine::new(Boottime::from_nanos(1_000_000_000));
        let engine = Engine::Fake(machine.clone());
        let options =
            Options { engine, ..Options::new(dir.path().to_owned(), Uuid::nil(), Kind::Process) };
        let (host, _) = Host::open(options).await.unwrap();
        host.deadline().set(deadline(&machine));
        Self { _dir: dir, host, machine }
    }

    fn start(&self, words: &str) -> Attempt {
        let words: Vec<&str> = words.split(' ').collect();
        let id = AttemptId { task: Uuid::from_u128(7), number: 1 };
        self.host.start(Order { id, spec: spec(&words), note: Vec::new() })
    }

    /// How it ended, and when.
    async fn ended(&self, attempt: &mut Attempt) -> (Outcome, Duration) {
        let since = self.machine.now();
        let ended = attempt.ended().await.unwrap();
        (ended.outcome, since.until(self.machine.now()))
    }
}

#[tokio::test(start_paused = true)]
async fn time_passes_at_once() {
    let scene = Scene::open().await;
    let mut attempt = scene.start("print hello sleep 3600 exit 3");
    let (outcome, took) = scene.ended(&mut attempt).await;
    assert_eq!(outcome, exited(3));
    assert!(took >= Duration::from_secs(3600), "{took:?}");
    assert_eq!(scene.machine.attempts(), [], "nothing is left");
    let mut log = scene.host.logs(attempt.id()).read(Start::Offset(0), Streams::ALL).unwrap();
    let entries = std::iter::from_fn(|| log.next_entry().unwrap());
    assert_eq!(text(entries, Stream::Stdout), "hello\n");
}

#[tokio::test(start_paused = true)]
async fn stops_graces_and_deadlines_are_those_of_a_shim() {
    let scene = Scene::open().await;
    let mut attempt = scene.start("stubborn sleep 3600");
    while attempt.next().await != Some(Event::Started) {}
    attempt.stop(Duration::from_secs(30));
    let (outcome, took) = scene.ended(&mut attempt).await;
    assert_eq!(outcome, Outcome::Stopped);
    assert!(took >= Duration::from_secs(30) && took < Duration::from_secs(31), "{took:?}");
}

/// A stop before the start was told like one after it, so that a node that left said of tasks that had
/// never begun that it had stopped them: they failed.
#[tokio::test(start_paused = true)]
async fn what_is_stopped_before_it_starts_is_told_apart() {
    let scene = Scene::open().await;
    let mut attempt = scene.start("print hello");
    attempt.stop(Duration::from_secs(30));
    let (outcome, _) = scene.ended(&mut attempt).await;
    assert_eq!(outcome, Outcome::StoppedBeforeStart);
}

#[tokio::test(start_paused = true)]
async fn the_deadline_ends_everything() {
    let scene = Scene::open_until(|machine| machine.now() + Duration::from_secs(10)).await;
    let mut attempt = scene.start("stubborn sleep 3600");
    let (outcome, took) = scene.ended(&mut attempt).await;
    assert_eq!(outcome, Outcome::Stopped);
    assert!(took < Duration::from_secs(11), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn ends_of_all_kinds_can_be_had() {
    for (words, expected) in [
        ("signal 11", Outcome::Exited { exit: Exit::Signal(11), is_oom_killed: false }),
        ("oom", Outcome::Exited { exit: Exit::Signal(9), is_oom_killed: true }),
    ] {
        let scene = Scene::open().await;
        let mut attempt = scene.start(words);
        assert_eq!(scene.ended(&mut attempt).await.0, expected, "{words}");
    }
    for words in ["unpreparable", "unstartable", "dance"] {
        let scene = Scene::open().await;
        let mut attempt = scene.start(words);
        let (outcome, _) = scene.ended(&mut attempt).await;
        assert!(matches!(outcome, Outcome::NeverStarted { .. }), "{words}: {outcome:?}");
    }
}
