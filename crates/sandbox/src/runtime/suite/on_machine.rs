//! The runtimes of real processes as subjects, with shell scripts for commands.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio as Streams},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, pause, poll},
    process::geteuid,
    stdio::{stderr, stdout},
};
use uuid::Uuid;

use super::{
    Act, Subject,
    trial::{input, spec},
};
use crate::{
    AttemptId, Boottime, User, native,
    places::Places,
    record::Record,
    runtime::{HostView, Kind, Permissions, Runtime, Site, Stdio, Wake},
};

/// A look at the runtime is due at least this often, so that a lost event shows as slowness and not as
/// a test that hangs.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Needed to find the programs of scripts.
const PATH: &str = "export PATH=/usr/bin:/bin;";

/// One kind of runtime on a directory.
#[derive(Debug)]
pub struct OnMachine {
    kind: Kind,
    site: Site,
    begun: u32,
}

// === impl OnMachine ===

impl OnMachine {
    /// # Panics
    ///
    /// If there is no such kind, or the directory cannot be used.
    #[must_use]
    pub fn new(kind: &str, dir: &Path) -> Self {
        let kind = [Kind::Native, Kind::Process].into_iter().find(|each| each.as_str() == kind);
        let data_dir = dir.join("site");
        Places::new(&data_dir).create().expect("a data directory");
        let site = Site {
            host_id: host_id(&data_dir),
            data_dir,
            roots: BTreeMap::new(),
            permissions: Permissions::default(),
            host_view: HostView::default(),
        };
        Self { kind: kind.expect("a kind of runtime"), site, begun: 0 }
    }

    /// Starts an attempt and waits to be killed. The command itself tells when it runs.
    pub(super) fn rest(&self, id: &str) {
        let id: AttemptId = id.parse().expect("an attempt");
        self.take(id);
        let streams = (stdout().try_clone_to_owned(), stderr().try_clone_to_owned());
        let (Ok(stdout), Ok(stderr)) = streams else { panic!("no streams to pass on") };
        let mut runtime = self.runtime();
        let stdio = Stdio { stdin: input(), stdout, stderr };
        runtime.prepare(id, &spec(self.argv(Act::Resist)), stdio).expect("prepare");
        runtime.start(&|| Boottime::NEVER).expect("start");
        loop {
            pause();
        }
    }

    fn record(&self, id: AttemptId) -> PathBuf {
        Places::new(&self.site.data_dir).record(id)
    }

    /// Makes this process the one that runs the attempt, until it is gone.
    fn take(&self, id: AttemptId) {
        std::mem::forget(Record::take(&self.record(id)).expect("take the record"));
    }

    fn create(&mut self) -> AttemptId {
        self.begun += 1;
        let id = AttemptId { task: self.site.host_id, number: self.begun };
        Record::create(&self.record(id), b"").expect("make the record");
        id
    }
}

impl Subject for OnMachine {
    fn runtime(&self) -> Box<dyn Runtime> {
        self.kind.open(&self.site)
    }

    fn stranger(&self) -> Box<dyn Runtime> {
        let data_dir = self.site.data_dir.join("stranger");
        self.kind.open(&Site { host_id: host_id(&data_dir), data_dir, ..self.site.clone() })
    }

    fn begin(&mut self) -> AttemptId {
        let id = self.create();
        self.take(id);
        id
    }

    fn argv(&self, act: Act) -> Vec<String> {
        let script = match act {
            Act::Speak => "echo out; echo err >&2; exit 7",
            Act::Rest => return ["sleep", "1000"].map(str::to_owned).into(),
            Act::Resist => {
                "trap 'echo term' TERM; sleep 1000 & sleep 1000 & echo ready; while :; do wait; done"
            }
            Act::LeaveChild => "(trap '' TERM HUP; sleep 1000) & exit 7",
            Act::Show => {
                r#"cat; echo "$GIVEN"; echo "${HOME-unset}"; pwd; echo "$(id -u):$(id -g)""#
            }
            Act::Nonsense => return vec!["/no/such/program".to_owned()],
        };
        ["/bin/sh".to_owned(), "-c".to_owned(), format!("{PATH} {script}")].into()
    }

    fn user(&self, asked: User) -> User {
        // Who is not root is always himself.
        if geteuid().is_root() {
            return asked;
        }
        User { uid: geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
    }

    fn wait(&self, runtime: &dyn Runtime) {
        let (ends, timeout) = match runtime.wake() {
            Wake::Readable(ends) => (ends, LOOK_EVERY),
            Wake::At(at) => (Vec::new(), Boottime::now().until(at).min(LOOK_EVERY)),
        };
        let mut fds: Vec<PollFd<'_>> =
            ends.iter().map(|end| PollFd::from_borrowed_fd(*end, PollFlags::IN)).collect();
        let timeout = Timespec {
            tv_sec: timeout.as_secs().cast_signed(),
            tv_nsec: i64::from(timeout.subsec_nanos()),
        };
        poll(&mut fds, Some(&timeout)).expect("poll");
    }

    fn abandon(&mut self) -> AttemptId {
        let id = self.create();
        let dir = self.site.data_dir.parent().expect("the site lies in a directory");
        let mut process = Command::new("/proc/self/exe")
            .args(["suite", "abandon", self.kind.as_str()])
            .arg(dir)
            .arg(id.to_string())
            .stdout(Streams::piped())
            .spawn()
            .expect("a process to kill");
        let mut said = String::new();
        let stdout = process.stdout.take().expect("its output");
        BufReader::new(stdout).read_line(&mut said).expect("read its output");
        assert_eq!(said, "ready\n");
        process.kill().expect("kill it");
        process.wait().expect("reap it");
        id
    }
}

impl Drop for OnMachine {
    fn drop(&mut self) {
        // While the test fails already, what is left is the smaller trouble.
        if self.kind == Kind::Native && !std::thread::panicking() {
            native::retire(&self.site).expect("remove the empty groups");
        }
    }
}

/// Sites of different directories are different sites.
fn host_id(data_dir: &Path) -> Uuid {
    let path = data_dir.as_os_str().as_encoded_bytes();
    let halves = [crc32c::crc32c(path), crc32c::crc32c_append(1, path)];
    Uuid::from_u64_pair(halves[0].into(), halves[1].into())
}
