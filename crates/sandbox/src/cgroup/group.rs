//! One attempt's group, in every hierarchy it lies in.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use rustix::process::{Pid, Signal, kill_process};

use super::{
    Account, Error, Hierarchy, OomAlarm,
    file::{is_gone, keyed, read, read_if_there, write},
    limits::{self, Setting},
};
use crate::Limits;

/// How often a freezing group is looked at before its members are killed as they are. Freezing takes
/// microseconds; a process in uninterruptible sleep can make it take for ever.
const FREEZE_LOOKS_MAX: u32 = 1_000;

/// The control group of one attempt. The value is only a name: dropping it changes nothing.
#[derive(Clone, Debug)]
pub struct Group {
    /// The same path in every hierarchy, absolute.
    path: PathBuf,
    /// Its directories in v1, each named by what it controls.
    v1: Vec<Hierarchy>,
    unified: Option<PathBuf>,
}

// === impl Group ===

impl Group {
    pub(super) fn new(path: PathBuf, v1: Vec<Hierarchy>, unified: Option<PathBuf>) -> Self {
        Self { path, v1, unified }
    }

    /// The path as `cgroupsPath` of a container names it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directories in which a v1 group shows its limits; empty on v2.
    pub fn v1(&self) -> &[Hierarchy] {
        &self.v1
    }

    /// The directory in the v2 tree, where one is mounted.
    pub fn unified(&self) -> Option<&Path> {
        self.unified.as_deref()
    }

    pub fn limit(&self, limits: &Limits) -> Result<(), Error> {
        let settings = if self.is_v2() { limits::in_v2(limits) } else { limits::in_v1(limits) };
        settings.iter().try_for_each(|setting| self.set(setting))
    }

    /// Moves a process in wherever nobody else has yet: the container runtime joins what limits, on a
    /// hybrid machine this joins the v2 tree as well.
    pub fn join_unified(&self, pid: i32) -> Result<(), Error> {
        match &self.unified {
            Some(dir) => write(dir, "cgroup.procs", &pid.to_string()),
            None => Ok(()),
        }
    }

    /// Kills every member, those it forks meanwhile too. They are gone when [`is_empty`](Self::is_empty)
    /// says so, which is soon but not yet.
    pub fn kill(&self) -> Result<(), Error> {
        let mut members = self.members_v1()?;
        if let Some(dir) = &self.unified {
            let reached = members_of(dir)?;
            kill_unified(dir)?;
            // What is left fell between joining v1 and joining v2.
            members.retain(|member| !reached.contains(member));
        }
        match self.v1_dir("freezer") {
            _ if members.is_empty() => Ok(()),
            Some(dir) => kill_frozen(dir, ("freezer.state", "FROZEN"), "THAWED", is_frozen_v1),
            None => kill_all(&members),
        }
    }

    /// Whether no process is left in it. True for a group that is not there.
    pub fn is_empty(&self) -> Result<bool, Error> {
        let events = self.unified.as_deref().map(|dir| read_if_there(dir, "cgroup.events"));
        let is_populated = events.transpose()?.flatten().is_some_and(|events| {
            keyed(&events, "populated").is_none_or(|populated| populated != 0)
        });
        Ok(!is_populated && self.members_v1()?.is_empty())
    }

    /// How many processes are in it.
    pub fn population(&self) -> Result<usize, Error> {
        let mut members = self.members_v1()?;
        if let Some(dir) = &self.unified {
            members.extend(members_of(dir)?);
        }
        Ok(members.len())
    }

    /// What its processes used. To be read before it is removed.
    pub fn account(&self) -> Result<Account, Error> {
        match &self.unified {
            Some(dir) if self.is_v2() => Account::of_v2(dir),
            _ => Account::of_v1(self.required("memory")?, self.required("cpuacct")?),
        }
    }

    /// Tells when it is out of memory; `None` on v2, where the kernel then kills all of it by itself.
    pub fn oom_alarm(&self) -> Result<Option<OomAlarm>, Error> {
        if self.is_v2() {
            return Ok(None);
        }
        self.required("memory").and_then(OomAlarm::set).map(Some)
    }

    /// Removes its directories. Fails while a process is in it; what is gone already is fine.
    pub fn remove(&self) -> Result<(), Error> {
        self.dirs().try_for_each(|dir| match fs::remove_dir(dir) {
            Err(source) if !is_gone(&source) => Err(Error::Remove { path: dir.to_owned(), source }),
            _ => Ok(()),
        })
    }

    pub(super) fn is_v2(&self) -> bool {
        self.v1.is_empty()
    }

    pub(super) fn dirs(&self) -> impl Iterator<Item = &Path> {
        let v1 = self.v1.iter().map(|hierarchy| hierarchy.mount.as_path());
        v1.chain(self.unified.as_deref())
    }

    fn v1_dir(&self, controller: &str) -> Option<&Path> {
        let hierarchy = self.v1.iter().find(|hierarchy| hierarchy.has(controller))?;
        Some(&hierarchy.mount)
    }

    fn required(&self, controller: &'static str) -> Result<&Path, Error> {
        let dir = if self.is_v2() { self.unified.as_deref() } else { self.v1_dir(controller) };
        dir.ok_or(Error::MissingController { controller })
    }

    fn set(&self, setting: &Setting) -> Result<(), Error> {
        match write(self.required(setting.controller)?, setting.file, &setting.value) {
            Err(Error::Write { source, .. })
                if setting.is_optional && source.kind() == io::ErrorKind::NotFound =>
            {
                Ok(())
            }
            result => result,
        }
    }

    /// Members of any v1 hierarchy: a process may die between joining one and the next.
    fn members_v1(&self) -> Result<BTreeSet<i32>, Error> {
        let mut members = BTreeSet::new();
        for hierarchy in &self.v1 {
            members.extend(members_of(&hierarchy.mount)?);
        }
        Ok(members)
    }
}

fn kill_unified(dir: &Path) -> Result<(), Error> {
    match write(dir, "cgroup.kill", "1") {
        // Before 5.14 there is no such file. If there is no other either, there is no group.
        Err(Error::Write { source, .. }) if is_gone(&source) => {
            match dir.join("cgroup.freeze").exists() {
                true => kill_frozen(dir, ("cgroup.freeze", "1"), "0", is_frozen_v2),
                false => Ok(()),
            }
        }
        result => result,
    }
}

/// Freezes, so that nobody forks and no number is given to another process, kills and thaws.
fn kill_frozen(
    dir: &Path,
    (file, freeze): (&str, &str),
    thaw: &str,
    is_frozen: impl Fn(&Path) -> Result<bool, Error>,
) -> Result<(), Error> {
    write(dir, file, freeze)?;
    for _ in 0..FREEZE_LOOKS_MAX {
        if is_frozen(dir)? {
            break;
        }
        std::thread::yield_now();
    }
    let killed = members_of(dir).and_then(|members| kill_all(&members));
    // Thawed whatever happened: a frozen process never dies of its signal on v1.
    write(dir, file, thaw)?;
    killed
}

fn is_frozen_v1(dir: &Path) -> Result<bool, Error> {
    Ok(read(dir, "freezer.state")?.trim() == "FROZEN")
}

fn is_frozen_v2(dir: &Path) -> Result<bool, Error> {
    Ok(keyed(&read(dir, "cgroup.events")?, "frozen") == Some(1))
}

fn members_of(dir: &Path) -> Result<BTreeSet<i32>, Error> {
    let text = read_if_there(dir, "cgroup.procs")?.unwrap_or_default();
    let pid = |line: &str| line.trim().parse().ok();
    let members: Option<BTreeSet<i32>> = text.lines().map(pid).collect();
    members.ok_or_else(|| Error::Unexpected { path: dir.join("cgroup.procs"), text })
}

fn kill_all(members: &BTreeSet<i32>) -> Result<(), Error> {
    for &member in members {
        // 0 stands for a member that this process' namespace cannot see.
        let Some(pid) = Pid::from_raw(member) else { continue };
        match kill_process(pid, Signal::KILL) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(errno) => return Err(Error::Signal { pid: member, source: errno.into() }),
        }
    }
    Ok(())
}
