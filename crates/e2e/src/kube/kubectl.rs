//! kubectl against one API server: commands that end, and watches that do not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::assets::Asset;
use crate::process::{Process, Program};
use crate::scene::Scene;

/// kubectl with a kubeconfig of its own.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    logs: PathBuf,
}

/// How somebody reaches an API server.
pub(super) struct Login<'l> {
    pub(super) user: &'l str,
    pub(super) token: &'l str,
    pub(super) port: u16,
    pub(super) certificate: &'l Path,
}

/// A `kubectl get --watch` in the background.
#[derive(Debug)]
pub struct Watching {
    process: Process,
}

// === impl Kubectl ===

impl Kubectl {
    pub(super) fn new(scene: &Scene, folder: &Path, login: &Login<'_>) -> Result<Self> {
        let authority = fs::read(login.certificate).context("read the API server's certificate")?;
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "e2e",
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": login.user}}],
            "users": [{"name": login.user, "user": {"token": login.token}}],
            "clusters": [{"name": "e2e", "cluster": {
                "server": format!("https://127.0.0.1:{}", login.port),
                "certificate-authority-data": STANDARD.encode(authority),
            }}],
        });
        let kubeconfig = folder.join(format!("kubeconfig-{}", login.user.replace(':', "-")));
        fs::write(&kubeconfig, config.to_string()).context("write the kubeconfig")?;
        let logs = scene.folder("logs")?;
        Ok(Self { program: scene.program(Asset::Kubectl)?, kubeconfig, logs })
    }

    /// What another program logs in with as the same user.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Runs a command and returns what it printed.
    pub async fn run(&self, arguments: &[&str]) -> Result<String> {
        self.run_with_input(arguments, b"").await
    }

    /// The same, with objects on standard input (`-f -`).
    pub async fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Result<String> {
        let mut child = Command::new(&self.program)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(arguments)
            .env("HOME", &self.logs)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("start kubectl")?;
        let mut stdin = child.stdin.take().context("kubectl has a standard input")?;
        let (written, output) =
            tokio::join!(async move { stdin.write_all(input).await }, child.wait_with_output());
        let output = output.context("wait for kubectl")?;
        ensure!(
            output.status.success(),
            "kubectl {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        );
        written.context("hand kubectl its input")?;
        String::from_utf8(output.stdout).context("kubectl prints text")
    }

    /// Runs a command with `-o json`.
    pub async fn json(&self, arguments: &[&str]) -> Result<Value> {
        let text = self.run(&[arguments, &["--output=json"]].concat()).await?;
        serde_json::from_str(&text).context("read kubectl's JSON")
    }

    /// Creates what the objects describe.
    pub async fn create(&self, objects: &[Value]) -> Result<String> {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        self.run_with_input(&["create", "--filename=-"], list.to_string().as_bytes()).await
    }

    /// Starts a watch; its output gathers in a log named after it.
    pub fn watch(&self, name: &str, arguments: &[&str]) -> Result<Watching> {
        let config = self.kubeconfig.display().to_string();
        let mut all = vec!["--kubeconfig".to_owned(), config];
        all.extend(arguments.iter().map(ToString::to_string));
        let process = Process::start(&Program {
            name: name.to_owned(),
            path: self.program.clone(),
            arguments: all,
            environment: vec![("HOME".to_owned(), self.logs.display().to_string())],
            log_folder: self.logs.clone(),
        })?;
        Ok(Watching { process })
    }
}

// === impl Watching ===

impl Watching {
    /// The lines seen so far, without the command that heads the log.
    pub fn lines(&mut self) -> Result<Vec<String>> {
        self.process.ensure_alive()?;
        Ok(self.process.log()?.lines().skip(1).map(ToOwned::to_owned).collect())
    }
}
