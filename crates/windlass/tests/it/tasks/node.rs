//! Running `windlass node`, and commands that ask it.

use std::{
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};

const WINDLASS: &str = env!("CARGO_BIN_EXE_windlass");

/// What a node says once tasks can be submitted.
const READY: &str = "ready for tasks";

/// A running node, killed if a test ends without stopping it.
pub(crate) struct Node {
    child: Child,
    words: BufReader<ChildStderr>,
    /// All it said until it was ready.
    pub(crate) log: String,
    /// What `-N` is to be.
    address: String,
}

/// How a command ended and what it printed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

// === impl Node ===

impl Node {
    /// A node for this machine alone, on plain processes.
    pub(crate) fn start(folder: &Path) -> Self {
        let socket = folder.join("node.sock");
        let mut command = node(&folder.join("data"));
        command.arg("--socket").arg(&socket).args(["--name", "node1", "--runtime", "process"]);
        Self::spawn(&mut command, format!("unix://{}", socket.display()))
    }

    pub(crate) fn spawn(command: &mut Command, address: String) -> Self {
        let mut child = command.spawn().unwrap();
        let mut words = BufReader::new(child.stderr.take().unwrap());
        let mut log = String::new();
        while !log.contains(READY) {
            assert_ne!(words.read_line(&mut log).unwrap(), 0, "ended early: {log}");
        }
        Self { child, words, log, address }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// A command that asks this node.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(WINDLASS);
        command.args(words).env("WINDLASS_ENDPOINT", &self.address).stdin(Stdio::null());
        command
    }

    pub(crate) fn ask(&self, words: &[&str]) -> Ended {
        ended(&mut self.command(words))
    }

    /// Asks, and takes the answer as JSON.
    pub(crate) fn json(&self, words: &[&str]) -> serde_json::Value {
        let ended = self.ask(&[words, &["-o", "json"]].concat());
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
    }

    /// Submits and leaves; the id.
    pub(crate) fn submit(&self, words: &[&str]) -> String {
        let ended = self.ask(&[&["run", "--detach"], words].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout.trim().to_owned()
    }

    /// Asks it to stop, and returns what it said after it was ready.
    pub(crate) fn stop(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let mut last_words = String::new();
        self.words.read_to_string(&mut last_words).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {last_words}");
        last_words
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Fails if the process has ended, which is what is wanted.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(crate) fn node(data_dir: &Path) -> Command {
    let mut command = Command::new(WINDLASS);
    command.arg("node").arg("--data-dir").arg(data_dir).args(["--log-format", "console"]);
    command.stderr(Stdio::piped());
    command
}

pub(crate) fn ended(command: &mut Command) -> Ended {
    let Output { status, stdout, stderr } = command.output().unwrap();
    Ended {
        code: status.code(),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

pub(crate) fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    (folder, path)
}
