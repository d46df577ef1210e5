//! What tests of this crate share: a host on a directory of its own, specs, and waiting for a level.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use sandbox::{
    Attempt, AttemptId, Boottime, Ended, Event, Exit, Host, Kind, Leftovers, Limits, Medium,
    Network, Options, Order, Outcome, Root, Spec, User,
    host::Engine,
    log::{Content, Entry, Start, Stream, Streams},
};
use tempfile::TempDir;
use tokio::time::{Instant, interval};
use uuid::Uuid;

/// More than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A host and its directory, which outlives it.
pub(crate) struct Scene {
    pub(crate) dir: TempDir,
    pub(crate) host: Host,
    begun: u32,
}

// === impl Scene ===

impl Scene {
    pub(crate) async fn open(kind: Kind) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (host, leftovers) = open(kind, dir.path()).await;
        assert_eq!(leftovers, Leftovers::default());
        Self { dir, host, begun: 0 }
    }

    pub(crate) fn start(&mut self, spec: Spec) -> Attempt {
        self.begun += 1;
        let id = AttemptId { task: Uuid::from_u128(7), number: self.begun };
        self.host.start(Order { id, spec, note: b"note".to_vec() })
    }

    /// Starts a shell script, waits until it runs.
    pub(crate) async fn running(&mut self, script: &str) -> Attempt {
        let mut attempt = self.start(shell(script));
        assert_eq!(attempt.next().await, Some(Event::Created));
        assert_eq!(attempt.next().await, Some(Event::Started));
        attempt
    }

    /// Runs a shell script to its end.
    pub(crate) async fn run(&mut self, script: &str) -> Ended {
        let mut attempt = self.start(shell(script));
        ended(&mut attempt).await
    }

    /// All that an attempt wrote to its output so far.
    pub(crate) fn output(&self, id: AttemptId) -> String {
        let mut reader = self.host.logs(id).read(Start::Offset(0), Streams::ALL).unwrap();
        let entries = std::iter::from_fn(|| reader.next_entry().unwrap());
        text(entries, Stream::Stdout)
    }
}

/// Opens a host with the test's shims and no deadline.
pub(crate) async fn open(kind: Kind, dir: &Path) -> (Host, Leftovers) {
    let opened = Host::open(options(kind, dir)).await.unwrap();
    opened.0.deadline().set(Boottime::NEVER);
    opened
}

pub(crate) fn options(kind: Kind, dir: &Path) -> Options {
    let engine = Engine::Shim { kind, program: program() };
    Options { engine, ..Options::new(dir.join("data"), Uuid::new_v4(), kind) }
}

/// The example that is a shim, a daemon and more.
pub(crate) fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps");
    let program = profile.join("examples/sandboxed");
    assert!(program.exists(), "build it with `cargo build -p sandbox --examples`");
    program
}

/// The end, within reason.
pub(crate) async fn ended(attempt: &mut Attempt) -> Ended {
    let ended = tokio::time::timeout(PATIENCE, attempt.ended()).await;
    ended.expect("the attempt ends").expect("the host is open")
}

pub(crate) fn exited(code: i32) -> Outcome {
    Outcome::Exited { exit: Exit::Code(code), is_oom_killed: false }
}

pub(crate) fn killed() -> Outcome {
    Outcome::Exited { exit: Exit::Signal(9), is_oom_killed: false }
}

pub(crate) fn shell(script: &str) -> Spec {
    spec(&["/bin/sh", "-c", script])
}

pub(crate) fn spec(argv: &[&str]) -> Spec {
    Spec {
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        workdir: PathBuf::from("/"),
        user: User { uid: 65534, gid: 65534 },
        stdin: Vec::new(),
        root: Root::HostView,
        network: Network::None,
        limits: Limits {
            cpu_weight_millis: 100,
            cpu_quota_millis: None,
            memory_bytes: 256 << 20,
            pids: 64,
            scratch_bytes: 16 << 20,
            scratch_medium: Medium::Memory,
        },
        timeout: None,
        grace: Duration::from_secs(10),
    }
}

/// What a stream gave.
pub(crate) fn text(entries: impl IntoIterator<Item = Entry>, wanted: Stream) -> String {
    let mut text = Vec::new();
    for entry in entries {
        if let Content::Data { stream, bytes } = entry.content
            && stream == wanted
        {
            text.extend_from_slice(&bytes);
        }
    }
    String::from_utf8(text).unwrap()
}

/// Polls until there is something, and fails loudly if there never is.
pub(crate) async fn wait_for<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    let mut ticks = interval(LOOK_EVERY);
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(Instant::now() < until, "waited in vain: {what}");
        ticks.tick().await;
    }
}

/// Processes whose command line has this word; tests make words of their own.
pub(crate) fn processes_with(word: &str) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        // A zombie has no command line.
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        *pid != rustix::process::getpid().as_raw_pid()
            && line.split(|byte| *byte == 0).any(|each| each == word.as_bytes())
    })
    .collect()
}
