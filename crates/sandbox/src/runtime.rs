//! What runs a command: the seam between the shim and the ways of keeping a command apart.
//!
//! Three ways exist: `native` (containers, as root), [`process`](crate::process) (no privileges, no
//! isolation) and [`fake`](crate::fake) (no processes, virtual time). One [`suite`] holds all of them
//! to the obligations listed on [`Runtime`].

mod kind;
pub mod suite;

use std::{
    os::fd::{BorrowedFd, OwnedFd},
    time::Duration,
};

pub use kind::{HostView, Kind, Permissions, Site};
use rustix::process::Signal;

use crate::{AttemptId, Boottime, Exit, Spec, Usage};

/// How long [`Runtime::cleanup`] waits for killed processes to be gone. A process in an
/// uninterruptible sleep takes longer; the caller then goes on asking.
pub const CLEANUP_MAX: Duration = Duration::from_secs(1);

/// Runs one attempt, and finds and removes what other attempts left.
///
/// A shim makes one and takes it through `prepare`, `start`, `exit`, `stats` and `cleanup`, all on
/// its only thread. A daemon makes one too, from another process, and calls nothing but `cleanup`
/// and `list_orphans`, from any of its threads: these two must not change the process they run in.
///
/// Obligations, each held by [`suite`]:
///
/// 1. **Nothing before start.** After `prepare` everything that can fail without the command has
///    been tried, and no instruction of the command was executed. If `prepare` or `start` fails, none
///    ever was, and after `cleanup` nothing is left.
/// 2. **Own streams.** The command has the given streams and no other descriptor of ours. The
///    runtime keeps no copy: when the last process is gone, the pipes end.
/// 3. **Gone means gone.** `exit` answers only when the last process of the attempt is gone. When the
///    command itself has ended, whatever it left behind is killed.
///    So is whatever is left of an attempt of which the kernel killed any process for want of memory:
///    it ends by KILL, whatever the command itself made of it.
/// 4. **TERM for the command, KILL for all.** TERM reaches the command alone, which may handle it.
///    KILL ends every process of the attempt, also stopped ones and those that ignore everything else.
///    A signal to an attempt that is over does nothing.
/// 5. **As it was asked for.** argv, environment, working directory, user and input are those of the
///    spec, and nothing is inherited.
/// 6. **Counted before it is cleaned.** `stats` answers from `start` to `cleanup`, also after the end.
/// 7. **Cleanup is for all.** It kills what is left of the attempt, removes what the runtime made for
///    it, and may be repeated, also by a process that never prepared it. Afterwards
///    `list_orphans` does not name the attempt. It fails with [`Error::StillAlive`] rather than leave a
///    process behind. Logs and results are none of its business.
/// 8. **Orphans are found.** What was prepared by a process that died since is named by
///    `list_orphans` of a fresh instance on the same [`Site`], and by that of no other site.
pub trait Runtime: Send {
    /// Everything short of running the command.
    fn prepare(&mut self, id: AttemptId, spec: &Spec, stdio: Stdio) -> Result<(), Error>;

    /// Lets the command run. It has been executed when this returns. Nobody else looks at the deadline
    /// meanwhile, so a runtime that can give up does when it has passed; it may move on.
    fn start(&mut self, deadline: &dyn Fn() -> Boottime) -> Result<(), Error>;

    /// TERM or KILL.
    fn signal(&mut self, signal: Signal) -> Result<(), Error>;

    /// How the command ended, once the last process is gone. Does not wait; see [`wake`](Self::wake).
    fn exit(&mut self) -> Result<Option<Exit>, Error>;

    /// When it is worth asking [`exit`](Self::exit) again.
    fn wake(&self) -> Wake<'_>;

    fn stats(&mut self) -> Result<Stats, Error>;

    /// Waits up to [`CLEANUP_MAX`] until nothing of the attempt is left.
    fn cleanup(&mut self, id: AttemptId) -> Result<(), Error>;

    /// Attempts of this site of which something is left: a process, a cgroup, a mount, a record of
    /// one.
    fn list_orphans(&self) -> Result<Vec<AttemptId>, Error>;
}

/// The command's ends of its streams. Whoever gets them closes them once the command has them.
#[derive(Debug)]
pub struct Stdio {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// What to wait for.
#[derive(Debug)]
pub enum Wake<'a> {
    /// One of the descriptors becomes readable.
    Readable(Vec<BorrowedFd<'a>>),
    At(Boottime),
}

/// What is known of an attempt's consumption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub usage: Usage,
    /// Whether the kernel killed any of its processes for want of memory.
    pub is_oom_killed: bool,
    /// Of scratch files on a disk, as far as a bounded walk saw them. `None`: there are none to
    /// measure.
    pub scratch_bytes: Option<u64>,
}

/// Which step of a runtime failed. What went wrong is the source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot prepare the attempt")]
    Prepare(#[source] Cause),
    #[error("cannot start the command")]
    Start(#[source] Cause),
    #[error("cannot send the attempt a signal")]
    Signal(#[source] Cause),
    #[error("cannot learn how the command ended")]
    Exit(#[source] Cause),
    #[error("cannot measure the attempt")]
    Stats(#[source] Cause),
    #[error("cannot clean up after attempt {id}")]
    Cleanup {
        id: AttemptId,
        #[source]
        source: Cause,
    },
    #[error("attempt {id} still has {processes} processes although they were killed")]
    StillAlive { id: AttemptId, processes: usize },
    #[error("cannot look for attempts left behind")]
    Orphans(#[source] Cause),
}

/// A runtime's own error.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
