//! Which runtimes there are, and what of the machine they need to know.

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Cause, Runtime};
use crate::{
    native::{self, Native},
    process::Process,
};

/// The runtimes that live in a shim. The fake one has no processes and thus no shim; see
/// [`fake`](crate::fake).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Containers. Needs root.
    Native,
    /// Plain processes. Needs nothing, isolates nothing, enforces no limits.
    Process,
}

/// What a runtime knows of the machine, whatever it runs there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Of the data directory. Two sites on one machine never touch each other's attempts.
    pub host_id: Uuid,
    /// Absolute. Attempts lie below; see the crate's documentation.
    pub data_dir: PathBuf,
    /// Directories that specs may name as their root.
    pub roots: BTreeMap<String, PathBuf>,
    pub permissions: Permissions,
    pub host_view: HostView,
}

/// What the machine's owner lets commands do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permissions {
    /// Commands may use the host's network.
    pub net_host: bool,
    /// Commands on the host view may be uid 0.
    pub host_root: bool,
}

/// What of the host a command sees when it brings no root of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostView {
    /// Bound in, read-only, where they exist.
    pub binds: Vec<PathBuf>,
    /// Hidden even below a bind: keys, configuration and data of this program.
    pub hidden: Vec<PathBuf>,
}

// === impl Kind ===

impl Kind {
    /// Whether limits are held, or only asked for.
    #[must_use]
    pub fn enforces_limits(self) -> bool {
        match self {
            Self::Native => true,
            Self::Process => false,
        }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Process => "process",
        }
    }

    /// Readies the machine for a daemon, which is this process. Comes before its first shim, because
    /// shims are where the daemon is.
    pub(crate) fn settle(self, site: &Site) -> Result<(), Cause> {
        match self {
            Self::Native => Ok(native::settle(site)?),
            Self::Process => Ok(()),
        }
    }

    /// Gives back what the machine keeps for a site, once it has no attempts.
    pub(crate) fn retire(self, site: &Site) -> Result<(), Cause> {
        match self {
            Self::Native => Ok(native::retire(site)?),
            Self::Process => Ok(()),
        }
    }

    pub(crate) fn open(self, site: &Site) -> Box<dyn Runtime> {
        match self {
            Self::Native => Box::new(Native::new(site)),
            Self::Process => Box::new(Process::new(site)),
        }
    }
}

// === impl HostView ===

impl Default for HostView {
    fn default() -> Self {
        let binds = ["/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
        let binds = binds.into_iter().chain(["/nix/store"]).map(PathBuf::from).collect();
        Self { binds, hidden: Vec::new() }
    }
}
