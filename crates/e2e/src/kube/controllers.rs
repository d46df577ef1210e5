//! Starting kube-controller-manager on an API server. Whether it works shows in what its controllers do.

use std::time::Duration;

use anyhow::Result;

use super::Kubectl;
use crate::assets::Asset;
use crate::process::{Process, Program};
use crate::scene::Scene;

/// How often Nodes are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Some of the controllers of a cluster, running.
#[derive(Debug)]
pub struct Controllers {
    process: Process,
}

// === impl Controllers ===

impl Controllers {
    /// Starts the controllers of these names, logged in as kubectl is. They serve nothing and ask for no
    /// lease. A Node that is not heard of for `grace` is Unknown.
    pub fn start(
        scene: &Scene,
        kubectl: &Kubectl,
        name: String,
        (controllers, grace): (&[&str], Duration),
    ) -> Result<Self> {
        let flags = [
            ("kubeconfig", kubectl.kubeconfig().display().to_string()),
            ("controllers", controllers.join(",")),
            ("leader-elect", "false".to_owned()),
            ("secure-port", "0".to_owned()),
            ("node-monitor-grace-period", format!("{}s", grace.as_secs())),
            ("node-monitor-period", format!("{}s", LOOK_EVERY.as_secs())),
        ];
        let arguments = flags.into_iter().map(|(flag, value)| format!("--{flag}={value}"));
        let process = Process::start(&Program {
            name,
            path: scene.program(Asset::KubeControllerManager)?,
            arguments: arguments.collect(),
            environment: Vec::new(),
            log_folder: scene.folder("logs")?,
        })?;
        Ok(Self { process })
    }

    pub fn ensure_alive(&mut self) -> Result<()> {
        self.process.ensure_alive()
    }
}
