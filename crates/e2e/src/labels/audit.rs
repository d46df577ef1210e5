//! What the API server was asked, and by whom: its audit log.

use anyhow::Result;
use serde_json::{Value, json};

use crate::kube;
use crate::scene::Scene;

/// The audit log of one API server.
#[derive(Debug)]
pub struct Audit {
    log: kube::Audit,
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
        Ok(Self { log: kube::Audit::new(scene, &json!([{"level": "Metadata"}]))? })
    }

    pub(super) fn flags(&self) -> Vec<String> {
        self.log.flags()
    }

    /// Every request so far, in the order of their answers.
    pub fn requests(&self) -> Result<Vec<Request>> {
        Ok(self.log.events()?.iter().map(read).collect())
    }
}

fn read(event: &Value) -> Request {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Request {
        user: text(&event["user"]["username"]),
        verb: text(&event["verb"]),
        resource: text(&event["objectRef"]["resource"]),
        name: text(&event["objectRef"]["name"]),
        code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
    }
}
