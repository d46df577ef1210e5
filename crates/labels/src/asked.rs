//! An API server that answers reads from what it was given, and remembers what it was asked.

use std::{collections::BTreeMap, sync::Arc};

use http::{Request, Response};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};

pub(crate) const NODES: &str = "/api/v1/nodes";
pub(crate) const RECORDS: &str = "/api/v1/namespaces/node-metadata/configmaps";
pub(crate) const CHECKPOINTS: &str = "/api/v1/namespaces/node-metadata-checkpoints/configmaps";
pub(crate) const WATCHERS: &str =
    "/apis/coordination.k8s.io/v1/namespaces/node-metadata-checkpoints/leases";

/// Clones are the same server.
#[derive(Clone, Default)]
pub(crate) struct Server {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// By path; of several answers each is given once, the last one from then on.
    answers: BTreeMap<String, Vec<Value>>,
    asked: Vec<String>,
    refusals: Vec<(String, Value)>,
    told: Vec<(String, String)>,
}

// === impl Server ===

impl Server {
    pub(crate) fn with(self, path: &str, answer: Value) -> Self {
        self.state.lock().answers.entry(path.to_owned()).or_default().push(answer);
        self
    }

    pub(crate) fn with_list(self, path: &str, items: &[Value]) -> Self {
        self.with(path, json!({"metadata": {"resourceVersion": "99"}, "items": items}))
    }

    /// Refuses this once, such as `POST /api/v1/nodes`.
    pub(crate) fn refusing(self, request: &str, status: Value) -> Self {
        self.state.lock().refusals.push((request.to_owned(), status));
        self
    }

    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request| server.clone().serve(request));
        Client::new(service, "default")
    }

    /// Why people were told something.
    pub(crate) fn told(&self) -> Vec<String> {
        self.state.lock().told.iter().map(|(reason, _)| reason.clone()).collect()
    }

    /// What people were told.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.state.lock().told.iter().map(|(_, note)| note.clone()).collect()
    }

    async fn serve(self, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
        let body = request.into_body().collect_bytes().await?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let (code, body) = self.state.lock().answer(&method, &path, body);
        let body = Body::from(serde_json::to_vec(&body).unwrap());
        Ok(Response::builder().status(code).body(body).unwrap())
    }

    /// What was asked other than to read.
    pub(crate) fn writes(&self) -> Vec<String> {
        let state = self.state.lock();
        state.asked.iter().filter(|asked| !asked.starts_with("GET")).cloned().collect()
    }
}

// === impl State ===

impl State {
    fn answer(&mut self, method: &str, path: &str, body: Value) -> (u16, Value) {
        if path.ends_with("/events") {
            let text = |field: &str| body[field].as_str().unwrap_or_default().to_owned();
            self.told.push((text("reason"), text("note")));
            return (201, body);
        }
        let line = format!("{method} {path}");
        self.asked.push(line.clone());
        if let Some(at) = self.refusals.iter().position(|(refused, _)| *refused == line) {
            let mut status = self.refusals.remove(at).1;
            status["status"] = json!("Failure");
            return (
                status["code"].as_u64().and_then(|code| code.try_into().ok()).unwrap(),
                status,
            );
        }
        match method {
            "GET" => self.read(path),
            "POST" => (201, written(body)),
            "DELETE" => (200, json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})),
            _ => (200, written(body)),
        }
    }

    /// What nobody was told of is an empty list, or does not exist.
    fn read(&mut self, path: &str) -> (u16, Value) {
        if let Some(answers) = self.answers.get_mut(path) {
            let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
            return (200, answer);
        }
        if path.ends_with("configmaps") || path.ends_with("leases") || path == NODES {
            return (200, json!({"metadata": {"resourceVersion": "99"}, "items": []}));
        }
        (404, json!({"status": "Failure", "code": 404, "reason": "NotFound"}))
    }
}

fn written(mut object: Value) -> Value {
    object["metadata"]["uid"] = json!("written");
    object["metadata"]["resourceVersion"] = json!("100");
    object
}
