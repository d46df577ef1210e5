//! An API server in memory: objects with uid and resource version, guards that hold, and faults on
//! demand.

use std::{collections::BTreeMap, sync::Arc};

use http::{Request, Response};
use kube::{Client, client::Body};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    core::{names::TransactionName, object::Document},
    kubernetes::document,
};

/// Clones are the same server.
#[derive(Clone, Default)]
pub(super) struct Server {
    state: Arc<Mutex<State>>,
    /// Tells that the process has died.
    pub(super) died: Arc<Notify>,
}

#[derive(Default)]
struct State {
    /// By what it is called here: `node a`, `record a`, `transaction 10`, `lock a`.
    objects: BTreeMap<String, Value>,
    rv: u64,
    conversation: String,
    faults: Vec<(String, Fault)>,
    /// Writes until the process dies.
    writes_left: Option<(usize, bool)>,
}

/// What happens instead of an answer.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// Nothing is done.
    Refuse(Value),
    /// It is done, and the answer is lost.
    DoneButUnanswered,
}

/// What is asked.
struct Ask {
    method: String,
    /// What it is about, without a name when something is created.
    target: String,
    body: Value,
}

type Answer = (u16, Value);

// === impl Server ===

impl Server {
    pub(super) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request| server.clone().serve(request));
        Client::new(service, "default")
    }

    /// The next request of this kind, such as `PATCH node a`, fails.
    pub(super) fn fail(&self, request: &str, fault: Fault) {
        self.state.lock().faults.push((request.to_owned(), fault));
    }

    /// The process dies at its write number `nth`, before or after that is done.
    pub(super) fn die_at(&self, nth: usize, is_done: bool) {
        self.state.lock().writes_left = Some((nth, is_done));
    }

    /// Whoever comes next lives on.
    pub(super) fn revive(&self) {
        self.state.lock().writes_left = None;
    }

    pub(super) fn put(&self, target: &str, object: Value) {
        self.state.lock().put(target, object);
    }

    pub(super) fn remove(&self, target: &str) {
        self.state.lock().objects.remove(target);
    }

    /// As a watcher does.
    pub(super) fn post(&self, transaction: &Document) {
        let name: TransactionName = transaction.name.parse().unwrap();
        let metadata = json!({
            "name": transaction.name, "annotations": transaction.annotations,
            "labels": transaction.labels,
        });
        let object = json!({ "metadata": metadata, "data": transaction.data });
        self.put(&format!("transaction {}", name.rv()), object);
    }

    pub(super) fn get(&self, target: &str) -> Option<Value> {
        self.state.lock().objects.get(target).cloned()
    }

    pub(super) fn transactions(&self) -> Vec<Document> {
        let state = self.state.lock();
        let queued = state.objects.iter().filter(|(target, _)| target.starts_with("transaction"));
        queued
            .map(|(_, object)| document(serde_json::from_value(object.clone()).unwrap()))
            .collect()
    }

    /// Everything that was asked, with the code of the answer.
    pub(super) fn conversation(&self) -> String {
        std::mem::take(&mut self.state.lock().conversation)
    }

    /// What is left, without what differs from run to run. The lock of one who died after its last
    /// transaction is for resync.
    pub(super) fn leftovers(&self) -> BTreeMap<String, Value> {
        let mut objects = self.state.lock().objects.clone();
        objects.remove("lock a");
        for object in objects.values_mut() {
            let metadata = object["metadata"].as_object_mut().unwrap();
            metadata.remove("resourceVersion");
            metadata.remove("uid");
            if let Some(annotations) = metadata.get_mut("annotations") {
                annotations.as_object_mut().unwrap().remove("labels.windlass.dev/restored-node-rv");
            }
        }
        objects
    }

    async fn serve(self, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        let method = request.method().to_string();
        let path = request.uri().path().to_owned();
        let body = request.into_body().collect_bytes().await?;
        let body =
            if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
        let ask = Ask { target: target(&path, &body), method, body };
        let answer = self.state.lock().answer(&ask);
        let Some((code, body)) = answer else {
            self.died.notify_one();
            return std::future::pending().await;
        };
        let body = Body::from(serde_json::to_vec(&body).unwrap());
        Ok(Response::builder().status(code).body(body).unwrap())
    }
}

// === impl State ===

impl State {
    /// None if nobody lives to hear it.
    fn answer(&mut self, ask: &Ask) -> Option<Answer> {
        let line = format!("{} {}", ask.method, ask.target);
        let is_write = ask.method != "GET" && !ask.target.starts_with("event");
        if is_write && let Some((left, is_done)) = self.writes_left.as_mut() {
            if *left == 0 {
                if std::mem::take(is_done) {
                    self.carry_out(ask);
                }
                return None;
            }
            *left -= 1;
        }
        let fault = self.faults.iter().position(|(request, _)| *request == line);
        let (code, body) = match fault.map(|at| self.faults.remove(at).1) {
            Some(Fault::Refuse(status)) => refused(status),
            Some(Fault::DoneButUnanswered) => {
                self.carry_out(ask);
                refused(json!({"code": 504}))
            }
            None => self.carry_out(ask),
        };
        self.conversation += &format!("{line} {code}\n");
        Some((code, body))
    }

    fn carry_out(&mut self, ask: &Ask) -> Answer {
        let Ask { method, target, body } = ask;
        let present = self.objects.get(target).cloned();
        match (method.as_str(), present) {
            ("POST", _) if target.starts_with("event") => (201, body.clone()),
            ("POST", None) => (201, self.put(target, body.clone())),
            ("POST", Some(_)) => refused(json!({"code": 409, "reason": "AlreadyExists"})),
            (_, None) => refused(json!({"code": 404, "reason": "NotFound"})),
            ("GET", Some(object)) => (200, object),
            ("PATCH", Some(object)) if differs(&object, &body["metadata"], "uid") => {
                let cause = json!({"field": "metadata.uid", "reason": "FieldValueInvalid"});
                let name = object["metadata"]["name"].clone();
                let details = json!({"name": name, "causes": [cause]});
                refused(json!({"code": 422, "reason": "Invalid", "details": details}))
            }
            ("PATCH" | "PUT", Some(object)) if !holds(&object, &body["metadata"]) => conflict(),
            ("PATCH", Some(mut object)) => {
                merge(&mut object, body);
                (200, self.put(target, object))
            }
            ("PUT", Some(_)) => (200, self.put(target, body.clone())),
            ("DELETE", Some(object)) if !holds(&object, &body["preconditions"]) => conflict(),
            ("DELETE", Some(object)) => {
                self.objects.remove(target);
                (200, object)
            }
            (method, _) => panic!("{method} is nothing that the service asks for"),
        }
    }

    fn put(&mut self, target: &str, mut object: Value) -> Value {
        self.rv += 1;
        let metadata = &mut object["metadata"];
        metadata["resourceVersion"] = json!(self.rv.to_string());
        if metadata["uid"].is_null() {
            metadata["uid"] = json!(format!("uid-{}", self.rv));
        }
        self.objects.insert(target.to_owned(), object.clone());
        object
    }
}

fn conflict() -> Answer {
    refused(json!({"code": 409, "reason": "Conflict"}))
}

fn refused(mut status: Value) -> Answer {
    status["status"] = json!("Failure");
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap();
    (code, status)
}

/// Whether the guards, where there are any, name this state of the object.
fn holds(object: &Value, guards: &Value) -> bool {
    !differs(object, guards, "uid") && !differs(object, guards, "resourceVersion")
}

fn differs(object: &Value, guards: &Value, field: &str) -> bool {
    guards[field].is_string() && guards[field] != object["metadata"][field]
}

/// RFC 7386.
fn merge(object: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (field, change) in fields {
        if change.is_null() {
            object.as_object_mut().unwrap().remove(field);
        } else {
            merge(&mut object[field], change);
        }
    }
}

/// What a path speaks of, in the words of these tests.
fn target(path: &str, body: &Value) -> String {
    let created = body["metadata"]["name"].as_str().unwrap_or_default();
    let name = |collection: &str| {
        let rest = path.strip_prefix(collection)?;
        Some(rest.strip_prefix('/').unwrap_or(created).to_owned())
    };
    let transactions = "/api/v1/namespaces/node-metadata-transactions/configmaps";
    let locks = "/apis/coordination.k8s.io/v1/namespaces/node-metadata-transactions/leases";
    if let Some(name) = name("/api/v1/nodes") {
        format!("node {name}")
    } else if let Some(name) = name("/api/v1/namespaces/node-metadata/configmaps") {
        format!("record {name}")
    } else if let Some(name) = name(transactions) {
        format!("transaction {}", name.rsplit('.').next().unwrap())
    } else if let Some(name) = name(locks) {
        format!("lock {name}")
    } else if path.starts_with("/apis/events.k8s.io/") {
        format!("event {}", body["reason"].as_str().unwrap())
    } else {
        panic!("{path} is nothing that the service asks for")
    }
}
