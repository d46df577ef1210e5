//! What commands write, as somebody sees it who reads while they run.

use std::{path::Path, process::Command, time::Duration};

use sandbox::{
    AttemptId, Kind, Order,
    log::{Content, Entry, Error, Follower, Start, Stream, Streams},
};
use uuid::Uuid;

use crate::native::alone::is_root;
use crate::scene::{PATIENCE, Scene, ended, exited, open, shell, text};

async fn next(log: &mut Follower) -> Result<Option<Entry>, Error> {
    tokio::time::timeout(PATIENCE, log.next()).await.expect("the log goes on")
}

async fn to_the_end(log: &mut Follower) -> Vec<Entry> {
    let mut entries = Vec::new();
    while let Some(entry) = next(log).await.unwrap() {
        entries.push(entry);
    }
    assert_eq!(entries.last().map(|entry| &entry.content), Some(&Content::End));
    entries
}

#[tokio::test]
async fn a_follower_sees_output_while_the_command_runs_and_then_the_end() {
    let mut scene = Scene::open(Kind::Process).await;
    let id = AttemptId { task: Uuid::from_u128(7), number: 1 };
    let mut log = scene.host.logs(id).follow(Start::Offset(0), Streams::ALL);
    let early = tokio::time::timeout(Duration::from_millis(30), log.next()).await;
    assert!(early.is_err(), "it may begin before the attempt does, and waits");
    let mut attempt = scene.running("echo one; exec cat").await;
    assert_eq!(attempt.id(), id);
    let first = next(&mut log).await.unwrap().unwrap();
    assert_eq!(text([first], Stream::Stdout), "one\n");
    let rest = to_the_end(&mut log).await;
    assert_eq!(rest.len(), 1, "only the end: {rest:?}");
    assert_eq!(ended(&mut attempt).await.outcome, exited(0));
    assert_eq!(next(&mut log).await.unwrap(), None);
}

/// A task that was deleted and submitted again under its id was shown what it had written the first time.
#[tokio::test]
async fn what_an_earlier_attempt_of_the_same_name_wrote_is_not_followed() {
    let mut scene = Scene::open(Kind::Process).await;
    scene.run("echo earlier").await;
    let id = AttemptId { task: Uuid::from_u128(7), number: 1 };
    scene.host.forget(id).await.unwrap();
    let mut log = scene.host.logs(id).follow_current(Start::Offset(0), Streams::ALL);
    let early = tokio::time::timeout(Duration::from_millis(30), log.next()).await;
    assert!(early.is_err(), "it is not that attempt's log: {early:?}");
    let order = Order { id, spec: shell("echo later"), note: Vec::new() };
    let mut attempt = scene.host.start(order);
    let entries = to_the_end(&mut log).await;
    assert_eq!(text(entries, Stream::Stdout), "later\n");
    assert_eq!(ended(&mut attempt).await.outcome, exited(0));
}

#[tokio::test]
async fn output_is_bytes_and_streams_stay_apart() {
    let mut scene = Scene::open(Kind::Process).await;
    let script = r"printf '\377\000\n'; printf 'oops' >&2";
    let mut attempt = scene.start(shell(script));
    ended(&mut attempt).await;
    let streams = Streams { stdout: true, stderr: false };
    let mut log = scene.host.logs(attempt.id()).follow(Start::Offset(0), streams);
    let entries = to_the_end(&mut log).await;
    let Content::Data { stream: Stream::Stdout, bytes } = &entries[0].content else { panic!() };
    assert_eq!((&bytes[..], entries.len()), (&b"\xff\x00\n"[..], 2));
}

/// Far more than is kept: the command is not held up, and its reader learns what it missed.
#[tokio::test]
async fn a_flood_is_dropped_from_the_front() {
    let mut scene = Scene::open(Kind::Process).await;
    let mut attempt = scene.start(shell("head -c 150000000 /dev/zero"));
    let end = ended(&mut attempt).await;
    assert_eq!((end.outcome, end.log.bytes), (exited(0), 150_000_000));
    let mut log = scene.host.logs(attempt.id()).follow(Start::Offset(0), Streams::ALL);
    let entries = to_the_end(&mut log).await;
    let Content::Gap { bytes } = entries[0].content else { panic!("{:?}", entries[0]) };
    assert!((50_000_000..70_000_000).contains(&bytes), "{bytes}");
    assert_eq!(entries.last().unwrap().offset, 150_000_000);
}

#[tokio::test]
async fn a_full_disk_costs_output_and_nothing_else() {
    if !is_root("a_full_disk_costs_output_and_nothing_else") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let _disk = SmallDisk::mount(dir.path());
    let (host, _) = open(Kind::Process, dir.path()).await;
    let id = AttemptId { task: Uuid::from_u128(7), number: 1 };
    let spec = shell("head -c 20000000 /dev/zero; echo last; exit 3");
    let mut attempt = host.start(Order { id, spec, note: Vec::new() });
    let end = ended(&mut attempt).await;
    assert_eq!(end.outcome, exited(3));
    assert!(end.log.dropped_bytes > 0, "{end:?}");
    let mut log = host.logs(id).follow(Start::Offset(0), Streams::ALL);
    let entries = to_the_end(&mut log).await;
    let is_gap = |entry: &Entry| matches!(entry.content, Content::Gap { .. });
    assert!(entries.iter().any(is_gap), "what was refused is a gap");
    assert_eq!(entries.last().unwrap().offset, 20_000_005);
    drop(log);
    host.close().await;
}

/// A file system with room for less than one log file.
struct SmallDisk<'a>(&'a Path);

// === impl SmallDisk ===

impl<'a> SmallDisk<'a> {
    fn mount(dir: &'a Path) -> Self {
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-t", "tmpfs", "-o", "size=2m", "none"]).arg(dir).status();
        assert!(mounted.unwrap().success(), "needs root");
        Self(dir)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.0).status();
        assert!(unmounted.unwrap().success(), "what was mounted can be unmounted");
    }
}
