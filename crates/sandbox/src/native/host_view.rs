//! A root made of the host's programs, for commands that bring none.
//!
//! A skeleton of empty directories with the host's program directories bound in, read-only and without
//! what is mounted below them. Links stay links. Secrets are hidden wherever they lie in it, ours
//! included. It is not an overlay over the host's `/`: that would show every home and every secret,
//! and is undefined while the host changes beneath it.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Component, Path, PathBuf},
};

use super::{
    mount::{Detached, READ_ONLY, Tree},
    stage::{self, Ownership, Stage},
};
use crate::{Network, Site, User};

/// Where the kernel's file systems go, and the directories programs expect to write to.
const SKELETON: [(&str, u32); 7] = [
    ("dev", 0o755),
    ("proc", 0o555),
    ("run", 0o755),
    ("sys", 0o555),
    ("tmp", 0o1777),
    ("var", 0o755),
    ("var/tmp", 0o1777),
];

/// What nobody but the host itself needs. Most of it only root could read, but a command may be root.
const SECRETS: [&str; 12] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/etc/kubernetes",
    "/etc/windlass",
];

const RESOLV_CONF: &str = "/etc/resolv.conf";

/// How far a link at [`RESOLV_CONF`] may lead.
const RESOLV_CONF_BYTES_MAX: u64 = 64 << 10;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot build the skeleton")]
    Skeleton(#[from] stage::Error),
    #[error("cannot look at {path}")]
    Look { path: PathBuf, source: io::Error },
    #[error("cannot copy the link {path}")]
    Link { path: PathBuf, source: io::Error },
    #[error("cannot copy {path}")]
    Copy { path: PathBuf, source: io::Error },
    #[error("cannot bind the host's directories")]
    Mount(#[from] super::mount::Error),
    #[error("{path} cannot be part of the host view: paths are absolute and plain")]
    NotPlain { path: PathBuf },
}

/// One path of the host that is to be seen.
enum Seen {
    /// The same link.
    Link(PathBuf),
    Dir,
    File,
}

/// Makes the skeleton, with `user` as the owner of what it may write to.
pub(super) fn build_skeleton(
    site: &Site,
    stage: &Stage,
    user: User,
    network: Network,
) -> Result<(), Error> {
    let lower = stage.lower();
    for (name, mode) in SKELETON {
        let dir = lower.join(name);
        stage::make_dir(&dir, mode)?;
        // Set again: what was asked for at the making went through the mask of the process.
        Ownership { uid: user.uid, gid: user.gid, mode }.give_to(&dir)?;
    }
    for bind in &site.host_view.binds {
        place(&lower, bind)?;
    }
    match network {
        Network::Host => copy_resolv_conf(&lower),
        Network::None => Ok(()),
    }
}

/// Binds the host's directories into `root` and hides what must not be seen.
pub(super) fn bind(site: &Site, stage: &Stage, root: &Tree) -> Result<(), Error> {
    let hidden = hidden(site)?;
    // Where it is seen, and where it lies: a bind below a link is seen elsewhere than it lies.
    let mut masked = BTreeMap::new();
    for bind in &site.host_view.binds {
        if !matches!(seen(bind)?, Some(Seen::Dir | Seen::File)) {
            continue;
        }
        let look = |source| Error::Look { path: bind.clone(), source };
        let real = bind.canonicalize().map_err(look)?;
        if hidden.iter().any(|hidden| real.starts_with(hidden)) {
            continue;
        }
        Detached::bind(bind, READ_ONLY)?.attach(root, bind)?;
        let below = hidden.iter().filter_map(|path| Some((path.strip_prefix(&real).ok()?, path)));
        masked.extend(below.map(|(within, path)| (bind.join(within), path)));
    }
    masked.iter().try_for_each(|(seen, path)| hide(stage, root, seen, path))
}

/// Covers with nothing what lies at `path` of the host and is seen at `seen`.
fn hide(stage: &Stage, root: &Tree, seen: &Path, path: &Path) -> Result<(), Error> {
    // Below a mount that the bind left out, there is nothing to hide.
    let Some(place) = root.existing(seen)? else { return Ok(()) };
    let is_dir = fs::metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let blank = if is_dir { stage.blank_dir() } else { stage.blank_file() };
    Ok(Detached::bind(&blank, READ_ONLY)?.attach_to(place, seen)?)
}

/// What must not be seen and is there, by the path it really has.
fn hidden(site: &Site) -> Result<Vec<PathBuf>, Error> {
    let secrets = SECRETS.iter().map(Path::new);
    let own = site.host_view.hidden.iter().chain([&site.data_dir]).map(PathBuf::as_path);
    let mut hidden = Vec::new();
    for path in secrets.chain(own) {
        match path.canonicalize() {
            Ok(real) => hidden.push(real),
            Err(source) if source.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::Look { path: path.to_owned(), source }),
        }
    }
    Ok(hidden)
}

/// Makes the place in the skeleton where `bind` will be seen.
fn place(lower: &Path, bind: &Path) -> Result<(), Error> {
    let Some(seen) = seen(bind)? else { return Ok(()) };
    let relative = plain(bind)?;
    let target = lower.join(relative);
    if let Some(parent) = target.parent() {
        let made = fs::create_dir_all(parent);
        made.map_err(|source| Error::Link { path: parent.to_owned(), source })?;
    }
    match seen {
        Seen::Link(to) => std::os::unix::fs::symlink(to, &target)
            .map_err(|source| Error::Link { path: bind.to_owned(), source }),
        Seen::Dir => Ok(stage::make_dir(&target, 0o755)?),
        Seen::File => Ok(stage::write(&target, b"", 0o444)?),
    }
}

/// The path below `/`, if it says plainly where it leads.
fn plain(path: &Path) -> Result<&Path, Error> {
    let relative = path.strip_prefix("/").ok();
    let is_plain =
        |path: &&Path| path.components().all(|part| matches!(part, Component::Normal(_)));
    relative.filter(is_plain).ok_or_else(|| Error::NotPlain { path: path.to_owned() })
}

fn seen(path: &Path) -> Result<Option<Seen>, Error> {
    let look = |source| Error::Look { path: path.to_owned(), source };
    let metadata = match fs::symlink_metadata(path) {
        Err(source) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata.map_err(look)?,
    };
    Ok(Some(match metadata.file_type() {
        kind if kind.is_symlink() => Seen::Link(fs::read_link(path).map_err(look)?),
        kind if kind.is_dir() => Seen::Dir,
        _ => Seen::File,
    }))
}

/// Name servers are often listed in a file below `/run`, which the view leaves out: a copy of that file
/// is put where the link leads.
fn copy_resolv_conf(lower: &Path) -> Result<(), Error> {
    let copy = |source| Error::Copy { path: RESOLV_CONF.into(), source };
    let Ok(real) = Path::new(RESOLV_CONF).canonicalize() else { return Ok(()) };
    let Ok(in_run) = real.strip_prefix("/run") else { return Ok(()) };
    if fs::metadata(&real).map_err(copy)?.len() > RESOLV_CONF_BYTES_MAX {
        return Err(copy(io::ErrorKind::FileTooLarge.into()));
    }
    let target = lower.join("run").join(in_run);
    let parent = target.parent().expect("the file lies below `run`");
    fs::create_dir_all(parent).map_err(copy)?;
    fs::copy(&real, &target).map_err(copy)?;
    Ok(())
}
