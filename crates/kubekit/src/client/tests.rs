use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use bytes::Bytes;
use futures::future::join_all;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use parking_lot::Mutex;
use prometheus_client::registry::Registry;
use tempfile::NamedTempFile;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::*;

const CONFIG_MAP: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}"#;

/// An HTTP server that says what it is told to, and remembers what it was asked.
struct Server {
    port: u16,
    heard: Arc<Heard>,
    /// Ends with the test.
    _serving: JoinSet<()>,
}

struct Heard {
    /// What to answer first; later ones are answered with 200.
    answers: Mutex<VecDeque<StatusCode>>,
    /// A request is answered when it finds a permit here.
    may_answer: Semaphore,
    user_agents: Mutex<Vec<String>>,
    under_way: AtomicUsize,
    under_way_most: AtomicUsize,
}

// === impl Server ===

impl Server {
    async fn start(answers: &[StatusCode], permits: usize) -> Self {
        let heard = Arc::new(Heard {
            answers: Mutex::new(answers.iter().copied().collect()),
            may_answer: Semaphore::new(permits),
            user_agents: Mutex::default(),
            under_way: AtomicUsize::default(),
            under_way_most: AtomicUsize::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, heard.clone()));
        Self { port, heard, _serving: serving }
    }

    async fn cluster(&self, options: Options, requests: Requests) -> Cluster {
        let file = kubeconfig(&format!("http://127.0.0.1:{}", self.port));
        let options = Options { kubeconfig: Some(file.path().to_owned()), ..options };
        Cluster::open(options, requests).await.unwrap()
    }

    fn requests(&self) -> usize {
        self.heard.user_agents.lock().len()
    }
}

async fn serve(listener: TcpListener, heard: Arc<Heard>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let heard = heard.clone();
        connections.spawn(async move {
            let service = service_fn(|request| answer(&heard, request));
            // The client hangs up on its own terms.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

async fn answer(
    heard: &Heard,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let user_agent = request.headers()[USER_AGENT].to_str().unwrap().to_owned();
    heard.user_agents.lock().push(user_agent);
    let under_way = heard.under_way.fetch_add(1, SeqCst) + 1;
    heard.under_way_most.fetch_max(under_way, SeqCst);
    heard.may_answer.acquire().await.unwrap().forget();
    heard.under_way.fetch_sub(1, SeqCst);
    let status = heard.answers.lock().pop_front().unwrap_or(StatusCode::OK);
    let mut response = Response::new(Full::from(CONFIG_MAP));
    *response.status_mut() = status;
    Ok(response)
}

fn kubeconfig(server: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    let text = format!(
        r#"{{"apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{{"name": "c", "cluster": {{"server": "{server}"}}}}],
            "users": [{{"name": "u", "user": {{}}}}],
            "contexts": [{{"name": "here", "context": {{"cluster": "c", "user": "u"}}}}]}}"#
    );
    file.write_all(text.as_bytes()).unwrap();
    file
}

async fn get(client: &Client) -> kube::Result<ConfigMap> {
    Api::default_namespaced(client.clone()).get("x").await
}

/// What was counted, without the words around.
fn counted(registry: &Registry) -> Vec<String> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut lines: Vec<_> = lines.map(ToOwned::to_owned).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn a_busy_server_is_asked_again_only_if_allowed() {
    let mut registry = Registry::default();
    let requests = Requests::register(&mut registry);
    let busy = [StatusCode::SERVICE_UNAVAILABLE];

    let server = Server::start(&busy, Semaphore::MAX_PERMITS).await;
    let options = Options { repeats: Repeats::Never, ..Options::default() };
    let cluster = server.cluster(options, requests.clone()).await;
    assert!(get(&cluster.client().unwrap()).await.is_err());
    assert_eq!(server.requests(), 1);

    let server = Server::start(&busy, Semaphore::MAX_PERMITS).await;
    let options = Options { repeats: Repeats::WhenBusy, ..Options::default() };
    let cluster = server.cluster(options, requests).await;
    assert!(get(&cluster.client().unwrap()).await.is_ok());
    assert_eq!(server.requests(), 2);
    assert_eq!(
        counted(&registry),
        [
            r#"api_requests_total{verb="get",resource="configmaps",namespace="default",code="200"} 1"#,
            r#"api_requests_total{verb="get",resource="configmaps",namespace="default",code="503"} 1"#
        ]
    );
}

#[tokio::test]
async fn requests_about_leases_are_never_repeated() {
    let busy = [StatusCode::TOO_MANY_REQUESTS];
    let server = Server::start(&busy, Semaphore::MAX_PERMITS).await;
    let options = Options { repeats: Repeats::WhenBusy, ..Options::default() };
    let cluster = server.cluster(options, Requests::default()).await;
    assert!(get(&cluster.lease_client().unwrap()).await.is_err());
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn requests_under_way_are_bounded() {
    const REQUESTS: usize = 24;
    let server = Server::start(&[], 0).await;
    let options = Options { inflight_max: 3, ..Options::default() };
    let client = server.cluster(options, Requests::default()).await.client().unwrap();
    let asked = join_all((0..REQUESTS).map(|_| get(&client)));
    let answered = async {
        for answered in 1..=REQUESTS {
            while server.requests() < answered {
                tokio::task::yield_now().await;
            }
            server.heard.may_answer.add_permits(1);
        }
    };
    let (answers, ()) = tokio::join!(asked, answered);
    assert!(answers.iter().all(Result::is_ok));
    assert!(server.heard.under_way_most.load(SeqCst) <= 3);
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_given_up_and_counted() {
    let mut registry = Registry::default();
    let requests = Requests::register(&mut registry);
    let server = Server::start(&[], 0).await;
    let answer_timeout = Duration::from_millis(50);
    let cluster = server.cluster(Options { answer_timeout, ..Options::default() }, requests).await;
    assert!(get(&cluster.client().unwrap()).await.is_err());
    assert_eq!(
        counted(&registry),
        [
            r#"api_requests_total{verb="get",resource="configmaps",namespace="default",code="none"} 1"#
        ]
    );
}

#[tokio::test]
async fn the_server_learns_who_asks() {
    let server = Server::start(&[], 1).await;
    let options = Options { user_agent: "windlass-labels/1".to_owned(), ..Options::default() };
    let cluster = server.cluster(options, Requests::default()).await;
    get(&cluster.client().unwrap()).await.unwrap();
    assert_eq!(*server.heard.user_agents.lock(), ["windlass-labels/1"]);
}

#[tokio::test]
async fn what_is_wrong_with_a_kubeconfig_is_named() {
    let open = async |path: &std::path::Path, context: Option<&str>| {
        let options = Options {
            kubeconfig: Some(path.to_owned()),
            context: context.map(ToOwned::to_owned),
            ..Options::default()
        };
        Cluster::open(options, Requests::default()).await.err().map(|error| error.to_string())
    };
    let absent = std::path::Path::new("/nowhere/config");
    assert_eq!(open(absent, None).await.unwrap(), "cannot read the kubeconfig /nowhere/config");
    let file = kubeconfig("http://127.0.0.1:1");
    let error = open(file.path(), Some("there")).await.unwrap();
    assert!(error.ends_with("names no cluster to talk to in context `there`"), "{error}");
    assert_eq!(open(file.path(), Some("here")).await, None);
}

/// In a pod, the pod's own cluster was taken for the one that was named.
#[tokio::test]
async fn a_context_without_a_kubeconfig_is_refused() {
    let options = Options { context: Some("there".to_owned()), ..Options::default() };
    let refused = Cluster::open(options, Requests::default()).await.err().unwrap();
    assert!(matches!(refused, Error::NoKubeconfig { .. }), "{refused}");
}
