//! One machine of a test: its site, a command to run there, and what came of it.

use std::{collections::BTreeMap, fs::File, io::Read, os::fd::OwnedFd, path::Path};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pipe::pipe,
};
use sandbox::{
    AttemptId, Boottime, Exit, Root, Runtime, Site, Spec, User,
    native::{self, Native},
    runtime::{HostView, Permissions, Stats, Stdio, Wake},
};
use tempfile::TempDir;
use uuid::Uuid;

use crate::scene::shell;

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

/// A site in a directory of its own.
pub(crate) struct Scene {
    pub(crate) site: Site,
    _dir: TempDir,
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) exit: Exit,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) stats: Stats,
}

/// A prepared attempt, and our ends of its streams.
pub(crate) struct Attempt {
    pub(crate) id: AttemptId,
    pub(crate) runtime: Native,
    stdout: File,
    stderr: File,
}

// === impl Scene ===

impl Scene {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let site = Site {
            host_id: Uuid::new_v4(),
            data_dir: dir.path().to_owned(),
            roots: BTreeMap::new(),
            permissions: Permissions::default(),
            host_view: HostView::default(),
        };
        Self { site, _dir: dir }
    }

    /// A root with a shell and some programs in it, called `small`.
    pub(crate) fn with_small_root(mut self) -> Self {
        let root = self.site.data_dir.join("small");
        for program in ["sh", "cat", "grep", "ls", "id", "sleep", "touch"] {
            copy_with_libraries(program, &root);
        }
        self.site.roots.insert("small".to_owned(), root);
        self
    }

    pub(crate) fn prepare(&self, spec: &Spec) -> Result<Attempt, String> {
        let id = AttemptId { task: Uuid::new_v4(), number: 1 };
        let mut runtime = Native::new(&self.site);
        let (stdout, out) = pipe().unwrap();
        let (stderr, err) = pipe().unwrap();
        let stdio = Stdio { stdin: input(&spec.stdin), stdout: out, stderr: err };
        match runtime.prepare(id, spec, stdio) {
            Ok(()) => Ok(Attempt { id, runtime, stdout: stdout.into(), stderr: stderr.into() }),
            Err(error) => {
                runtime.cleanup(id).unwrap();
                Err(chain(&error))
            }
        }
    }

    pub(crate) fn start(&self, spec: &Spec) -> Attempt {
        let mut attempt = self.prepare(spec).unwrap();
        attempt.runtime.start(&|| Boottime::NEVER).map_err(|error| chain(&error)).unwrap();
        attempt
    }

    pub(crate) fn run(&self, spec: &Spec) -> Ran {
        self.start(spec).end()
    }

    /// Runs a line of shell, and answers what it printed.
    pub(crate) fn shell(&self, line: &str) -> Ran {
        self.run(&shell(line))
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        native::retire(&self.site).unwrap();
    }
}

// === impl Attempt ===

impl Attempt {
    /// Waits for the end, takes what was said, and cleans up.
    pub(crate) fn end(mut self) -> Ran {
        let exit = self.wait();
        let stats = self.runtime.stats().unwrap();
        let [mut stdout, mut stderr] = [String::new(), String::new()];
        self.stdout.read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut stderr).unwrap();
        self.runtime.cleanup(self.id).map_err(|error| chain(&error)).unwrap();
        Ran { exit, stdout, stderr, stats }
    }

    pub(crate) fn wait(&mut self) -> Exit {
        loop {
            if let Some(exit) = self.runtime.exit().unwrap() {
                return exit;
            }
            let Wake::Readable(ends) = self.runtime.wake() else { panic!("nothing to wait for") };
            let mut fds: Vec<PollFd<'_>> =
                ends.iter().map(|end| PollFd::from_borrowed_fd(*end, PollFlags::IN)).collect();
            let ready = poll(&mut fds, Some(&PATIENCE)).unwrap();
            assert_eq!(ready, 1, "the attempt does not end");
        }
    }

    /// The next bytes the command prints.
    pub(crate) fn hear(&mut self) -> String {
        let mut bytes = [0; 4096];
        let read = self.stdout.read(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }
}

pub(crate) fn in_small_root(spec: Spec, uid: u32) -> Spec {
    Spec { root: Root::Named { name: "small".to_owned() }, user: User { uid, gid: uid }, ..spec }
}

pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

fn input(bytes: &[u8]) -> OwnedFd {
    let (reader, writer) = pipe().unwrap();
    rustix::io::write(&writer, bytes).unwrap();
    reader
}

fn copy_with_libraries(program: &str, root: &Path) {
    let path = Path::new("/usr/bin").join(program).canonicalize().unwrap();
    let listed = std::process::Command::new("ldd").arg(&path).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let libraries = listed.split_whitespace().filter(|word| word.starts_with('/'));
    for library in libraries {
        copy(Path::new(library), &root.join(library.trim_start_matches('/')));
    }
    copy(&path, &root.join("bin").join(program));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::copy(from, to).unwrap();
}
