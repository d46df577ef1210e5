//! Commands as plain processes: for machines without root. Isolates nothing and enforces no limits.
//!
//! The shim leads a session of its own, which its command does not leave unless it wants to, and takes
//! in every descendant whose parent died. So it sees all of them end; and when the shim itself is
//! gone, what is left is found by that session. Only a process that made itself a new session *and*
//! lost its shim escapes.

mod command;
pub(crate) mod table;

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    time::Duration,
};

use nix::sys::resource::{UsageWho, getrusage};
use rustix::{
    io::Errno,
    process::{
        Pid, PidfdFlags, Signal, WaitOptions, WaitStatus, getpid, kill_process, pidfd_open,
        pidfd_send_signal, set_child_subreaper, setsid, wait,
    },
};

use crate::{
    AttemptId, Boottime, Exit, Spec, Usage,
    places::{Places, unless_missing},
    record::Record,
    runtime::{CLEANUP_MAX, Error, Runtime, Site, Stats, Stdio, Wake},
};
use command::Command;
use table::Row;

/// Killed processes are looked at again after this long: there is nothing to wait on for processes
/// that somebody else started.
const LOOK_AFTER: Duration = Duration::from_millis(2);

/// See the module.
#[derive(Debug)]
pub struct Process {
    places: Places,
    /// The attempt whose shim this is.
    own: Option<AttemptId>,
    state: State,
}

/// How far the own attempt is.
#[derive(Debug)]
enum State {
    /// Waits for `prepare`; in a daemon for ever.
    Idle,
    /// Waits for `start`.
    Prepared(Command),
    /// Waits for the command to end; then come those it left behind.
    Running { command: Pid, end: OwnedFd },
    /// Waits for killed descendants to be gone.
    Ending { exit: Exit, look_at: Boottime },
    /// Nothing is left.
    Over(Exit),
}

/// Which step failed.
#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("cannot execute {program}")]
    Execute {
        program: String,
        #[source]
        source: io::Error,
    },
    #[error("there is no directory {} to start in", path.display())]
    NoWorkdir { path: PathBuf },
    #[error("cannot watch the command")]
    Watch(#[source] io::Error),
    #[error("cannot wait for processes")]
    Wait(#[source] io::Error),
    #[error("cannot kill process {}", pid.as_raw_pid())]
    Kill {
        pid: Pid,
        #[source]
        source: io::Error,
    },
    #[error("cannot read the table of processes")]
    Table(#[source] io::Error),
    #[error("cannot read the record")]
    Record(#[source] crate::record::Error),
    #[error("cannot list the records")]
    Records(#[source] io::Error),
    #[error("cannot become the parent of orphaned descendants")]
    Subreaper(#[source] io::Error),
    #[error("cannot begin a session")]
    Session(#[source] io::Error),
    #[error("no attempt is prepared")]
    NotPrepared,
}

// === impl Process ===

impl Process {
    #[must_use]
    pub fn new(site: &Site) -> Self {
        Self { places: Places::new(&site.data_dir), own: None, state: State::Idle }
    }

    /// Waits for the command, then for whatever it left behind.
    fn look(&mut self) -> Result<Option<Exit>, Cause> {
        loop {
            match (reap()?, &self.state) {
                (Ended::Child(pid, exit), State::Running { command, .. }) if pid == *command => {
                    self.state = State::Ending { exit, look_at: Boottime::default() };
                }
                (Ended::NoChild, State::Ending { exit, .. }) => self.state = State::Over(*exit),
                (Ended::Child(..), _) => {}
                (Ended::NoChild | Ended::None, _) => break,
            }
        }
        match &mut self.state {
            State::Ending { look_at, .. } => {
                kill_children()?;
                *look_at = Boottime::now() + LOOK_AFTER;
                Ok(None)
            }
            State::Over(exit) => Ok(Some(*exit)),
            State::Idle | State::Prepared(_) | State::Running { .. } => Ok(None),
        }
    }

    /// The processes of an attempt whose shim is gone.
    fn left_of(&self, id: AttemptId, rows: &[Row]) -> Result<Vec<Pid>, Cause> {
        let path = self.places.record(id);
        let record = match Record::open(&path) {
            Err(crate::record::Error::Open { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                return Ok(Vec::new());
            }
            opened => opened.map_err(Cause::Record)?,
        };
        let Some(shim) = record.read().map_err(Cause::Record)?.identity else {
            return Ok(Vec::new());
        };
        let Some(session) = shim.session(rows).map_err(Cause::Table)? else {
            return Ok(Vec::new());
        };
        let members = rows.iter().filter(|row| row.session == Some(session) && row.is_alive);
        Ok(members.map(|row| row.pid).filter(|pid| *pid != getpid()).collect())
    }

    /// Kills what is left until nothing is, for a bounded time. Returns how many remain.
    fn kill_left(&self, id: AttemptId) -> Result<usize, Cause> {
        let until = Boottime::now() + CLEANUP_MAX;
        loop {
            let left = self.left_of(id, &table::rows().map_err(Cause::Table)?)?;
            if left.is_empty() || Boottime::now() >= until {
                return Ok(left.len());
            }
            for pid in left {
                kill_stranger(pid)?;
            }
            pause(LOOK_AFTER).map_err(Cause::Wait)?;
        }
    }
}

impl Runtime for Process {
    fn prepare(&mut self, id: AttemptId, spec: &Spec, stdio: Stdio) -> Result<(), Error> {
        let prepare = || {
            setsid().map_err(|errno| Cause::Session(errno.into()))?;
            set_child_subreaper(Some(getpid())).map_err(|errno| Cause::Subreaper(errno.into()))?;
            self.own = Some(id);
            self.state = State::Prepared(Command::new(spec, stdio));
            Ok::<(), Cause>(())
        };
        prepare().map_err(|cause| Error::Prepare(cause.into()))
    }

    fn start(&mut self, _deadline: &dyn Fn() -> Boottime) -> Result<(), Error> {
        let mut start = || {
            let State::Prepared(command) = std::mem::replace(&mut self.state, State::Idle) else {
                return Err(Cause::NotPrepared);
            };
            let (program, workdir) = (command.program().to_owned(), command.workdir().to_owned());
            let command = command.spawn().map_err(|source| match workdir.is_dir() {
                true => Cause::Execute { program, source },
                false => Cause::NoWorkdir { path: workdir },
            })?;
            let end = pidfd_open(command, PidfdFlags::empty());
            let end = end.map_err(|errno| Cause::Watch(errno.into()))?;
            self.state = State::Running { command, end };
            Ok(())
        };
        start().map_err(|cause| Error::Start(cause.into()))
    }

    fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        let State::Running { command, .. } = self.state else { return Ok(()) };
        let send = || {
            send(command, signal)?;
            if signal == Signal::KILL {
                kill_children()?;
            }
            Ok(())
        };
        send().map_err(|cause: Cause| Error::Signal(cause.into()))
    }

    fn exit(&mut self) -> Result<Option<Exit>, Error> {
        self.look().map_err(|cause| Error::Exit(cause.into()))
    }

    fn wake(&self) -> Wake<'_> {
        match &self.state {
            State::Running { end, .. } => Wake::Readable(vec![end.as_fd()]),
            State::Ending { look_at, .. } => Wake::At(*look_at),
            State::Idle | State::Prepared(_) | State::Over(_) => Wake::At(Boottime::NEVER),
        }
    }

    fn stats(&mut self) -> Result<Stats, Error> {
        let used = getrusage(UsageWho::RUSAGE_CHILDREN);
        let used = used.map_err(|errno| Error::Stats(io::Error::from(errno).into()))?;
        let cpu = duration(used.user_time()) + duration(used.system_time());
        // The kernel counts in KiB.
        let peak_memory_bytes = u64::try_from(used.max_rss()).unwrap_or(0) << 10;
        Ok(Stats { usage: Usage { peak_memory_bytes, cpu }, ..Stats::default() })
    }

    fn cleanup(&mut self, id: AttemptId) -> Result<(), Error> {
        let on_cause = |cause: Cause| Error::Cleanup { id, source: cause.into() };
        // In its own shim the descendants tell, and the record stays unopened: closing it would give
        // up the lock that shows the shim to be alive.
        let left = if self.own == Some(id) {
            if let State::Prepared(_) = self.state {
                self.state = State::Idle;
            }
            kill_descendants().map_err(on_cause)?
        } else {
            self.kill_left(id).map_err(on_cause)?
        };
        match left {
            0 => Ok(()),
            processes => Err(Error::StillAlive { id, processes }),
        }
    }

    fn list_orphans(&self) -> Result<Vec<AttemptId>, Error> {
        let list = || {
            let rows = table::rows().map_err(Cause::Table)?;
            let mut orphans = Vec::new();
            for id in
                unless_missing(self.places.recorded()).map_err(Cause::Records)?.unwrap_or_default()
            {
                if !self.left_of(id, &rows)?.is_empty() {
                    orphans.push(id);
                }
            }
            Ok(orphans)
        };
        list().map_err(|cause: Cause| Error::Orphans(cause.into()))
    }
}

/// What a look for ended children showed.
enum Ended {
    Child(Pid, Exit),
    /// All there are still run.
    None,
    NoChild,
}

/// Takes in one child that has ended, if there is one.
fn reap() -> Result<Ended, Cause> {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(None) => return Ok(Ended::None),
            Ok(Some((pid, status))) => {
                if let Some(exit) = exit(status) {
                    return Ok(Ended::Child(pid, exit));
                }
            }
            Err(Errno::CHILD) => return Ok(Ended::NoChild),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(Cause::Wait(errno.into())),
        }
    }
}

fn exit(status: WaitStatus) -> Option<Exit> {
    let code = status.exit_status().map(Exit::Code);
    code.or_else(|| status.terminating_signal().map(Exit::Signal))
}

/// Kills every child: those of the command too, once they have lost their parent. Children of living
/// children follow when these are gone. Returns how many there were.
fn kill_children() -> Result<usize, Cause> {
    let own = Some(getpid());
    let mut killed = 0;
    for row in table::rows().map_err(Cause::Table)? {
        if row.parent == own && row.is_alive {
            send(row.pid, Signal::KILL)?;
            killed += 1;
        }
    }
    Ok(killed)
}

/// Kills and takes in all descendants, for a bounded time. Returns how many remain.
fn kill_descendants() -> Result<usize, Cause> {
    let until = Boottime::now() + CLEANUP_MAX;
    loop {
        match reap()? {
            Ended::NoChild => return Ok(0),
            Ended::Child(..) => continue,
            Ended::None => {}
        }
        let left = kill_children()?;
        if Boottime::now() >= until {
            return Ok(left.max(1));
        }
        pause(LOOK_AFTER).map_err(Cause::Wait)?;
    }
}

/// A child's number is its own until it is reaped, and only this thread reaps.
fn send(pid: Pid, signal: Signal) -> Result<(), Cause> {
    match kill_process(pid, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(errno) => Err(Cause::Kill { pid, source: errno.into() }),
    }
}

/// Somebody else reaps this one, so its number may pass on at any time: it is held first and looked at
/// again by the caller's next round.
fn kill_stranger(pid: Pid) -> Result<(), Cause> {
    let killed = pidfd_open(pid, PidfdFlags::empty())
        .and_then(|process| pidfd_send_signal(&process, Signal::KILL));
    match killed {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(errno) => Err(Cause::Kill { pid, source: errno.into() }),
    }
}

/// Lets time pass on a thread that has nothing else to do.
fn pause(duration: Duration) -> io::Result<()> {
    let timeout = rustix::event::Timespec {
        tv_sec: duration.as_secs().cast_signed(),
        tv_nsec: i64::from(duration.subsec_nanos()),
    };
    match rustix::event::poll(&mut [], Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn duration(time: nix::sys::time::TimeVal) -> Duration {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec()).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}
