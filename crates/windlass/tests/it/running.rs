//! Processes of the binary, and how tests speak with them.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

/// The last line of the welcome: from here on clients are served.
const UP: &str = "Ctrl-C stops it";

/// What a store says alone.
const SERVED: &str = "ready to serve client requests";

/// Longer than anything here should take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running `windlass up`, killed if a test ends without stopping it.
pub(crate) struct Running {
    child: Child,
    words: BufReader<ChildStderr>,
    pub(crate) address: String,
    pub(crate) welcome: String,
}

// === impl Running ===

impl Running {
    pub(crate) fn start(data_dir: &Path) -> Self {
        Self::spawn(&mut up(data_dir, "127.0.0.1:0"))
    }

    /// A store alone, to which nobody else writes.
    pub(crate) fn start_store(data_dir: &Path) -> Self {
        let mut command = windlass(["store", "serve", "--listen-client-urls"]);
        command.args(["http://127.0.0.1:0", "--advertise-client-urls", "http://127.0.0.1:0"]);
        command.arg("--data-dir").arg(data_dir.join("store")).stderr(Stdio::piped());
        Self::spawn_until(&mut command, SERVED, logged_address)
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self::spawn_until(command, UP, |welcome| {
            welcome.split_once("http://")?.1.split_once(char::is_whitespace)
        })
    }

    /// Starts a process and reads what it says until `ready`; `address` is followed by the rest.
    fn spawn_until(
        command: &mut Command,
        ready: &str,
        address: fn(&str) -> Option<(&str, &str)>,
    ) -> Self {
        let mut child = command.spawn().unwrap();
        let mut words = BufReader::new(child.stderr.take().unwrap());
        let mut welcome = String::new();
        while !welcome.contains(ready) {
            assert_ne!(words.read_line(&mut welcome).unwrap(), 0, "ended early: {welcome}");
        }
        let address = address(&welcome).unwrap().0.to_owned();
        Self { child, words, address, welcome }
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> String {
        post(&self.address, path, body)
    }

    /// Signals, and returns how it ended and what it said after the welcome.
    pub(crate) fn stop(mut self, signal: Signal) -> (ExitStatus, String) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let status = self.child.wait().unwrap();
        let mut last_words = String::new();
        self.words.read_to_string(&mut last_words).unwrap();
        (status, last_words)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if the process has ended, which is what is wanted.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The first address on loopback that a log tells, and what follows it.
pub(crate) fn logged_address(log: &str) -> Option<(&str, &str)> {
    let (_, told) = log.split_once("address")?;
    let told = &told[told.find("127.")?..];
    let end = told.find(|each: char| !each.is_ascii_digit() && each != '.' && each != ':')?;
    Some(told.split_at(end))
}

pub(crate) fn up(data_dir: &Path, listen: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.arg("up").arg("--data-dir").arg(data_dir).args(["--listen", listen]);
    command.arg("--socket").arg(data_dir.join("node.sock"));
    command.stderr(Stdio::piped());
    command
}

pub(crate) fn windlass<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.args(arguments);
    command
}

pub(crate) fn succeed(mut command: impl std::borrow::BorrowMut<Command>) {
    let output = command.borrow_mut().output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {words}", output.status);
}

pub(crate) fn failure(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// Asks over HTTP/1 and returns the whole answer.
pub(crate) fn post(address: &str, path: &str, body: &str) -> String {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}");
    ask(address, &head, body)
}

pub(crate) fn get(address: &str, path: &str) -> String {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}"), "")
}

/// Sends a head whose last line is still to be ended.
pub(crate) fn ask(address: &str, head: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{head}\r\nConnection: close\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Looks until there is something to see. Each look asks a process, which is
/// pause enough.
#[expect(clippy::disallowed_methods, reason = "between processes there is no other clock")]
pub(crate) fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain");
    }
}
