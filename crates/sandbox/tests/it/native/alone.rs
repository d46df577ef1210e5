//! A container changes the process that makes it, and that process must have one thread: here each
//! is made in a fork of the test.

use std::{
    env,
    fs::File,
    io::{Read, Write},
    os::fd::{FromRawFd, IntoRawFd, OwnedFd},
    panic::{self, AssertUnwindSafe},
};

use rustix::{
    pipe::pipe,
    process::{Pid, WaitOptions, geteuid, waitpid},
};

/// Says that a test needs root and there is none.
pub(crate) fn is_root(name: &str) -> bool {
    let is_root = geteuid().is_root();
    assert!(is_root || env::var_os("CI").is_none(), "{name}: not run: containers need root");
    if !is_root {
        let mut stderr = std::io::stderr();
        writeln!(stderr, "{name}: skipped: containers need root").unwrap();
    }
    is_root
}

/// Runs `body` in a process of its own and panics as it did.
pub(crate) fn alone(name: &str, body: impl FnOnce()) {
    if !is_root(name) {
        return;
    }
    let (mut words, pid) = fork(body);
    let mut said = String::new();
    words.read_to_string(&mut said).unwrap();
    let (_, status) = waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap();
    assert!(status.exit_status() == Some(0), "{name}: {said}");
}

/// Starts `body` in a process of its own; what it says when it panics can be read.
pub(crate) fn fork(body: impl FnOnce()) -> (File, Pid) {
    let (reader, writer) = pipe().unwrap();
    // SAFETY: the child runs `body` on its only thread and ends without returning.
    match unsafe { libc::fork() } {
        0 => {
            drop(reader);
            end_with(writer, body)
        }
        pid => (File::from(reader), Pid::from_raw(pid).expect("fork succeeds")),
    }
}

fn end_with(words: OwnedFd, body: impl FnOnce()) -> ! {
    let words = words.into_raw_fd();
    panic::set_hook(Box::new(move |info| {
        // SAFETY: the descriptor stays open until this process ends, right after.
        let mut words = unsafe { File::from_raw_fd(words) };
        drop(writeln!(words, "{info}"));
    }));
    let result = panic::catch_unwind(AssertUnwindSafe(body));
    // SAFETY: ends the process without running what belongs to the test's own.
    unsafe { libc::_exit(i32::from(result.is_err())) }
}
