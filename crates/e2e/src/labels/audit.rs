//! What the API server was asked, and by whom: its audit log.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::scene::Scene;

/// The audit log of one API server.
#[derive(Debug)]
pub struct Audit {
    policy: PathBuf,
    log: PathBuf,
}

/// One answered request.
#[derive(Clone, Debug)]
pub struct Request {
    pub user: String,
    pub verb: String,
    pub resource: String,
    pub name: String,
    pub code: u64,
}

// === impl Audit ===

impl Audit {
    pub(super) fn new(scene: &Scene) -> Result<Self> {
        let folder = scene.folder("kube")?;
        let audit = Self { policy: folder.join("audit.json"), log: folder.join("audit.log") };
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1",
            "kind": "Policy",
            "omitStages": ["RequestReceived", "ResponseStarted"],
            "rules": [{"level": "Metadata"}],
        });
        fs::write(&audit.policy, policy.to_string()).context("write the audit policy")?;
        Ok(audit)
    }

    pub(super) fn flags(&self) -> Vec<String> {
        vec![
            format!("--audit-policy-file={}", self.policy.display()),
            format!("--audit-log-path={}", self.log.display()),
            // A storm writes more than the default of 100 MB; a rotated log would be counted short.
            "--audit-log-maxsize=4096".to_owned(),
        ]
    }

    /// Every request so far, in the order of their answers.
    pub fn requests(&self) -> Result<Vec<Request>> {
        let log = fs::read_to_string(&self.log).context("read the audit log")?;
        let complete = log.rfind('\n').map_or("", |end| &log[..end]);
        complete.lines().map(read).collect()
    }

    /// Successful patches of a Node by this user.
    pub fn node_patches(&self, user: &str, node: &str) -> Result<usize> {
        let requests = self.requests()?;
        let patches = requests.iter().filter(|request| {
            request.user == user
                && request.verb == "patch"
                && request.resource == "nodes"
                && request.name == node
                && request.code == 200
        });
        Ok(patches.count())
    }
}

fn read(line: &str) -> Result<Request> {
    let event: Value = serde_json::from_str(line).context("read a line of the audit log")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(Request {
        user: text(&event["user"]["username"]),
        verb: text(&event["verb"]),
        resource: text(&event["objectRef"]["resource"]),
        name: text(&event["objectRef"]["name"]),
        code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
    })
}
