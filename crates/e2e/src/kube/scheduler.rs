//! Starting kube-scheduler on an API server. Whether it works shows when it places a pod.

use std::fs;

use anyhow::{Context, Result};
use serde_json::json;

use super::Kubectl;
use crate::assets::Asset;
use crate::process::{Process, Program};
use crate::scene::Scene;

/// Requests a second; the default is meant for a cluster that others use too.
const REQUESTS_PER_SECOND: u32 = 1000;

/// A running scheduler.
#[derive(Debug)]
pub struct Scheduler {
    process: Process,
}

// === impl Scheduler ===

impl Scheduler {
    /// Starts a scheduler that logs in as kubectl does. It serves nothing and asks for no lease.
    pub fn start(scene: &Scene, kubectl: &Kubectl, flags: &[&str]) -> Result<Self> {
        let kubeconfig = kubectl.kubeconfig().display().to_string();
        let configuration = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {
                "kubeconfig": kubeconfig,
                "qps": REQUESTS_PER_SECOND,
                "burst": REQUESTS_PER_SECOND,
            },
            "leaderElection": {"leaderElect": false},
            // The shortest there is, for a pod that came before its node.
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 1,
        });
        let file = scene.folder("kube")?.join("scheduler.json");
        fs::write(&file, configuration.to_string()).context("write the scheduler's file")?;
        let mut arguments =
            vec![format!("--config={}", file.display()), "--secure-port=0".to_owned()];
        arguments.extend(flags.iter().map(ToString::to_string));
        let process = Process::start(&Program {
            name: "kube-scheduler".to_owned(),
            path: scene.program(Asset::KubeScheduler)?,
            arguments,
            environment: Vec::new(),
            log_folder: scene.folder("logs")?,
        })?;
        Ok(Self { process })
    }

    pub fn ensure_alive(&mut self) -> Result<()> {
        self.process.ensure_alive()
    }
}
