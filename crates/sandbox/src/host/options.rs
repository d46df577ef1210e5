//! How a host is opened, and what it is told to start.

use std::{collections::BTreeMap, path::PathBuf};

use uuid::Uuid;

use crate::{
    AttemptId, Spec, fake,
    runtime::{HostView, Kind, Permissions, Site},
};

/// How to open a [`Host`](crate::Host).
#[derive(Clone, Debug)]
pub struct Options {
    /// Made if it is not there. Belongs to one host at a time.
    pub data_dir: PathBuf,
    /// For a directory that has no host id yet; one that has keeps its own.
    pub fresh_host_id: Uuid,
    pub engine: Engine,
    /// Directories that specs may name as their root.
    pub roots: BTreeMap<String, PathBuf>,
    pub permissions: Permissions,
    pub host_view: HostView,
}

/// What runs the attempts.
#[derive(Clone, Debug)]
pub enum Engine {
    /// A shim for each.
    Shim {
        kind: Kind,
        /// The binary whose command `shim` calls [`shim::main`](crate::shim::main). It is copied
        /// once, when the host opens: replacing the file changes no host that runs.
        program: PathBuf,
    },
    /// Nothing runs: attempts are simulated in this process, on tokio's clock.
    Fake(fake::Machine),
}

/// One attempt to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Never used before.
    pub id: AttemptId,
    pub spec: Spec,
    /// Kept with the result and given back with it after a restart; means nothing here. At most
    /// [`NOTE_BYTES_MAX`].
    pub note: Vec<u8>,
}

/// Enough for a few ids.
pub const NOTE_BYTES_MAX: usize = 1024;

// === impl Options ===

impl Options {
    /// The running program as shim, with nothing allowed.
    #[must_use]
    pub fn new(data_dir: PathBuf, fresh_host_id: Uuid, kind: Kind) -> Self {
        Self {
            data_dir,
            fresh_host_id,
            engine: Engine::Shim { kind, program: PathBuf::from("/proc/self/exe") },
            roots: BTreeMap::new(),
            permissions: Permissions::default(),
            host_view: HostView::default(),
        }
    }

    /// What runtimes are told; the directory must be absolute by now.
    pub(super) fn site(&self, host_id: Uuid, data_dir: PathBuf) -> Site {
        Site {
            host_id,
            data_dir,
            roots: self.roots.clone(),
            permissions: self.permissions,
            host_view: self.host_view.clone(),
        }
    }
}
