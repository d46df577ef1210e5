//! What the sharder asks of the API server about its fence.

use std::sync::Arc;

use http::{Method, Request as HttpRequest, Response};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;

use super::*;
use crate::core::names::Dialect;

const HOME: &str = "windlass-system";

/// Answers every request with this code, and notes what was asked. What can be read was applied by
/// `manager`.
#[derive(Clone)]
struct Server {
    code: u16,
    manager: &'static str,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(code: u16) -> Self {
        Self { code, manager: NAME, asked: Arc::default() }
    }

    fn with_fence_of(manager: &'static str) -> Self {
        Self { manager, ..Self::new(200) }
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: HttpRequest<Body>| {
            let (code, path) = (server.code, request.uri().path().to_owned());
            let short = path.trim_start_matches("/apis/admissionregistration.k8s.io/v1/");
            server.asked.lock().push(format!("{} {short}", request.method()));
            let status = if code < 300 { "Success" } else { "Failure" };
            let body = json!({
                "kind": "Status", "apiVersion": "v1", "code": code, "status": status,
                "message": "", "reason": "", "metadata": {},
            });
            let object = json!({"metadata": {
                "name": "windlass-fence-sites", "uid": "u1",
                "managedFields": [{"manager": server.manager, "operation": "Apply"}],
            }});
            let is_read = request.method() == Method::GET && code < 300;
            let body = if is_read { object } else { body };
            let body = Body::from(body.to_string().into_bytes());
            let answer = Response::builder().status(code).body(body);
            async move { answer }
        });
        Client::new(service, "default")
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock())
    }
}

fn names() -> Names {
    let dialect = Dialect::Own { prefix: "windlass.dev".to_owned() };
    Names::new("sites".parse().unwrap(), dialect)
}

fn spec(fence: &str) -> Spec {
    let spec = json!({
        "resources": [{"resource": "secrets"}], "fence": fence,
        "instances": {"usernamePrefix": "shard:"},
    });
    serde_json::from_value(spec).unwrap()
}

fn requests(methods: &[&str]) -> Vec<String> {
    let kinds = ["validatingadmissionpolicybindings", "validatingadmissionpolicies"];
    let of_kind =
        |kind| methods.iter().map(move |method| format!("{method} {kind}/windlass-fence-sites"));
    kinds.into_iter().flat_map(of_kind).collect()
}

fn removal() -> Vec<String> {
    requests(&["GET", "DELETE"])
}

/// A fence stayed when its ring no longer wanted one, and went on refusing.
#[tokio::test]
async fn a_ring_that_wants_no_fence_has_none() {
    for (code, expected) in [(200, removal()), (404, requests(&["GET"]))] {
        let server = Server::new(code);
        let mut fence = Fence::new(server.client(), &names());
        assert_eq!(fence.tend((&names(), &spec("Off"), HOME)).await, Fencing::Off, "{code}");
        assert_eq!(server.asked(), expected, "{code}");
        assert_eq!(fence.tend((&names(), &spec("Off"), HOME)).await, Fencing::Off, "{code}");
        assert!(server.asked().is_empty(), "{code}: it is known to be away");
    }
}

/// What an administrator had installed for `External` went when the ring became `Off`.
#[tokio::test]
async fn the_fence_of_somebody_else_is_left_alone() {
    let server = Server::with_fence_of("kubectl");
    let mut fence = Fence::new(server.client(), &names());
    assert_eq!(fence.tend((&names(), &spec("Off"), HOME)).await, Fencing::Off);
    assert_eq!(server.asked(), requests(&["GET"]));
}

#[tokio::test]
async fn what_refuses_nothing_is_no_fence_whoever_installed_it() {
    let server = Server::with_fence_of("kubectl");
    let mut fence = Fence::new(server.client(), &names());
    let found = fence.tend((&names(), &spec("External"), HOME)).await;
    assert_eq!((found, fence.settles_in()), (Fencing::Outdated, None));
}

#[tokio::test]
async fn without_rights_to_fences_there_is_none_to_remove() {
    let server = Server::new(403);
    let mut fence = Fence::new(server.client(), &names());
    assert_eq!(fence.tend((&names(), &spec("Off"), HOME)).await, Fencing::Off);
    assert_eq!(server.asked(), removal()[..1]);
    fence.remove(&spec("Off")).await.unwrap();
}

#[tokio::test]
async fn a_fence_that_may_still_stand_is_not_said_to_be_off() {
    let server = Server::new(500);
    let mut fence = Fence::new(server.client(), &names());
    let found = fence.tend((&names(), &spec("Off"), HOME)).await;
    assert!(matches!(found, Fencing::Failed(_)), "{found:?}");
    fence.remove(&spec("Off")).await.unwrap_err();
}

#[tokio::test]
async fn at_its_end_a_ring_takes_its_fence_along_unless_it_is_somebody_elses() {
    for (wanted, expected) in [("Managed", removal()), ("Off", removal()), ("External", vec![])] {
        let server = Server::new(200);
        let mut fence = Fence::new(server.client(), &names());
        fence.remove(&spec(wanted)).await.unwrap();
        assert_eq!(server.asked(), expected, "{wanted}");
    }
}
