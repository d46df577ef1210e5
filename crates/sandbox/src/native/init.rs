//! Process 1 of a container.
//!
//! The kernel gives process 1 no default actions: a program in its place would ignore TERM unless it
//! had a handler, and would have to reap what others leave. So a minimal init stands there, forwards
//! signals and reaps, and the command is its child. When the command ends init ends, and the kernel
//! then kills whatever else is in the namespace.
//!
//! It is a fork of the shim that never executes anything, so it is made unreadable for the command:
//! not dumpable, and without any descriptor of the shim.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    os::{
        fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    process::Command,
};

use libcontainer::{
    oci_spec::runtime::Spec as OciSpec,
    workload::{Executor, ExecutorError, ExecutorSetEnvsError, ExecutorValidationError},
};
use nix::sys::signal::{SigSet, SigmaskHow, Signal as NixSignal, sigprocmask};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{
        DumpableBehavior, Pid, Signal, WaitOptions, kill_process, set_dumpable_behavior,
        set_parent_process_death_signal, wait,
    },
};

use super::report::Report;
use crate::Exit;

/// Where init keeps the pipe to the shim; everything above is closed.
const REPORT_FD: RawFd = 3;

/// The error number of a command that failed for something that has none.
const EXEC_FAILED: i32 = libc::EINVAL;

/// What init runs. Cloned by the container runtime, hence plain data.
#[derive(Clone, Debug)]
pub(super) struct Init {
    pub(super) argv: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    /// The writing end of the pipe of reports, as the shim has it open.
    pub(super) reports: RawFd,
    /// The shim itself, held by it before there was an init: a number could mean another process.
    pub(super) shim: RawFd,
}

// === impl Init ===

impl Executor for Init {
    /// Runs when namespaces, root and user are final and the shim has not yet said to go on.
    fn validate(&self, _spec: &OciSpec) -> Result<(), ExecutorValidationError> {
        // From here on the container dies with its shim, even with one that was killed. Set any
        // earlier, the change of user would have undone it.
        self.bind_to_shim()
            .map_err(|error| ExecutorValidationError::ArgValidationError(error.to_string()))
    }

    /// The command's environment is given to it directly; init needs none.
    fn setup_envs(&self, _envs: HashMap<String, String>) -> Result<(), ExecutorSetEnvsError> {
        Ok(())
    }

    /// Runs as process 1 once the shim says so, and never returns.
    fn exec(&self, _spec: &OciSpec) -> Result<(), ExecutorError> {
        let result = self.run();
        // SAFETY: ends the process without running what the shim registered for its own end.
        unsafe { libc::_exit(i32::from(result.is_err())) }
    }
}

impl Init {
    /// A shim that died before it was asked for sends nothing any more: hence the look behind.
    fn bind_to_shim(&self) -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // SAFETY: inherited open, and closed only by `run`, later.
        let shim = unsafe { BorrowedFd::borrow_raw(self.shim) };
        let mut fds = [PollFd::from_borrowed_fd(shim, PollFlags::IN)];
        match poll(&mut fds, Some(&Timespec::default()))? {
            0 => Ok(()),
            _ => Err(io::Error::other("the shim is gone")),
        }
    }

    fn run(&self) -> io::Result<()> {
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        let reports = keep_only(self.reports)?;
        // Blocked before the command exists, so that no TERM is lost: one that comes early waits.
        let signals = SigSet::all();
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&signals), None)?;
        match self.spawn() {
            Ok(command) => {
                close_streams()?;
                Report::Started.send(reports.as_fd())?;
                attend(command, &signals, reports.as_fd())
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or(EXEC_FAILED);
                Report::NotExecuted(errno).send(reports.as_fd())
            }
        }
    }

    fn spawn(&self) -> io::Result<Pid> {
        let (program, args) = self.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(args).env_clear().envs(&self.env);
        // SAFETY: both are single system calls, and this process has one thread.
        unsafe { command.pre_exec(begin_alone) };
        let child = command.spawn()?;
        Pid::from_raw(child.id().cast_signed()).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// In the command's process: a session of its own, and no signal blocked.
fn begin_alone() -> io::Result<()> {
    rustix::process::setsid()?;
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
    Ok(())
}

/// Forwards signals and reaps until the command has ended, and reports how.
fn attend(command: Pid, signals: &SigSet, reports: BorrowedFd<'_>) -> io::Result<()> {
    loop {
        match signals.wait() {
            Ok(NixSignal::SIGCHLD) => {
                if let Some(exit) = reap(command)? {
                    return Report::Ended(exit).send(reports);
                }
            }
            Ok(signal) => forward(command, signal)?,
            // A real-time signal: nobody of ours sends one.
            Err(nix::errno::Errno::EINVAL | nix::errno::Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Reaps all that have ended; how the command did, if it is among them.
fn reap(command: Pid) -> io::Result<Option<Exit>> {
    while let Some((pid, status)) = wait(WaitOptions::NOHANG)? {
        if pid == command {
            let code = status.exit_status().map(Exit::Code);
            return Ok(code.or_else(|| status.terminating_signal().map(Exit::Signal)));
        }
    }
    Ok(None)
}

fn forward(command: Pid, signal: NixSignal) -> io::Result<()> {
    let Some(signal) = Signal::from_named_raw(signal as i32) else { return Ok(()) };
    match kill_process(command, signal) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Closes everything but the streams and the pipe of reports.
fn keep_only(reports: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the descriptor was inherited open and nothing else in this process owns it.
    let inherited = unsafe { OwnedFd::from_raw_fd(reports) };
    if reports != REPORT_FD {
        // SAFETY: whatever lies at that number belongs to the shim's code, which never runs here.
        if unsafe { libc::dup3(reports, REPORT_FD, libc::O_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    std::mem::forget(inherited);
    let above = u32::try_from(REPORT_FD + 1).expect("a small positive number");
    close_range(above, u32::MAX)?;
    // SAFETY: the one descriptor just kept.
    Ok(unsafe { OwnedFd::from_raw_fd(REPORT_FD) })
}

/// The streams are the command's: as long as init held them too, no reader would see their end.
fn close_streams() -> io::Result<()> {
    close_range(0, 2)
}

fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: closes descriptors that no value of this process uses any more.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
