//! One attempt under trial: a runtime, and the other ends of the command's streams.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Write},
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pipe::{PipeFlags, pipe_with},
};

use super::{Act, Subject};
use crate::{
    AttemptId, Boottime, Exit, Limits, Medium, Network, Root, Runtime, Spec, User,
    runtime::{Error, Stdio},
};

/// More than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) const USER: User = User { uid: 65534, gid: 65534 };
pub(super) const INPUT: &[u8] = b"input\n";
pub(super) const WORKDIR: &str = "/usr";

pub(super) struct Trial<'a, S> {
    pub(super) subject: &'a mut S,
    pub(super) id: AttemptId,
    pub(super) runtime: Box<dyn Runtime>,
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
}

/// What a command writes.
pub(super) struct Stream(File);

// === impl Trial ===

impl<'a, S: Subject> Trial<'a, S> {
    /// A prepared attempt.
    pub(super) fn prepare(subject: &'a mut S, act: Act) -> (Self, Result<(), Error>) {
        let id = subject.begin();
        let spec = spec(subject.argv(act));
        let mut runtime = subject.runtime();
        let (stdout, command_stdout) = pipe();
        let (stderr, command_stderr) = pipe();
        let stdio = Stdio { stdin: input(), stdout: command_stdout, stderr: command_stderr };
        let prepared = runtime.prepare(id, &spec, stdio);
        let (stdout, stderr) = (Stream(stdout.into()), Stream(stderr.into()));
        (Self { subject, id, runtime, stdout, stderr }, prepared)
    }

    /// A command that runs.
    pub(super) fn start(subject: &'a mut S, act: Act) -> Self {
        let (mut trial, prepared) = Self::prepare(subject, act);
        prepared.expect("prepare");
        trial.runtime.start(&|| Boottime::NEVER).expect("start");
        trial
    }

    /// Waits for the end.
    pub(super) fn exit(&mut self) -> Exit {
        let until = Boottime::now() + PATIENCE;
        loop {
            if let Some(exit) = self.runtime.exit().expect("exit") {
                return exit;
            }
            assert!(Boottime::now() < until, "the attempt does not end");
            self.subject.wait(self.runtime.as_ref());
        }
    }

    pub(super) fn clean_up(&mut self) {
        self.runtime.cleanup(self.id).expect("cleanup");
    }

    /// Whether somebody else would find something of it.
    pub(super) fn is_orphan(&self) -> bool {
        self.subject.runtime().list_orphans().expect("orphans").contains(&self.id)
    }
}

// === impl Stream ===

impl Stream {
    /// The next line, without its end.
    pub(super) fn line(&mut self) -> String {
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            await_readable(&self.0);
            let size = self.0.read(&mut byte).expect("read a stream");
            assert_ne!(size, 0, "the stream ended after {:?}", String::from_utf8_lossy(&line));
            match byte {
                [b'\n'] => return String::from_utf8(line).expect("text"),
                [byte] => line.push(byte),
            }
        }
    }

    /// Everything up to its end, which must come.
    pub(super) fn rest(&mut self) -> String {
        let mut text = Vec::new();
        loop {
            let mut piece = [0; 4096];
            await_readable(&self.0);
            match self.0.read(&mut piece).expect("read a stream") {
                0 => return String::from_utf8(text).expect("text"),
                size => text.extend_from_slice(&piece[..size]),
            }
        }
    }
}

fn await_readable(file: &File) {
    let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    let mut fds = [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN)];
    assert_ne!(poll(&mut fds, Some(&patience)).expect("poll"), 0, "the stream says nothing");
}

/// What to run, with nothing unusual about it.
pub(super) fn spec(argv: Vec<String>) -> Spec {
    Spec {
        argv,
        env: BTreeMap::from([("GIVEN".to_owned(), "a value".to_owned())]),
        workdir: PathBuf::from(WORKDIR),
        user: USER,
        stdin: INPUT.to_vec(),
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
        grace: Duration::from_secs(1),
    }
}

fn pipe() -> (OwnedFd, OwnedFd) {
    pipe_with(PipeFlags::CLOEXEC).expect("a pipe")
}

/// A command's input: what it is to be given, and then the end.
pub(super) fn input() -> OwnedFd {
    let (read, write) = pipe();
    File::from(write).write_all(INPUT).expect("write the input");
    read
}
