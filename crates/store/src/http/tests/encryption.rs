//! TLS: which certificates are shown and accepted, and who a client is by its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use etcd_api::etcdserverpb::RangeRequest;
use etcd_api::etcdserverpb::kv_client::KvClient;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::authority::{Authority, Client, is_accepted, start};
use super::client::{Connections, ask_over, request};
use super::listening::refusal;
use super::server::{Server, tcp};
use crate::http::SelfSigned;
use crate::options::{Admitted, Tls};

#[tokio::test]
async fn http1_and_http2_over_tls() {
    let authority = Authority::new();
    let server = start(authority.server()).await;
    let address = server.address();
    assert!(is_accepted(authority.connect(address, None, "h2").await).await);
    let stream = authority.connect(address, None, "http/1.1").await.unwrap();
    let answer = ask_over(stream, request("GET /version", &[], "")).await;
    assert!(answer.starts_with("200 OK"), "{answer}");
}

#[tokio::test]
async fn services_learn_the_name_on_a_required_certificate() {
    let authority = Authority::new();
    authority.sign("alice", "alice");
    let server = start(authority.demanding_server()).await;
    let stream = authority.connect(server.address(), Some("alice"), "h2").await.unwrap();
    let mut connections = Connections::default();
    let mut kv = KvClient::new(connections.open(stream).await);
    let asked = RangeRequest { key: "a".into(), ..Default::default() };
    let reply = kv.range(asked).await.unwrap().into_inner();
    assert_eq!(reply.kvs[0].value(), b"alice none");
}

/// Through the gateway the name does not count; with auth on, silence about that would mislead.
#[tokio::test]
async fn the_gateway_ignores_the_name() {
    let authority = Authority::new();
    authority.sign("alice", "alice");
    let server = start(authority.demanding_server()).await;
    let ask = async || {
        let stream = authority.connect(server.address(), Some("alice"), "http/1.1").await.unwrap();
        ask_over(stream, request("POST /v3/kv/range", &[], r#"{"key":"Zm9v"}"#)).await
    };
    let nobody = "bm9ib2R5IG5vbmU=";
    assert!(ask().await.contains(nobody), "{}", ask().await);
    *server.health.is_auth_enabled.lock() = true;
    let refused = ask().await;
    assert!(refused.starts_with("400 Bad Request"), "{refused}");
    assert!(refused.contains("CommonName of client"), "{refused}");
}

#[tokio::test]
async fn clients_without_the_right_certificate_are_refused() {
    let authority = Authority::new();
    authority.sign("alice", "alice");
    authority.sign("bob", "bob");
    let stranger = Authority::new();
    stranger.sign("alice", "alice");
    fs::copy(stranger.path("alice.pem"), authority.path("fake.pem")).unwrap();
    fs::copy(stranger.path("alice.key"), authority.path("fake.key")).unwrap();

    let tls = Tls {
        admitted: Admitted::CommonNames(vec!["alice".to_owned()]),
        ..authority.demanding_server()
    };
    let server = start(tls).await;
    for (certificate, expected) in
        [(Some("alice"), true), (Some("bob"), false), (Some("fake"), false), (None, false)]
    {
        let stream = authority.connect(server.address(), certificate, "h2").await;
        assert_eq!(is_accepted(stream).await, expected, "{certificate:?}");
    }
}

#[tokio::test]
async fn a_certificate_may_be_optional() {
    let authority = Authority::new();
    let tls = Tls { requires_client_cert: false, ..authority.demanding_server() };
    let server = start(tls).await;
    assert!(is_accepted(authority.connect(server.address(), None, "h2").await).await);
}

/// etcd's listeners take a voluntary certificate for nobody's; others may take it for its owner's.
#[tokio::test]
async fn a_voluntary_certificate_names_its_owner_where_that_is_wanted() {
    let authority = Authority::new();
    authority.sign("alice", "alice");
    let voluntary = Tls { requires_client_cert: false, ..authority.demanding_server() };
    let named = Tls { names_voluntary_clients: true, ..voluntary.clone() };
    for (tls, certificate, expected) in [
        (&voluntary, Some("alice"), "nobody none"),
        (&named, Some("alice"), "alice none"),
        (&named, None, "nobody none"),
    ] {
        let server = start(tls.clone()).await;
        let stream = authority.connect(server.address(), certificate, "h2").await.unwrap();
        let mut connections = Connections::default();
        let mut kv = KvClient::new(connections.open(stream).await);
        let asked = RangeRequest { key: "a".into(), ..Default::default() };
        let reply = kv.range(asked).await.unwrap().into_inner();
        assert_eq!(reply.kvs[0].value(), expected.as_bytes());
    }
}

/// Pages of another service are for those who are known, where anybody is.
#[tokio::test]
async fn a_guest_shows_pages_to_holders_of_certificates_alone() {
    let authority = Authority::new();
    authority.sign("alice", "alice");
    let tls = Tls {
        requires_client_cert: false,
        names_voluntary_clients: true,
        ..authority.demanding_server()
    };
    let server = Server::start_guest(vec![tcp(Some(tls))]).await;
    for (certificate, page, expected) in [
        (Some("alice"), "GET /metrics", "200 OK"),
        (Some("alice"), "GET /version", "404 Not Found"),
        (None, "GET /metrics", "401 Unauthorized"),
        (None, "GET /livez", "401 Unauthorized"),
    ] {
        let stream = authority.connect(server.address(), certificate, "http/1.1").await.unwrap();
        let answer = ask_over(stream, request(page, &[], "")).await;
        assert!(answer.starts_with(expected), "{page}: {answer}");
    }
}

#[tokio::test]
async fn a_changed_certificate_is_read_again() {
    let authority = Authority::new();
    let server = start(authority.server()).await;
    let shown = async || {
        let stream = authority.connect(server.address(), None, "h2").await.unwrap();
        let (_, session) = stream.get_ref();
        session.peer_certificates().unwrap()[0].clone().into_owned()
    };
    let old = shown().await;
    assert_eq!(shown().await, old);
    // Half of a new pair: the old one stays in use.
    let key = fs::read(authority.path("server.key")).unwrap();
    authority.sign("server", "server");
    let new_key = fs::read(authority.path("server.key")).unwrap();
    fs::write(authority.path("server.key"), key).unwrap();
    assert_eq!(shown().await, old);
    fs::write(authority.path("server.key"), new_key).unwrap();
    assert_ne!(shown().await, old);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_shakes_hands_is_closed() {
    let authority = Authority::new();
    let server = start(authority.server()).await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn self_signed_certificates_are_made_once() {
    let folder = tempfile::tempdir().unwrap();
    let certificates = folder.path().join("fixtures/client");
    let tls = self_signed(&certificates);
    let key = fs::read(&tls.key_file).unwrap();
    assert_eq!(fs::metadata(&tls.key_file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(self_signed(&certificates), tls);
    assert_eq!(fs::read(&tls.key_file).unwrap(), key);

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&tls.cert_file).unwrap()).unwrap();
    let server = start(tls).await;
    assert!(is_accepted(Client::trusting(roots).connect(server.address()).await).await);
}

fn self_signed(folder: &Path) -> Tls {
    let made = SelfSigned {
        folder,
        hosts: vec!["localhost".to_owned(), "127.0.0.1".to_owned()],
        now: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        validity: Duration::from_secs(100 * 365 * 24 * 3600),
    };
    made.ensure().unwrap()
}

#[tokio::test]
async fn what_is_wrong_with_the_files_is_said() {
    let authority = Authority::new();
    let good = authority.server();
    fs::write(authority.path("empty.pem"), "").unwrap();
    authority.sign("other", "other");
    let wrong = [
        (Tls { cert_file: authority.path("none.pem"), ..good.clone() }, "cannot look at"),
        (Tls { cert_file: authority.path("empty.pem"), ..good.clone() }, "cannot serve"),
        (
            Tls { key_file: authority.path("empty.pem"), ..good.clone() },
            "cannot read the private key",
        ),
        (Tls { key_file: authority.path("other.key"), ..good.clone() }, "cannot serve"),
        (Tls { requires_client_cert: true, ..good.clone() }, "name a trusted CA file"),
        (
            Tls { trusted_ca_file: Some(authority.path("empty.pem")), ..good },
            "cannot verify clients",
        ),
    ];
    for (tls, expected) in wrong {
        let refused = refusal(tcp(Some(tls))).await;
        assert!(refused.contains(expected), "{refused}");
    }
}
