//! What a command sees as `/`, from nothing to the moment its container is created.

use std::path::PathBuf;

use rustix::{fs::Mode, process::umask};

use super::{
    host_view, kernel_files,
    stage::{self, Ownership, Stage},
};
use crate::{Root, Site, Spec, cgroup::Group};

/// Taken from the modes of new directories: others may enter and not write.
const MASK: Mode = Mode::WGRP.union(Mode::WOTH);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot set the stage")]
    Stage(#[from] stage::Error),
    #[error("cannot build the host view")]
    HostView(#[from] host_view::Error),
    #[error("cannot show the kernel's files")]
    KernelFiles(#[from] kernel_files::Error),
    #[error("this node has no root named {name:?}")]
    UnknownRoot { name: String },
}

/// Builds the root of `spec` at the stage. Runs in the shim's own mount namespace.
pub(super) fn build(site: &Site, spec: &Spec, stage: &Stage, group: &Group) -> Result<(), Error> {
    // What is made here is for the command to enter, whatever the node keeps to itself.
    let mask = umask(MASK);
    let built = build_unmasked(site, spec, stage, group);
    umask(mask);
    built
}

fn build_unmasked(site: &Site, spec: &Spec, stage: &Stage, group: &Group) -> Result<(), Error> {
    stage.build()?;
    let lower = lower(site, spec, stage)?;
    // The merged root has the ownership of what lies on top.
    let ownership = match spec.root {
        Root::HostView => Ownership { uid: spec.user.uid, gid: spec.user.gid, mode: 0o755 },
        Root::Named { .. } => Ownership::of(&lower)?,
    };
    stage.build_scratch(&spec.limits, ownership)?;
    let root = stage.mount_root(&lower, spec.limits.scratch_medium)?;
    if spec.root == Root::HostView {
        host_view::bind(site, stage, &root)?;
    }
    kernel_files::mount_dev(&root)?;
    Ok(kernel_files::mount_sys(&root, stage, group)?)
}

/// What is only read.
fn lower(site: &Site, spec: &Spec, stage: &Stage) -> Result<PathBuf, Error> {
    match &spec.root {
        Root::HostView => {
            host_view::build_skeleton(site, stage, spec.user, spec.network)?;
            Ok(stage.lower())
        }
        Root::Named { name } => {
            site.roots.get(name).cloned().ok_or_else(|| Error::UnknownRoot { name: name.clone() })
        }
    }
}
