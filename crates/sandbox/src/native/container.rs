//! One container, from its description to the end of its last process.

use std::{
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use libcontainer::{
    container::{Container as Oci, builder::ContainerBuilder},
    error::LibcontainerError,
    syscall::syscall::SyscallType,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::{Errno, retry_on_intr},
    pipe::{PipeFlags, pipe_with},
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, getpid, pidfd_open, pidfd_send_signal, waitpid,
    },
};

use super::{
    bundle,
    init::Init,
    report::Report,
    stage::{self, Stage},
};
use crate::{AttemptId, Boottime, Exit, Spec, cgroup::Group, runtime::Stdio};

/// How long executing a command may take: reading its file, from a slow disk at worst. A file system
/// that hangs must not keep the shim for ever.
const START_MAX: Duration = Duration::from_secs(3);
/// How long a killed init may take to be gone. One that is held by the kernel takes longer; the cleanup
/// goes on killing it.
const KILL_MAX: Duration = Duration::from_millis(100);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot make the pipe to the container's init")]
    Pipe(#[source] io::Error),
    #[error("cannot describe the container")]
    Describe(#[source] serde_json::Error),
    #[error("cannot write the container's description")]
    Bundle(#[source] stage::Error),
    #[error("cannot create the container")]
    Create(#[source] Box<LibcontainerError>),
    #[error("the created container has no process")]
    NoInit,
    #[error("cannot hold on to a process")]
    Hold(#[source] io::Error),
    #[error("cannot tell the container's init to begin")]
    Begin(#[source] Box<LibcontainerError>),
    #[error("cannot hear from the container's init")]
    Hear(#[source] io::Error),
    #[error("the command was not executed within {START_MAX:?}, or before the deadline")]
    TooSlow,
    #[error("the container's init ended before it executed the command")]
    InitEnded,
    #[error("cannot execute {program:?}")]
    Execute { program: String, source: io::Error },
    #[error("cannot signal the container's init")]
    Signal(#[source] io::Error),
    #[error("cannot wait for the container's init")]
    Wait(#[source] io::Error),
}

/// A container whose init waits, runs the command, or has ended.
pub(super) struct Container {
    oci: Oci,
    program: String,
    init: Pid,
    /// Readable once init, and with it every process of the container, is gone.
    pidfd: OwnedFd,
    reports: OwnedFd,
    exit: Option<Exit>,
}

// === impl Container ===

impl Container {
    /// Creates the container with everything but the command. Its root is ready at the stage.
    pub(super) fn create(
        id: AttemptId,
        spec: &Spec,
        stdio: Stdio,
        stage: &Stage,
        group: &Group,
    ) -> Result<Self, Error> {
        let description = bundle::describe(id, spec, &stage.merged(), group.path());
        let description = serde_json::to_vec(&description).map_err(Error::Describe)?;
        stage::write(&stage.bundle().join("config.json"), &description, 0o600)
            .map_err(Error::Bundle)?;
        let (reports, sender) =
            pipe_with(PipeFlags::CLOEXEC).map_err(|errno| Error::Pipe(errno.into()))?;
        let shim = hold(getpid())?;
        let init = Init {
            argv: spec.argv.clone(),
            env: spec.env.clone(),
            reports: sender.as_raw_fd(),
            shim: shim.as_raw_fd(),
        };
        let oci = build(id, stdio, stage, init).map_err(|error| Error::Create(Box::new(error)))?;
        let raw = oci.pid().ok_or(Error::NoInit)?.as_raw();
        let init = Pid::from_raw(raw).ok_or(Error::NoInit)?;
        let pidfd = hold(init)?;
        let program = spec.argv.first().cloned().unwrap_or_default();
        Ok(Self { oci, program, init, pidfd, reports, exit: None })
    }

    pub(super) fn init(&self) -> Pid {
        self.init
    }

    pub(super) fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Lets the command run, and returns once it has been executed. While that takes its time nobody else
    /// looks at the deadline.
    pub(super) fn start(&mut self, deadline: &dyn Fn() -> Boottime) -> Result<(), Error> {
        self.oci.start().map_err(|error| Error::Begin(Box::new(error)))?;
        let give_up_at = Boottime::now() + START_MAX;
        if !self.await_report(&|| deadline().min(give_up_at))? {
            self.signal(Signal::KILL)?;
            // What was executed at the last moment has begun all the same, and must not be said to have
            // never started.
            let gone_by = Boottime::now() + KILL_MAX;
            if !self.await_report(&|| gone_by)? {
                return Err(Error::TooSlow);
            }
        }
        match Report::receive(self.reports.as_fd()).map_err(Error::Hear)? {
            Some(Report::Started) => Ok(()),
            Some(Report::NotExecuted(errno)) => {
                let source = io::Error::from_raw_os_error(errno);
                Err(Error::Execute { program: self.program.clone(), source })
            }
            Some(Report::Ended(_)) | None => Err(Error::InitEnded),
        }
    }

    /// Sends init a signal, which it forwards; KILL ends it and all others. Nothing if it has ended.
    pub(super) fn signal(&self, signal: Signal) -> Result<(), Error> {
        match pidfd_send_signal(&self.pidfd, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(errno) => Err(Error::Signal(errno.into())),
        }
    }

    /// How the command ended, once every process is gone: the kernel lets nobody wait for process 1 of
    /// a namespace before all others are.
    pub(super) fn exit(&mut self) -> Result<Option<Exit>, Error> {
        if self.exit.is_some() {
            return Ok(self.exit);
        }
        let ended = retry_on_intr(|| waitpid(Some(self.init), WaitOptions::NOHANG))
            .map_err(|errno| Error::Wait(errno.into()))?;
        if ended.is_some() {
            self.exit = Some(self.last_word()?);
        }
        Ok(self.exit)
    }

    /// What init said last. One that was killed said nothing: whoever killed it killed all.
    fn last_word(&self) -> Result<Exit, Error> {
        let killed = Exit::Signal(Signal::KILL.as_raw());
        while let Some(report) = Report::receive(self.reports.as_fd()).map_err(Error::Hear)? {
            if let Report::Ended(exit) = report {
                return Ok(exit);
            }
        }
        Ok(killed)
    }

    /// Whether init has said something, or is gone, before `until`, which may move on meanwhile.
    fn await_report(&self, until: &dyn Fn() -> Boottime) -> Result<bool, Error> {
        loop {
            let left = Boottime::now().until(until());
            let timeout = Timespec::try_from(left).expect("a few seconds");
            let mut fds = [PollFd::new(&self.reports, PollFlags::IN)];
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) if left.is_zero() => return Ok(false),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(errno) => return Err(Error::Hear(errno.into())),
            }
        }
    }
}

fn hold(process: Pid) -> Result<OwnedFd, Error> {
    pidfd_open(process, PidfdFlags::empty()).map_err(|errno| Error::Hold(errno.into()))
}

fn build(id: AttemptId, stdio: Stdio, stage: &Stage, init: Init) -> Result<Oci, LibcontainerError> {
    ContainerBuilder::new(id.to_string(), SyscallType::default())
        .with_executor(init)
        .with_stdin(stdio.stdin)
        .with_stdout(stdio.stdout)
        .with_stderr(stdio.stderr)
        .with_root_path(stage.state())?
        .as_init(stage.bundle())
        .with_systemd(false)
        .with_detach(true)
        .build()
}
