//! What the kernel shows a command: `/dev` and `/sys`. `/proc` belongs to the namespace of processes,
//! which is not there yet when these are made; see the description in [`bundle`](super::bundle).

use std::{
    io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use rustix::mount::MountAttrFlags;

use super::{
    mount::{self, Detached, NO_EXEC, READ_ONLY, Tree},
    stage::{self, Stage},
};
use crate::cgroup::{Group, Hierarchy};

/// Device files and links take no data blocks; whoever may write here must not fill memory.
const DEV_SIZE: &str = "64k";

/// What the command may keep in shared memory, beside what counts as its memory anyway.
const SHM_SIZE: &str = "64m";

/// Hierarchies by which programs learn how much they may use.
const SHOWN: [&str; 4] = ["cpu", "cpuacct", "memory", "pids"];

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot mount")]
    Mount(#[from] mount::Error),
    #[error("cannot prepare the place of control groups")]
    Stage(#[from] stage::Error),
    #[error("cannot link {path}")]
    Link { path: PathBuf, source: io::Error },
}

/// An empty `/dev` with private terminals and shared memory. The devices themselves are made by the
/// container runtime; this is the only mount on which they work.
pub(super) fn mount_dev(root: &Tree) -> Result<(), Error> {
    let dev = Path::new("/dev");
    root.ensure_dir(dev)?;
    let settings = [("size", Some(DEV_SIZE)), ("mode", Some("0755"))];
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | NO_EXEC;
    Detached::new("tmpfs", &settings, attributes)?.attach(root, dev)?;

    let pts = Path::new("/dev/pts");
    root.ensure_dir(pts)?;
    let settings = [("newinstance", None), ("ptmxmode", Some("0666")), ("mode", Some("0620"))];
    Detached::new("devpts", &settings, attributes)?.attach(root, pts)?;

    let shm = Path::new("/dev/shm");
    root.ensure_dir(shm)?;
    let settings = [("size", Some(SHM_SIZE)), ("mode", Some("1777"))];
    Ok(Detached::new("tmpfs", &settings, mount::NO_PRIVILEGES | NO_EXEC)?.attach(root, shm)?)
}

/// `/sys` of the network namespace, with the group's own limits in `/sys/fs/cgroup`, all read-only.
pub(super) fn mount_sys(root: &Tree, stage: &Stage, group: &Group) -> Result<(), Error> {
    let sys = Path::new("/sys");
    root.ensure_dir(sys)?;
    Detached::new("sysfs", &[], READ_ONLY | NO_EXEC)?.attach(root, sys)?;
    let firmware = Path::new("/sys/firmware");
    if let Some(place) = root.existing(firmware)? {
        Detached::bind(&stage.blank_dir(), READ_ONLY)?.attach_to(place, firmware)?;
    }
    let cgroup = Path::new("/sys/fs/cgroup");
    match group.unified() {
        Some(dir) if group.v1().is_empty() => bind(dir, root, cgroup),
        _ => mount_hierarchies(root, stage, group, cgroup),
    }
}

fn mount_hierarchies(root: &Tree, stage: &Stage, group: &Group, at: &Path) -> Result<(), Error> {
    let is_shown = |hierarchy: &&Hierarchy| SHOWN.iter().any(|shown| hierarchy.has(shown));
    let shown: Vec<_> = group.v1().iter().filter(is_shown).collect();
    for hierarchy in &shown {
        let name = hierarchy.controllers.join(",");
        stage::make_dir(&stage.cgroups().join(&name), 0o755)?;
        // Programs look for `cpu` also where it is mounted together with others.
        for controller in hierarchy.controllers.iter().filter(|each| **each != name) {
            let path = stage.cgroups().join(controller);
            symlink(&name, &path).map_err(|source| Error::Link { path, source })?;
        }
    }
    bind(&stage.cgroups(), root, at)?;
    shown.iter().try_for_each(|hierarchy| {
        bind(&hierarchy.mount, root, &at.join(hierarchy.controllers.join(",")))
    })
}

fn bind(source: &Path, root: &Tree, at: &Path) -> Result<(), Error> {
    Ok(Detached::bind(source, READ_ONLY | NO_EXEC)?.attach(root, at)?)
}
