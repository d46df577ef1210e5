//! The audit log of an API server: what it was asked, by whom, and what it answered.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::scene::Scene;

/// The audit log of one API server.
#[derive(Clone, Debug)]
pub struct Audit {
    policy: PathBuf,
    log: PathBuf,
}

// === impl Audit ===

impl Audit {
    /// `rules` are those of an audit policy: which requests are kept, and how much of each.
    pub fn new(scene: &Scene, rules: &Value) -> Result<Self> {
        let folder = scene.folder("kube")?;
        let audit = Self { policy: folder.join("audit.json"), log: folder.join("audit.log") };
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived", "ResponseStarted"],
            "rules": rules,
        });
        fs::write(&audit.policy, policy.to_string()).context("write the audit policy")?;
        Ok(audit)
    }

    /// What makes an API server write it.
    #[must_use]
    pub fn flags(&self) -> Vec<String> {
        vec![
            format!("--audit-policy-file={}", self.policy.display()),
            format!("--audit-log-path={}", self.log.display()),
            // A storm writes more than the default of 100 MB; a rotated log would be counted short.
            "--audit-log-maxsize=4096".to_owned(),
        ]
    }

    /// Every answered request so far, in the order of their answers.
    pub fn events(&self) -> Result<Vec<Value>> {
        let log = fs::read_to_string(&self.log).context("read the audit log")?;
        let complete = log.rfind('\n').map_or("", |end| &log[..end]);
        let read = |line| serde_json::from_str(line).context("read a line of the audit log");
        complete.lines().map(read).collect()
    }
}
