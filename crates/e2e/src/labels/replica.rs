//! One process of the service.

use std::path::Path;

use anyhow::Result;

use crate::replica::Replica;
use crate::scene::Scene;

/// Which half of the service a replica is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Watch,
    Process,
    /// Both in one process, as the administrator.
    Both,
}

// === impl Role ===

impl Role {
    const fn command(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Process => "process",
            Self::Both => "run",
        }
    }

    pub(super) fn launch(
        self,
        scene: &Scene,
        number: usize,
        kubeconfig: &Path,
        flags: &[&str],
    ) -> Result<Replica> {
        let mut arguments = vec!["labels".to_owned(), self.command().to_owned()];
        arguments.push(format!("--kubeconfig={}", kubeconfig.display()));
        arguments.extend(flags.iter().map(ToString::to_string));
        Replica::launch(scene, &format!("{}-{number}", self.command()), arguments)
    }
}
