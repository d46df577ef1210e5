//! Containers, for a shim that is root.
//!
//! The shim leaves the host's mounts and network, builds the root and has the container created in it;
//! a minimal init stands between the shim and the command. All of it changes the process it runs in
//! and must happen in one that has a single thread. Nothing here decides what may run: it only refuses
//! what the owner of the machine did not permit.

mod bundle;
mod container;
mod host_view;
#[expect(
    unsafe_code,
    reason = "process 1 closes what it inherited and ends without the shim's code"
)]
mod init;
mod kernel_files;
#[expect(unsafe_code, reason = "no crate here wraps the call that restricts a mount")]
mod mount;
#[expect(
    unsafe_code,
    reason = "leaves namespaces, and raises an interface by a call that no crate here wraps"
)]
mod namespaces;
mod report;
mod root;
mod scratch;
mod stage;

use std::{
    cell::OnceCell,
    io,
    os::fd::{AsFd, BorrowedFd},
    path::PathBuf,
};

use rustix::{
    process::{Signal, getpid},
    thread::{NanosleepRelativeResult, Timespec, nanosleep},
};

use self::{container::Container, stage::Stage};
use crate::{
    AttemptId, Boottime, Exit, Limits, Medium, Network, Root, Site, Spec,
    cgroup::{self, Group, OomAlarm, Tree},
    places::Places,
    runtime::{self, CLEANUP_MAX, Cause, Runtime, Stats, Stdio, Wake},
};

/// How often a group is looked at that should become empty. Killed processes are gone within
/// microseconds, or take long.
const LOOK_AGAIN: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// Processes of ours in the command's group: its init.
const OWN_PIDS: u64 = 1;

/// Which step failed. What went wrong is the source.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("this node does not permit the host's network")]
    NetHost,
    #[error("this node does not permit uid 0 on the host view")]
    HostRoot,
    #[error("the runtime serves one attempt and has one already")]
    Taken,
    #[error("no attempt was prepared")]
    NotPrepared,
    #[error("cannot set up the control group")]
    Cgroup(#[from] cgroup::Error),
    #[error("cannot leave the host's namespaces")]
    Namespaces(#[from] namespaces::Error),
    #[error("cannot build the root")]
    Root(#[from] root::Error),
    #[error("there is no directory {} to start in", path.display())]
    NoWorkdir { path: PathBuf },
    #[error("cannot run the container")]
    Container(#[from] container::Error),
    #[error("cannot measure scratch files")]
    Scratch(#[source] io::Error),
    #[error("cannot clear the stage")]
    Stage(#[from] stage::Error),
}

/// The runtime of containers. See [`Runtime`] for what it owes.
pub struct Native {
    site: Site,
    /// Found when first needed, because looking may fail.
    tree: OnceCell<Tree>,
    attempt: Option<Prepared>,
}

/// The one attempt of this runtime, from `prepare` on.
struct Prepared {
    group: Group,
    /// On v1, where the kernel kills less than all.
    oom_alarm: Option<OomAlarm>,
    is_out_of_memory: bool,
    stage: Stage,
    scratch: Medium,
    container: Container,
}

// === impl Native ===

impl Native {
    #[must_use]
    pub fn new(site: &Site) -> Self {
        Self { site: site.clone(), tree: OnceCell::new(), attempt: None }
    }

    fn tree(&self) -> Result<&Tree, cgroup::Error> {
        if let Some(tree) = self.tree.get() {
            return Ok(tree);
        }
        let tree = Tree::open(&self.site.host_id.to_string())?;
        Ok(self.tree.get_or_init(|| tree))
    }

    fn stage(&self, id: AttemptId) -> Stage {
        Stage::of(&Places::new(&self.site.data_dir), id)
    }

    fn prepared(&mut self) -> Result<&mut Prepared, Error> {
        self.attempt.as_mut().ok_or(Error::NotPrepared)
    }

    /// Groups come first: whatever is left of a failure is found by the group's name.
    fn create(&self, id: AttemptId, spec: &Spec, stdio: Stdio) -> Result<Prepared, Error> {
        self.check(spec)?;
        let tree = self.tree()?;
        let group = tree.group(&id.to_string());
        tree.create(&group)?;
        let pids = spec.limits.pids.saturating_add(OWN_PIDS);
        group.limit(&Limits { pids, ..spec.limits })?;
        let oom_alarm = group.oom_alarm()?;
        namespaces::enter(spec.network)?;
        let stage = self.stage(id);
        root::build(&self.site, spec, &stage, &group)?;
        let container = Container::create(id, spec, stdio, &stage, &group);
        let container = container.map_err(|error| why_not_created(error, &stage, spec))?;
        if !tree.is_v2() {
            group.join_unified(container.init().as_raw_pid())?;
        }
        Ok(Prepared {
            group,
            oom_alarm,
            is_out_of_memory: false,
            stage,
            scratch: spec.limits.scratch_medium,
            container,
        })
    }

    fn check(&self, spec: &Spec) -> Result<(), Error> {
        let permissions = self.site.permissions;
        if self.attempt.is_some() {
            Err(Error::Taken)
        } else if spec.network == Network::Host && !permissions.net_host {
            Err(Error::NetHost)
        } else if spec.root == Root::HostView && spec.user.uid == 0 && !permissions.host_root {
            Err(Error::HostRoot)
        } else {
            Ok(())
        }
    }

    /// Kills and removes until nothing is left; how many processes are, if it took too long.
    fn clear(&self, id: AttemptId) -> Result<usize, Error> {
        let group = self.tree()?.group(&id.to_string());
        let give_up_at = Boottime::now() + CLEANUP_MAX;
        while !self.try_clear(id, &group)? {
            if Boottime::now() >= give_up_at {
                return Ok(group.population()?.max(1));
            }
            pause();
        }
        Ok(0)
    }

    /// The group goes last: as long as anything is left it can be found again.
    fn try_clear(&self, id: AttemptId, group: &Group) -> Result<bool, Error> {
        if !group.is_empty()? {
            group.kill()?;
            return Ok(false);
        }
        self.stage(id).remove()?;
        match group.remove() {
            // The last process has ended but the kernel still holds on to it.
            Err(cgroup::Error::Remove { source, .. })
                if source.kind() == io::ErrorKind::ResourceBusy =>
            {
                Ok(false)
            }
            removed => Ok(removed.map(|()| true)?),
        }
    }
}

impl Runtime for Native {
    fn prepare(&mut self, id: AttemptId, spec: &Spec, stdio: Stdio) -> Result<(), runtime::Error> {
        let prepared = self.create(id, spec, stdio).map_err(cause(runtime::Error::Prepare))?;
        self.attempt = Some(prepared);
        Ok(())
    }

    fn start(&mut self, deadline: &dyn Fn() -> Boottime) -> Result<(), runtime::Error> {
        let started = self.prepared().and_then(|attempt| Ok(attempt.container.start(deadline)?));
        started.map_err(cause(runtime::Error::Start))
    }

    fn signal(&mut self, signal: Signal) -> Result<(), runtime::Error> {
        let signaled = self.prepared().and_then(|attempt| attempt.signal(signal));
        signaled.map_err(cause(runtime::Error::Signal))
    }

    fn exit(&mut self) -> Result<Option<Exit>, runtime::Error> {
        let exit = self.prepared().and_then(Prepared::exit);
        exit.map_err(cause(runtime::Error::Exit))
    }

    fn wake(&self) -> Wake<'_> {
        match &self.attempt {
            Some(attempt) => Wake::Readable(attempt.ends()),
            None => Wake::At(Boottime::NEVER),
        }
    }

    fn stats(&mut self) -> Result<Stats, runtime::Error> {
        let stats = self.prepared().and_then(|attempt| attempt.stats());
        stats.map_err(cause(runtime::Error::Stats))
    }

    fn cleanup(&mut self, id: AttemptId) -> Result<(), runtime::Error> {
        let left = self.clear(id);
        match left {
            Ok(0) => Ok(()),
            Ok(processes) => Err(runtime::Error::StillAlive { id, processes }),
            Err(error) => Err(runtime::Error::Cleanup { id, source: error.into() }),
        }
    }

    fn list_orphans(&self) -> Result<Vec<AttemptId>, runtime::Error> {
        let names = self.tree().and_then(Tree::names);
        let names = names.map_err(|error| runtime::Error::Orphans(error.into()))?;
        Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
    }
}

// === impl Prepared ===

impl Prepared {
    fn signal(&self, signal: Signal) -> Result<(), Error> {
        // Init first: with it the kernel kills its whole namespace. The group is for whoever is not
        // in it yet.
        self.container.signal(signal)?;
        if signal == Signal::KILL { Ok(self.group.kill()?) } else { Ok(()) }
    }

    /// What to listen to while it runs.
    fn ends(&self) -> Vec<BorrowedFd<'_>> {
        let alarm = self.oom_alarm.as_ref().map(AsFd::as_fd);
        [self.container.pidfd()].into_iter().chain(alarm).collect()
    }

    /// Asks the alarm after the container: it rings before anybody is killed, so whoever has ended for
    /// want of memory has rung it.
    fn exit(&mut self) -> Result<Option<Exit>, Error> {
        let exit = self.container.exit()?;
        if let Some(alarm) = &self.oom_alarm
            && alarm.has_rung()?
        {
            self.is_out_of_memory = true;
            self.signal(Signal::KILL)?;
        }
        if exit.is_some() {
            // The removal of the group would ring it too.
            self.oom_alarm = None;
        }
        let killed = Exit::Signal(Signal::KILL.as_raw());
        Ok(exit.map(|exit| if self.is_out_of_memory { killed } else { exit }))
    }

    fn stats(&self) -> Result<Stats, Error> {
        let account = self.group.account()?;
        let scratch_bytes = match self.scratch {
            Medium::Memory => None,
            Medium::Disk => {
                Some(scratch::measure(&self.stage.scratch_on_disk()).map_err(Error::Scratch)?)
            }
        };
        let is_oom_killed = self.is_out_of_memory || account.oom_kills > 0;
        Ok(Stats { usage: account.usage, is_oom_killed, scratch_bytes })
    }
}

/// Lets the daemon, which is this process, step out of the way of its attempts' groups. To be called
/// once, before the first attempt.
///
/// # Errors
///
/// If control groups are not there or cannot be changed.
pub fn settle(site: &Site) -> Result<(), Error> {
    let tree = Tree::open(&site.host_id.to_string())?;
    Ok(tree.settle_daemon(getpid().as_raw_pid())?)
}

/// Removes the groups above those of attempts. To be called when there are none and none will come
/// soon; those of an attempt that is there stay.
///
/// # Errors
///
/// If control groups are not there or cannot be changed.
pub fn retire(site: &Site) -> Result<(), Error> {
    Ok(Tree::open(&site.host_id.to_string())?.retire()?)
}

/// The container runtime does not say what it could not find.
fn why_not_created(error: container::Error, stage: &Stage, spec: &Spec) -> Error {
    match stage.has_dir(&spec.workdir) {
        true => Error::Container(error),
        false => Error::NoWorkdir { path: spec.workdir.clone() },
    }
}

fn cause(step: impl Fn(Cause) -> runtime::Error) -> impl Fn(Error) -> runtime::Error {
    move |error| step(error.into())
}

/// Lets killed processes end. Woken early by a signal, the caller merely looks sooner.
fn pause() {
    match nanosleep(&LOOK_AGAIN) {
        NanosleepRelativeResult::Ok | NanosleepRelativeResult::Interrupted(_) => {}
        NanosleepRelativeResult::Err(errno) => unreachable!("a fixed short time is valid: {errno}"),
    }
}
