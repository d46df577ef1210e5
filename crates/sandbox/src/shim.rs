//! The shim: one process per attempt, between the daemon and the command.
//!
//! It outlives the daemon and lies outside the command's limits. It runs the command through a
//! [`Runtime`](crate::Runtime), carries output into the log, stops the command when it is told, when
//! its timeout is over or when the [deadline](crate::Deadline) has passed, and keeps the result on disk
//! before it tells anybody. It has one thread, an empty environment, and no file of its own that a
//! command could reach and overwrite. Shims are born in a `nursery`.

pub(crate) mod control;
pub(crate) mod nursery;
mod poll;
pub(crate) mod program;
pub(crate) mod session;
pub(crate) mod streams;
mod supervisor;

use std::{fs, io, os::fd::OwnedFd, process::ExitCode};

use rustix::{
    process::getpid,
    stdio::{dup2_stdin, dup2_stdout, stdin, stdout},
};

use crate::{
    DeadlineView, Ended, log,
    log::Writer,
    places::Places,
    record::{self, Record},
    runtime,
};
use control::{Control, Job, Word};
use nursery::Role;
use poll::Poller;
use session::Session;
use streams::Pipes;

/// What `windlass` is called with to be a shim.
pub const ARGUMENT: &str = "shim";

/// Exit code of one that was not started by a daemon.
const NOT_A_SHIM: u8 = 2;

/// Why a shim gave up. Its daemon finds no result then, cleans up and tells one itself.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a shim is started by a daemon, with a socket and a deadline")]
    NotAShim(#[source] io::Error),
    #[error("the nursery cannot go on")]
    Nursery(#[source] io::Error),
    #[error("cannot hear from the daemon")]
    Control(#[source] control::Error),
    #[error("cannot take the record")]
    Record(#[source] record::Error),
    #[error("cannot wait for anything to happen")]
    Poll(#[source] io::Error),
    #[error("the runtime failed")]
    Runtime(#[source] runtime::Error),
}

/// Why an attempt never started, apart from the runtime's reasons.
#[derive(Debug, thiserror::Error)]
enum Obstacle {
    #[error("cannot make the directory of the attempt")]
    Directory(#[source] io::Error),
    #[error("cannot begin the log")]
    Log(#[source] log::Error),
    #[error("cannot make pipes for the command")]
    Pipes(#[source] io::Error),
    #[error(transparent)]
    Runtime(runtime::Error),
}

/// Is the nursery that a daemon has started, or a shim that was born there: runs one attempt from
/// beginning to end.
///
/// Needs the descriptors a daemon sets up and a process with a single thread, so it is called first
/// thing in `main`.
#[must_use]
pub fn main() -> ExitCode {
    match born() {
        Ok(Some((mut control, deadline))) => live(&mut control, &deadline),
        Ok(None) => ExitCode::SUCCESS,
        // Somebody typed the command, or the daemon is on its way out: nobody listens.
        Err(_) => ExitCode::from(NOT_A_SHIM),
    }
}

/// What a new shim has to begin with; `None` when the nursery is not needed any more.
fn born() -> Result<Option<(Control, DeadlineView)>, Error> {
    let (socket, deadline) = take_descriptors().map_err(Error::NotAShim)?;
    match nursery::serve(&socket).map_err(Error::Nursery)? {
        Role::Shim(control) => Ok(Some((Control::new(control), deadline))),
        Role::Done => Ok(None),
    }
}

/// The daemon passes the nursery's socket as standard input and the deadline as standard output.
fn take_descriptors() -> io::Result<(OwnedFd, DeadlineView)> {
    let socket = stdin().try_clone_to_owned()?;
    let deadline = DeadlineView::map(stdout())?;
    let null: OwnedFd = fs::OpenOptions::new().read(true).write(true).open("/dev/null")?.into();
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    Ok((socket, deadline))
}

fn live(control: &mut Control, deadline: &DeadlineView) -> ExitCode {
    match run(control, deadline) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            control.tell(&Word::Trouble(chain(&error)));
            ExitCode::FAILURE
        }
    }
}

fn run(control: &mut Control, deadline: &DeadlineView) -> Result<(), Error> {
    let job = control.job().map_err(Error::Control)?;
    let record = Record::take(&Places::new(&job.site.data_dir).record(job.id));
    let record = record.map_err(Error::Record)?;
    control.tell(&Word::Begun { pid: getpid().as_raw_pid() });
    let mut session = Session::new(job.kind.open(&job.site), job.id, &job.spec);
    let ended = match begin(&job, &mut session) {
        Ok((pipes, log)) => {
            control.tell(&Word::Created);
            Poller::new(control, deadline, session, pipes, log)?.run()?
        }
        Err(obstacle) => {
            session.clean_up().map_err(Error::Runtime)?;
            Ended::never_started(chain(&obstacle))
        }
    };
    // Told even so: a result that is not kept is lost only if the daemon ends before it is recorded.
    if let Err(error) = record.end(&ended) {
        control.tell(&Word::Trouble(chain(&error)));
    }
    control.tell(&Word::Ended(ended));
    Ok(())
}

/// Everything short of starting the command.
fn begin(job: &Job, session: &mut Session) -> Result<(Pipes, Writer), Obstacle> {
    let dir = Places::new(&job.site.data_dir).begin_attempt(job.id);
    let dir = dir.map_err(Obstacle::Directory)?;
    let log = Writer::create(&dir, log::Sizes::default()).map_err(Obstacle::Log)?;
    let (pipes, stdio) = Pipes::new(&job.spec.stdin).map_err(Obstacle::Pipes)?;
    session.prepare(stdio).map_err(Obstacle::Runtime)?;
    Ok((pipes, log))
}

/// An error and all its causes, for somebody who has only one line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(each) = cause {
        text.push_str(": ");
        text.push_str(&each.to_string());
        cause = each.source();
    }
    text
}
