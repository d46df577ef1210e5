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
    pub namespace: String,
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
        self.follow()?.collect()
    }

    /// One by one, from the first; what comes later is there when asked again.
    pub fn follow(&self) -> Result<impl Iterator<Item = Result<Request>> + use<>> {
        Ok(self.log.read()?.map(|event| event.map(|event| read(&event))))
    }
}

fn read(event: &Value) -> Request {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Request {
        user: text(&event["user"]["username"]),
        verb: text(&event["verb"]),
        resource: text(&event["objectRef"]["resource"]),
        namespace: text(&event["objectRef"]["namespace"]),
        name: text(&event["objectRef"]["name"]),
        code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
    }
}
