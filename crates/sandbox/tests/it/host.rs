//! What a host keeps and gives up besides attempts.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    time::Duration,
};

use sandbox::{AttemptId, Boottime, Host, Kind, Order, Outcome};
use uuid::Uuid;

use crate::scene::{Scene, ended, exited, open, options, shell};

#[tokio::test]
async fn a_directory_keeps_its_host_id_and_what_it_is_to_remember() {
    let scene = Scene::open(Kind::Process).await;
    let id = scene.host.host_id();
    for bytes in [b"one".to_vec(), b"two".to_vec()] {
        scene.host.remember(bytes).await.unwrap();
    }
    scene.host.close().await;
    let (host, leftovers) = open(Kind::Process, scene.dir.path()).await;
    assert_eq!((host.host_id(), leftovers.remembered), (id, Some(b"two".to_vec())));
}

/// Every user of the machine could read what commands had written, past all that guards the API.
#[tokio::test]
async fn nobody_else_can_enter_the_directory_new_or_old() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    for _ in ["new", "old"] {
        let (host, _) = open(Kind::Process, dir.path()).await;
        let mode = fs::metadata(&data).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{mode:o}");
        host.close().await;
        fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
    }
}

#[tokio::test]
async fn nothing_starts_before_a_deadline_is_set() {
    let dir = tempfile::tempdir().unwrap();
    let (host, _) = Host::open(options(Kind::Process, dir.path())).await.unwrap();
    let id = AttemptId { task: Uuid::from_u128(7), number: 1 };
    let mut attempt = host.start(Order { id, spec: shell("echo ran"), note: Vec::new() });
    assert_eq!(ended(&mut attempt).await.outcome, Outcome::StoppedBeforeStart);
    host.deadline().set(Boottime::NEVER);
    let id = AttemptId { number: 2, ..id };
    let mut attempt = host.start(Order { id, spec: shell("exit 2"), note: Vec::new() });
    assert_eq!(ended(&mut attempt).await.outcome, exited(2));
}

#[tokio::test]
async fn one_attempt_runs_once() {
    let mut scene = Scene::open(Kind::Process).await;
    let mut attempt = scene.start(shell("exit 0"));
    ended(&mut attempt).await;
    let (id, spec) = (attempt.id(), shell("echo twice"));
    let mut again = scene.host.start(Order { id, spec, note: Vec::new() });
    let end = ended(&mut again).await;
    assert!(matches!(end.outcome, Outcome::NeverStarted { .. }), "{end:?}");
    assert_eq!(scene.output(id), "", "and its log is the first one's");
}

#[tokio::test]
async fn many_attempts_run_at_once() {
    let mut scene = Scene::open(Kind::Process).await;
    let scripts = (0..50).map(|code| format!("exit {code}"));
    let mut attempts: Vec<_> = scripts.map(|script| scene.start(shell(&script))).collect();
    for (attempt, code) in attempts.iter_mut().zip(0..) {
        assert_eq!(ended(attempt).await.outcome, exited(code));
    }
}

#[tokio::test]
async fn sweeping_takes_what_is_not_wanted_not_young_and_forgotten() {
    let mut scene = Scene::open(Kind::Process).await;
    let mut attempt = scene.start(shell("echo words"));
    ended(&mut attempt).await;
    let host = &scene.host;
    assert_eq!(host.sweep(|_| false, Duration::ZERO).await.unwrap(), 0, "not forgotten yet");
    host.forget(attempt.id()).await.unwrap();
    host.forget(attempt.id()).await.unwrap();
    assert_eq!(host.sweep(|_| true, Duration::ZERO).await.unwrap(), 0, "wanted");
    let hour = Duration::from_secs(3600);
    assert_eq!(host.sweep(|_| false, hour).await.unwrap(), 0, "young");
    assert!(host.logs(attempt.id()).exists().unwrap());
    assert_eq!(host.sweep(|_| false, Duration::ZERO).await.unwrap(), 1);
    assert!(!host.logs(attempt.id()).exists().unwrap());
    let tasks = fs::read_dir(scene.dir.path().join("data/tasks")).unwrap();
    assert_eq!(tasks.count(), 0, "the task's directory goes along");
}
