//! A shim that is killed or stopped leaves nothing behind: the daemon does its work.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sandbox::{
    Event, Kind, Outcome,
    log::{Content, Start, Streams},
};

use crate::scene::{Scene, ended, exited, killed, open, processes_with, shell, wait_for};

fn send(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// The shim of the one attempt that runs `sleep WORD`.
async fn shim_of(word: &str) -> i32 {
    parent(wait_for("the command", || processes_with(word).first().copied()).await)
}

fn parent(pid: i32) -> i32 {
    stat(pid).split(' ').nth(1).unwrap().parse().unwrap()
}

/// Gone but for the number, which its parent has not taken back yet.
fn is_dead(pid: i32) -> bool {
    stat(pid).starts_with('Z')
}

/// What the kernel tells of a process, from its state on.
fn stat(pid: i32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.to_owned()
}

#[tokio::test]
async fn a_killed_shim_takes_its_command_along() {
    let mut scene = Scene::open(Kind::Process).await;
    let mut attempt = scene.start(shell("echo before; exec sleep 100001"));
    let shim = shim_of("100001").await;
    assert_eq!(attempt.next().await, Some(Event::Created));
    assert_eq!(attempt.next().await, Some(Event::Started));
    let mut log = scene.host.logs(attempt.id()).follow(Start::Offset(0), Streams::ALL);
    // What lies in the pipe when the shim dies is lost with it.
    let mut contents = vec![log.next().await.unwrap().expect("what it said").content];
    send(shim, Signal::KILL);
    assert_eq!(ended(&mut attempt).await.outcome, killed());
    assert_eq!(processes_with("100001"), [] as [i32; 0], "gone before it is told");
    while let Some(entry) = log.next().await.unwrap() {
        contents.push(entry.content);
    }
    assert_eq!(contents.last(), Some(&Content::End), "the log ends too: {contents:?}");
    assert_eq!(scene.output(attempt.id()), "before\n");
}

#[tokio::test]
async fn a_killed_shims_end_is_kept_too() {
    let mut scene = Scene::open(Kind::Process).await;
    let mut attempt = scene.start(shell("exec sleep 100002"));
    send(shim_of("100002").await, Signal::KILL);
    let end = ended(&mut attempt).await;
    let id = attempt.id();
    scene.host.close().await;
    let (host, leftovers) = open(Kind::Process, scene.dir.path()).await;
    assert_eq!(leftovers.ended.len(), 1);
    assert_eq!((leftovers.ended[0].id, &leftovers.ended[0].ended), (id, &end));
    assert_eq!(leftovers.ended[0].note, b"note");
    host.close().await;
}

#[tokio::test]
async fn a_stopped_shim_does_not_keep_its_command_alive() {
    let mut scene = Scene::open(Kind::Process).await;
    let mut attempt = scene.start(shell("exec sleep 100003"));
    send(shim_of("100003").await, Signal::STOP);
    attempt.stop(Duration::ZERO);
    assert_eq!(ended(&mut attempt).await.outcome, Outcome::Stopped);
    assert_eq!(processes_with("100003"), [] as [i32; 0]);
}

#[tokio::test]
async fn shims_outlive_their_nursery_and_it_is_replaced() {
    let mut scene = Scene::open(Kind::Process).await;
    let mut attempt = scene.start(shell("exec sleep 100004"));
    let nursery = parent(shim_of("100004").await);
    send(nursery, Signal::KILL);
    // What is handed to it before it is gone is lost with it.
    wait_for("its end", || is_dead(nursery).then_some(())).await;
    assert_eq!(scene.run("exit 8").await.outcome, exited(8), "another one is there");
    assert_eq!(processes_with("100004").len(), 1, "what it bore lives on");
    attempt.stop(Duration::ZERO);
    assert_eq!(ended(&mut attempt).await.outcome, Outcome::Stopped);
}

/// A service manager that stops a node tells all of its processes to end. Shims did, and with them their
/// commands, whose end by KILL was then recorded as their own.
#[tokio::test]
async fn what_tells_a_whole_service_to_end_is_not_for_shims() {
    let mut scene = Scene::open(Kind::Process).await;
    let mut attempt = scene.start(shell("grep SigBlk /proc/self/status; sleep 100006; exit 6"));
    let sleep = wait_for("the command", || processes_with("100006").first().copied()).await;
    let shim = parent(parent(sleep));
    for process in [shim, parent(shim)] {
        for signal in [Signal::HUP, Signal::INT, Signal::TERM] {
            send(process, signal);
        }
    }
    send(sleep, Signal::KILL);
    assert_eq!(ended(&mut attempt).await.outcome, exited(6));
    assert_eq!(scene.output(attempt.id()), "SigBlk:\t0000000000000000\n", "its command hears all");
}

/// Whoever waits for a shim that does not come would wait for ever, and keep what is reserved for it.
#[tokio::test]
async fn a_nursery_that_stands_still_is_replaced() {
    let mut scene = Scene::open(Kind::Process).await;
    let mut attempt = scene.start(shell("exec sleep 100005"));
    let nursery = parent(shim_of("100005").await);
    send(nursery, Signal::STOP);
    let mut waiting = scene.start(shell("exit 0"));
    let Outcome::NeverStarted { reason } = ended(&mut waiting).await.outcome else {
        panic!("a nursery that stands still bore a shim")
    };
    assert!(reason.contains("before the command began"), "{reason}");
    assert_eq!(scene.run("exit 9").await.outcome, exited(9), "another one is there");
    assert_eq!(processes_with("100005").len(), 1, "what it bore lives on");
    attempt.stop(Duration::ZERO);
    assert_eq!(ended(&mut attempt).await.outcome, Outcome::Stopped);
}
