//! All groups of one host id.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use super::{
    Error, Group, Hierarchy, Layout,
    delegation::{self, DAEMON_LEAF},
    file::{is_gone, read, write},
    layout::dir_in,
};

const OWN_GROUPS: &str = "/proc/self/cgroup";

/// What the v2 tree must hand down for limits to work.
const REQUIRED_V2: [&str; 3] = ["cpu", "memory", "pids"];

/// How often making a group starts over because its parent vanished: another node may tidy up the
/// parent we share just when we found it there.
const CREATE_TRIES_MAX: u32 = 5;

/// The weight of the daemon against all its tasks together: the most there is.
const DAEMON_WEIGHT: &str = "10000";

/// What all tasks of all nodes weigh together where the daemon is not beside them in a delegated group:
/// half of what any single process outside weighs, on v2 and on v1.
const SHARED_WEIGHT: [(&str, &str); 2] = [("cpu.weight", "50"), ("cpu.shares", "512")];

/// The groups below `/windlass/HOST_ID`, or below the same in a delegated group. Nothing outside is
/// ever listed, killed or removed.
#[derive(Clone, Debug)]
pub struct Tree {
    layout: Layout,
    /// `/`, or the group that was delegated to us.
    base: PathBuf,
    path: PathBuf,
}

// === impl Tree ===

impl Tree {
    /// The tree of `host` on this machine.
    pub fn open(host: &str) -> Result<Self, Error> {
        let layout = Layout::detect()?;
        let base = match &layout.unified {
            Some(mount) if layout.is_v2() => delegated_base(mount)?,
            _ => PathBuf::from("/"),
        };
        Ok(Self::new(layout, base, host))
    }

    fn new(layout: Layout, base: PathBuf, host: &str) -> Self {
        let path = base.join("windlass").join(host);
        Self { layout, base, path }
    }

    /// Whether the v2 tree limits and counts.
    pub fn is_v2(&self) -> bool {
        self.layout.is_v2()
    }

    /// The group of this name, whether or not it exists.
    pub fn group(&self, name: &str) -> Group {
        let path = self.path.join(name);
        let v1 = self.layout.v1.iter().map(|hierarchy| Hierarchy {
            mount: dir_in(&hierarchy.mount, &path),
            controllers: hierarchy.controllers.clone(),
        });
        let unified = self.layout.unified.as_ref().map(|mount| dir_in(mount, &path));
        Group::new(path.clone(), v1.collect(), unified)
    }

    /// Makes the directories of `group` and of what lies above it.
    pub fn create(&self, group: &Group) -> Result<(), Error> {
        group.dirs().try_for_each(|dir| self.create_dir(dir))
    }

    /// The names of all groups there are, of living and of dead attempts.
    pub fn names(&self) -> Result<BTreeSet<String>, Error> {
        let mut names = BTreeSet::new();
        for dir in self.dirs() {
            names.extend(names_in(&dir)?);
        }
        Ok(names)
    }

    /// Lets the daemon step aside in a delegated group, and outweigh its tasks there. Elsewhere it
    /// stays where it is, and the group above all tasks is made lighter than it.
    pub fn settle_daemon(&self, pid: i32) -> Result<(), Error> {
        let Some(mount) = self.layout.unified.as_ref().filter(|_| self.base != Path::new("/"))
        else {
            return Ok(());
        };
        let leaf = dir_in(mount, &self.base.join(DAEMON_LEAF));
        create_if_missing(&leaf)?;
        write(&leaf, "cgroup.procs", &pid.to_string())?;
        hand_down(&dir_in(mount, &self.base))?;
        write(&leaf, "cpu.weight", DAEMON_WEIGHT)
    }

    /// Removes what is left of the tree once no attempt has a group. The parent is shared with other
    /// nodes and stays while they use it.
    pub fn retire(&self) -> Result<(), Error> {
        for dir in self.dirs() {
            remove_if_empty(&dir)?;
            remove_if_empty(dir.parent().expect("the tree lies below `windlass`"))?;
        }
        Ok(())
    }

    fn dirs(&self) -> impl Iterator<Item = PathBuf> {
        let v1 = self.layout.v1.iter().map(|hierarchy| &hierarchy.mount);
        v1.chain(&self.layout.unified).map(|mount| dir_in(mount, &self.path))
    }

    fn create_dir(&self, dir: &Path) -> Result<(), Error> {
        let mut tries_left = CREATE_TRIES_MAX;
        loop {
            tries_left -= 1;
            match create_if_missing(dir) {
                Err(Error::Create { source, .. }) if is_gone(&source) && tries_left > 0 => {
                    self.create_parents(dir)?;
                }
                result => return result,
            }
        }
    }

    /// Makes the host's directory above `leaf`, and on v2 hands the controllers down to it.
    fn create_parents(&self, leaf: &Path) -> Result<(), Error> {
        let host = leaf.parent().expect("a group lies below its host");
        let shared = host.parent().expect("a host lies below `windlass`");
        for dir in [shared, host] {
            if self.layout.is_v2() {
                hand_down(dir.parent().expect("the tree lies below a mount point"))?;
            }
            match create_if_missing(dir) {
                Err(Error::Create { source, .. }) if is_gone(&source) => return Ok(()),
                result => result?,
            }
        }
        if self.base == Path::new("/") {
            lighten(shared)?;
        }
        if self.layout.is_v2() { hand_down(host) } else { Ok(()) }
    }
}

fn delegated_base(mount: &Path) -> Result<PathBuf, Error> {
    let text = fs::read_to_string(OWN_GROUPS)
        .map_err(|source| Error::Read { path: OWN_GROUPS.into(), source })?;
    let own = delegation::own_group(&text).unwrap_or(Path::new("/"));
    Ok(delegation::base(own, |group| delegation::is_marked(&dir_in(mount, group))))
}

/// Lets the groups below `dir` be limited.
fn hand_down(dir: &Path) -> Result<(), Error> {
    let available = read(dir, "cgroup.controllers")?;
    let is_missing =
        |controller: &&str| !available.split_whitespace().any(|each| each == *controller);
    if let Some(controller) = REQUIRED_V2.into_iter().find(is_missing) {
        return Err(Error::MissingController { controller });
    }
    let all = REQUIRED_V2.map(|controller| format!("+{controller}")).join(" ");
    write(dir, "cgroup.subtree_control", &all)
}

/// Only the hierarchy of processors has one of the files; and another node may tidy the group up.
fn lighten(shared: &Path) -> Result<(), Error> {
    for (file, weight) in SHARED_WEIGHT {
        match write(shared, file, weight) {
            Err(Error::Write { source, .. }) if is_gone(&source) => {}
            written => written?,
        }
    }
    Ok(())
}

fn create_if_missing(dir: &Path) -> Result<(), Error> {
    match fs::create_dir(dir) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::Create { path: dir.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn remove_if_empty(dir: &Path) -> Result<(), Error> {
    let is_in_use =
        |kind| matches!(kind, io::ErrorKind::ResourceBusy | io::ErrorKind::DirectoryNotEmpty);
    match fs::remove_dir(dir) {
        Err(source) if !is_gone(&source) && !is_in_use(source.kind()) => {
            Err(Error::Remove { path: dir.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn names_in(dir: &Path) -> Result<Vec<String>, Error> {
    let list = |source| Error::List { path: dir.to_owned(), source };
    let entries = match fs::read_dir(dir) {
        Err(source) if is_gone(&source) => return Ok(Vec::new()),
        entries => entries.map_err(list)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(list)?;
        let is_group = entry.file_type().map_err(list)?.is_dir();
        // Whatever is not a name of ours was not made by us.
        names.extend(entry.file_name().into_string().ok().filter(|_| is_group));
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
