//! A daemon that is killed or stopped: the deadline is held without it, and its successor finds every
//! result and no process.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use sandbox::{Host, Kind, Spec, host::Error};
use tempfile::TempDir;

use crate::scene::{exited, open, options, processes_with, program, shell, spec, wait_for};

/// Deadlines: before the test ends, and after.
const SOON: Duration = Duration::from_secs(2);
const FAR: Duration = Duration::from_secs(1000);

/// A process that runs one attempt.
struct Daemon {
    process: Child,
    /// Held, so that the daemon can go on telling.
    _words: BufReader<ChildStdout>,
    dir: TempDir,
}

// === impl Daemon ===

impl Daemon {
    /// Returns once the daemon has told this word about its attempt.
    fn start(spec: &Spec, deadline: Duration, until: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut process = Command::new(program())
            .args(["daemon", "process"])
            .arg(dir.path().join("data"))
            .arg(deadline.as_millis().to_string())
            .arg(serde_json::to_string(spec).unwrap())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut words = BufReader::new(process.stdout.take().unwrap());
        let told = words.by_ref().lines().map_while(Result::ok).any(|word| word == until);
        assert!(told, "the daemon told that the attempt was {until}");
        Self { process, _words: words, dir }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Kills the daemon and keeps what it left.
    fn kill(mut self) -> TempDir {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.dir
    }
}

async fn await_gone(word: &str) {
    wait_for("the command to be gone", || processes_with(word).is_empty().then_some(())).await;
}

/// Waits for the shim's last word, which comes after the command is gone: whoever opens the folder
/// before kills the shim over it.
async fn await_result(dir: &Path) {
    let records = dir.join("data/records");
    wait_for("the shim to end", || {
        let mut files = std::fs::read_dir(&records).unwrap();
        let path = files.next().unwrap().unwrap().path();
        let bytes = std::fs::read(path).unwrap();
        // The result lies in the last half of the record.
        bytes[4096..].iter().any(|byte| *byte != 0).then_some(())
    })
    .await;
}

async fn reopen(dir: &Path) -> (Host, sandbox::Leftovers) {
    open(Kind::Process, dir).await
}

#[tokio::test]
async fn the_deadline_is_held_without_a_daemon() {
    let daemon = Daemon::start(&spec(&["sleep", "200001"]), SOON, "started");
    let dir = daemon.kill();
    await_gone("200001").await;
    await_result(dir.path()).await;
    let (_host, leftovers) = reopen(dir.path()).await;
    assert_eq!(leftovers.ended.len(), 1, "the shim kept that it was stopped: {leftovers:?}");
    assert_eq!(leftovers.ended[0].ended.outcome, sandbox::Outcome::Stopped);
}

#[tokio::test]
async fn the_deadline_is_held_against_a_stopped_daemon() {
    let daemon = Daemon::start(&spec(&["sleep", "200002"]), SOON, "started");
    daemon.signal(Signal::STOP);
    await_gone("200002").await;
    daemon.kill();
}

#[tokio::test]
async fn a_restart_leaves_nothing_running() {
    let script = "trap '' TERM; (trap '' TERM; sleep 200003)& sleep 200003";
    let daemon = Daemon::start(&shell(script), FAR, "started");
    let both = || (processes_with("200003").len() == 2).then_some(());
    wait_for("both to run", both).await;
    let dir = daemon.kill();
    let (host, leftovers) = reopen(dir.path()).await;
    assert_eq!(processes_with("200003"), [] as [i32; 0], "gone when it has opened");
    assert_eq!((leftovers.ended.len(), leftovers.killed.len()), (0, 1));
    host.close().await;
    let (_host, leftovers) = reopen(dir.path()).await;
    assert_eq!(leftovers, sandbox::Leftovers::default(), "and only told once");
}

#[tokio::test]
async fn a_restart_finds_the_result() {
    let daemon = Daemon::start(&shell("exit 5"), FAR, "ended");
    let dir = daemon.kill();
    for _ in 0..2 {
        let (host, leftovers) = reopen(dir.path()).await;
        assert_eq!(leftovers.ended.len(), 1, "until it is forgotten");
        assert_eq!(leftovers.ended[0].ended.outcome, exited(5));
        assert_eq!(leftovers.ended[0].note, b"of the daemon");
        host.close().await;
    }
    let (host, leftovers) = reopen(dir.path()).await;
    host.forget(leftovers.ended[0].id).await.unwrap();
    host.close().await;
    assert_eq!(reopen(dir.path()).await.1, sandbox::Leftovers::default());
}

#[tokio::test]
async fn a_result_that_nobody_heard_is_found() {
    let script = "read line < /dev/null; sleep 0.3; exit 6";
    let daemon = Daemon::start(&shell(script), FAR, "started");
    let dir = daemon.kill();
    await_result(dir.path()).await;
    let (_host, leftovers) = reopen(dir.path()).await;
    assert_eq!(leftovers.ended.len(), 1, "{leftovers:?}");
    assert_eq!(leftovers.ended[0].ended.outcome, exited(6));
}

#[tokio::test]
async fn a_directory_has_one_daemon() {
    let daemon = Daemon::start(&shell("exit 0"), FAR, "ended");
    let refused = Host::open(options(Kind::Process, daemon.dir.path())).await;
    assert!(matches!(refused, Err(Error::InUse { .. })), "{refused:?}");
    let dir = daemon.kill();
    reopen(dir.path()).await.0.close().await;
}
