//! Who may ask over HTTP. What etcd 3.7.1 answers is the model, but for the words of a refusal.

use http::{Method, StatusCode};
use tokio::net::TcpStream;

use super::authority::Authority;
use super::client::{answer, request};
use super::server::{Server, options, tcp};
use crate::options::{HttpAccess, Listener, Options};

const READERS: &str = "access-control-allow-origin";

fn access(origins: &[&str], hosts: &[&str]) -> HttpAccess {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    HttpAccess { origins: owned(origins), hosts: owned(hosts), ..HttpAccess::default() }
}

async fn start(http_access: HttpAccess) -> Server {
    Server::start(&Options { http_access, ..options(vec![tcp(None)]) }).await
}

/// Status of the answer, and who may read it.
async fn ask(server: &Server, line: &str, headers: &[(&str, &str)]) -> (StatusCode, String) {
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let answer = answer(stream, request(line, headers, "")).await;
    let readers = answer.headers().get(READERS).map(|value| value.to_str().unwrap());
    (answer.status(), readers.unwrap_or("nobody").to_owned())
}

#[tokio::test]
async fn pages_of_every_origin_may_read_unless_some_are_named() {
    const LOCAL: &str = "http://localhost:3000";
    for (allowed, origin, expected) in [
        (&[] as &[&str], None, "*"),
        (&[], Some(LOCAL), "*"),
        (&["*"], Some(LOCAL), "*"),
        (&[LOCAL, "https://a.example"], Some(LOCAL), LOCAL),
        (&[LOCAL], Some("http://localhost:3001"), "nobody"),
        (&[LOCAL], None, "nobody"),
    ] {
        let server = start(access(allowed, &[])).await;
        let headers: Vec<_> = origin.map(|origin| ("origin", origin)).into_iter().collect();
        for method in [Method::GET, Method::OPTIONS] {
            let asked = ask(&server, &format!("{method} /version"), &headers).await;
            assert_eq!(asked, (StatusCode::OK, expected.to_owned()), "{allowed:?} {origin:?}");
        }
    }
}

/// Whoever runs a store on his own machine opens it to his browser, and so to every page he looks at.
#[tokio::test]
async fn pages_that_may_not_read_wrote_all_the_same() {
    const OWN: &str = "http://127.0.0.1:2379";
    let http_access = HttpAccess { refuses_other_pages: true, ..access(&[OWN], &[]) };
    let server = start(http_access).await;
    for (origin, is_refused) in
        [(None, false), (Some(OWN), false), (Some("http://a.example"), true), (Some("null"), true)]
    {
        let headers: Vec<_> = origin.map(|origin| ("origin", origin)).into_iter().collect();
        for line in ["GET /version", "POST /v3/kv/range"] {
            let (status, _) = ask(&server, line, &headers).await;
            assert_eq!(status == StatusCode::FORBIDDEN, is_refused, "{line} {origin:?}");
        }
    }
}

#[tokio::test]
async fn only_expected_host_names_are_answered_in_plain_text() {
    let server = start(access(&[], &["127.0.0.1", "localhost"])).await;
    for (line, host, expected) in [
        ("GET /health", "localhost", StatusCode::OK),
        ("GET /health", "localhost:2379", StatusCode::OK),
        ("GET /health", "127.0.0.1:2379", StatusCode::OK),
        ("GET /health", "rebound.example:2379", StatusCode::MISDIRECTED_REQUEST),
        ("OPTIONS /health", "rebound.example", StatusCode::MISDIRECTED_REQUEST),
        ("POST /v3/kv/range", "rebound.example", StatusCode::MISDIRECTED_REQUEST),
        ("GET /health", "", StatusCode::MISDIRECTED_REQUEST),
    ] {
        let stream = TcpStream::connect(server.address()).await.unwrap();
        let mut request = request(line, &[], "");
        request.headers_mut().insert("host", host.parse().unwrap());
        let answer = answer(stream, request).await;
        assert_eq!(answer.status(), expected, "{line} at {host}");
        assert_eq!(answer.headers().contains_key(READERS), expected == StatusCode::OK);
    }
}

#[tokio::test]
async fn every_host_name_is_answered_with_tls() {
    let authority = Authority::new();
    let listener = tcp(Some(authority.server()));
    let http_access = access(&[], &["store.example"]);
    let server = Server::start(&Options { http_access, ..options(vec![listener]) }).await;
    let stream = authority.connect(server.address(), None, "http/1.1").await.unwrap();
    let answer = answer(stream, request("GET /health", &[], "")).await;
    assert_eq!(answer.status(), StatusCode::OK);
}

#[tokio::test]
async fn metrics_are_read_by_who_reaches_them() {
    let (http_access, plain) = (access(&["http://a.example"], &["a.example"]), || tcp(None));
    let options = Options { http_access, metrics_listeners: vec![plain()], ..options(Vec::new()) };
    let server = Server::start(&options).await;
    let asked = ask(&server, "GET /metrics", &[]).await;
    assert_eq!(asked, (StatusCode::OK, "nobody".to_owned()));
}

#[tokio::test]
async fn the_json_gateway_can_be_left_out() {
    let listeners: Vec<Listener> = vec![tcp(None)];
    let server = Server::start(&Options { serves_json: false, ..options(listeners) }).await;
    assert_eq!(ask(&server, "POST /v3/kv/range", &[]).await.0, StatusCode::NOT_FOUND);
    assert_eq!(ask(&server, "GET /version", &[]).await.0, StatusCode::OK);
}
