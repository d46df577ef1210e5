//! The binary as people call it: one command, its words and its exit code.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use super::net::Network;
use crate::assets::Asset;
use crate::scene::Scene;

/// No command of a test takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A binary, and the node it asks.
#[derive(Clone, Debug)]
pub struct Windlass {
    program: PathBuf,
    /// What comes before the first word of a call.
    prefix: Vec<String>,
    /// `--node` of every call.
    address: String,
    /// Behind it.
    identity: Vec<String>,
}

/// How a command ended.
#[derive(Clone, Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

// === impl Windlass ===

impl Windlass {
    pub fn asking(scene: &Scene, address: &str) -> Result<Self> {
        let program = scene.program(Asset::Windlass)?;
        let (prefix, identity) = (Vec::new(), Vec::new());
        Ok(Self { program, prefix, address: address.to_owned(), identity })
    }

    /// Asks from within a network.
    #[must_use]
    pub fn within(self, network: &Network) -> Self {
        let prefix = vec![format!("--net={}", network.path()), self.program.display().to_string()];
        Self { program: PathBuf::from("nsenter"), prefix, ..self }
    }

    /// Is known by these flags.
    #[must_use]
    pub fn known_by(self, identity: &[String]) -> Self {
        Self { identity: identity.to_vec(), ..self }
    }

    /// Runs one command, with the address behind its first words.
    pub async fn call(&self, verb: &[&str], arguments: &[&str]) -> Result<Said> {
        let output = self.command(verb, arguments).output();
        let output = timeout(PATIENCE, output).await;
        let output = output.with_context(|| format!("{verb:?} {arguments:?} does not end"))?;
        Ok(Said::from(output.context("run windlass")?))
    }

    /// `windlass run` and these.
    pub async fn run(&self, arguments: &[&str]) -> Result<Said> {
        self.call(&["run"], arguments).await
    }

    /// `windlass run --detach`; the id of the task.
    pub async fn detach(&self, arguments: &[&str]) -> Result<String> {
        let said = self.call(&["run", "--detach"], arguments).await?;
        ensure!(said.code == Some(0), "{said:?}");
        Ok(said.stdout.trim().to_owned())
    }

    /// `windlass task` and these, answered in JSON.
    pub async fn json(&self, verb: &[&str], arguments: &[&str]) -> Result<Value> {
        let said = self.call(verb, &[&["-o", "json"], arguments].concat()).await?;
        ensure!(said.code == Some(0), "{verb:?}: {said:?}");
        serde_json::from_str(&said.stdout).with_context(|| format!("read {}", said.stdout))
    }

    /// The command, for who wants to see it run.
    #[must_use]
    pub fn command(&self, verb: &[&str], arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.prefix).args(verb).args(["--node", &self.address]);
        command.args(&self.identity).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        command
    }
}

// === impl Said ===

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}
