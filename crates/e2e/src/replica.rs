//! One process of a Kubernetes service: it tells over HTTP whether it is ready, and what it counts.

use std::time::Duration;

use anyhow::Result;

use crate::assets::Asset;
use crate::process::{Process, Program};
use crate::scene::Scene;
use crate::wait::{Level, wait_for};
use crate::{http, ports};

/// A replica is ready when its watches are; on a busy machine the first list takes a while.
const READY_WAIT: Duration = Duration::from_secs(60);

/// A running replica.
#[derive(Debug)]
pub struct Replica {
    process: Process,
    port: u16,
}

// === impl Replica ===

impl Replica {
    /// Starts `windlass` with these arguments and one that says where to listen.
    pub fn launch(scene: &Scene, name: &str, arguments: Vec<String>) -> Result<Self> {
        Self::launch_in(scene, name, arguments, Vec::new())
    }

    /// The same, with more in its environment.
    pub fn launch_in(
        scene: &Scene,
        name: &str,
        mut arguments: Vec<String>,
        environment: Vec<(String, String)>,
    ) -> Result<Self> {
        let [port] = ports::free()?;
        arguments.push(format!("--listen=127.0.0.1:{port}"));
        let process = Process::start(&Program {
            name: name.to_owned(),
            path: scene.program(Asset::Windlass)?,
            arguments,
            environment,
            log_folder: scene.folder("logs")?,
        })?;
        Ok(Self { process, port })
    }

    pub async fn wait_ready(&mut self) -> Result<()> {
        let port = self.port;
        let process = &mut self.process;
        wait_for("a replica to be ready", READY_WAIT, async || {
            process.ensure_alive()?;
            Ok(match http::get(port, "/readyz?verbose").await {
                Ok(answer) if answer.status == 200 => Level::Reached(()),
                Ok(answer) => Level::Below(format!("{}: {}", answer.status, answer.body)),
                Err(error) => Level::Below(format!("{error:#}")),
            })
        })
        .await
    }

    /// What `/readyz` says: whether it is ready, and why not.
    pub async fn readiness(&self) -> Result<(bool, String)> {
        let answer = http::get(self.port, "/readyz?verbose").await?;
        Ok((answer.status == 200, answer.body))
    }

    /// The page of metrics.
    pub async fn metrics(&self) -> Result<String> {
        Ok(http::get(self.port, "/metrics").await?.body)
    }

    /// The value of a metric, summed over its labels; zero if it was never touched.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        http::metric(self.port, name).await
    }

    #[must_use]
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    pub fn ensure_alive(&mut self) -> Result<()> {
        self.process.ensure_alive()
    }

    /// SIGSTOP: it neither ends nor notices that time passes.
    pub async fn pause(&self) -> Result<()> {
        self.process.pause().await
    }

    pub fn resume(&self) -> Result<()> {
        self.process.resume()
    }

    /// SIGTERM and a clean end.
    pub async fn stop(self) -> Result<()> {
        let status = self.process.stop().await?;
        anyhow::ensure!(status.success(), "a replica ended with {status}");
        Ok(())
    }

    pub fn kill(self) -> Result<()> {
        self.process.kill()
    }

    #[must_use]
    pub fn into_process(self) -> Process {
        self.process
    }
}
