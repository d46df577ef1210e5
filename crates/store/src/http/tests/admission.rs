//! Which clients TLS lets in, and what it agrees on with them.

use std::fs;

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, ProtocolVersion};

use super::authority::{Authority, Client, Subject, is_accepted, shake_hands, start};
use super::listening::refusal;
use super::server::tcp;
use crate::options::{Admitted, Tls, TlsVersions};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Asks with each client's certificate.
async fn check_admitted(authority: &Authority, tls: Tls, expected: &[(&str, bool)]) {
    let server = start(tls).await;
    for (certificate, expected) in expected {
        let stream = authority.connect(server.address(), Some(certificate), "h2").await;
        assert_eq!(is_accepted(stream).await, *expected, "{certificate}");
    }
}

#[tokio::test]
async fn several_common_names_can_be_admitted() {
    let authority = Authority::new();
    for name in ["alice", "bob", "carol"] {
        authority.sign(name, name);
    }
    let admitted = Admitted::CommonNames(names(&["alice", "bob"]));
    let tls = Tls { admitted, ..authority.demanding_server() };
    let expected = [("alice", true), ("bob", true), ("carol", false)];
    check_admitted(&authority, tls, &expected).await;
}

#[tokio::test]
async fn host_names_on_certificates_can_be_admitted() {
    let authority = Authority::new();
    for (name, hosts) in [
        ("exact", ["a.example"]),
        ("wildcard", ["*.b.example"]),
        ("address", ["10.0.0.1"]),
        ("other", ["c.example"]),
    ] {
        // The common name is no host name, as everywhere in TLS.
        authority.sign_for(name, &Subject { common_name: "a.example", hosts: &hosts, serial: 1 });
    }
    let admitted = Admitted::HostNames(names(&["a.example", "x.b.example", "10.0.0.1"]));
    let tls = Tls { admitted, ..authority.demanding_server() };
    let expected = [("exact", true), ("wildcard", true), ("address", true), ("other", false)];
    check_admitted(&authority, tls, &expected).await;
}

/// Two clients, and a list that revokes the second.
fn with_revocations(authority: &Authority) -> Tls {
    for (name, serial) in [("alice", 1), ("bob", 2)] {
        authority.sign_for(name, &Subject { common_name: name, hosts: &["localhost"], serial });
    }
    fs::write(authority.path("crl"), authority.revoke(&[2]).pem().unwrap()).unwrap();
    Tls { crl_file: Some(authority.path("crl")), ..authority.demanding_server() }
}

#[tokio::test]
async fn a_revoked_certificate_is_refused() {
    let authority = Authority::new();
    let tls = with_revocations(&authority);
    let expected = [("alice", true), ("bob", false)];
    check_admitted(&authority, tls.clone(), &expected).await;
    fs::write(authority.path("crl"), authority.revoke(&[2]).der()).unwrap();
    check_admitted(&authority, tls.clone(), &expected).await;
    // Nothing is known about certificates of other authorities.
    fs::write(authority.path("crl"), Authority::named("other CA").revoke(&[2]).der()).unwrap();
    check_admitted(&authority, tls, &[("alice", true), ("bob", true)]).await;
}

#[tokio::test]
async fn a_changed_revocation_list_is_read_again() {
    let authority = Authority::new();
    let server = start(with_revocations(&authority)).await;
    let is_alice_in =
        async || is_accepted(authority.connect(server.address(), Some("alice"), "h2").await).await;
    assert!(is_alice_in().await);
    fs::write(authority.path("crl"), authority.revoke(&[1, 2]).der()).unwrap();
    assert!(!is_alice_in().await);
    fs::write(authority.path("crl"), authority.revoke(&[]).der()).unwrap();
    assert!(is_alice_in().await);
    // The list may name anybody: without it nobody is let in.
    fs::remove_file(authority.path("crl")).unwrap();
    assert!(!is_alice_in().await);
    fs::write(authority.path("crl"), "nonsense").unwrap();
    assert!(!is_alice_in().await);
}

#[tokio::test]
async fn an_old_session_does_not_outlive_its_certificate() {
    let authority = Authority::new();
    let server = start(with_revocations(&authority)).await;
    for version in [&TLS12, &TLS13] {
        fs::write(authority.path("crl"), authority.revoke(&[]).der()).unwrap();
        let connector =
            Client { versions: vec![version], ..authority.client(Some("alice")) }.connector();
        assert!(is_accepted(shake_hands(&connector, server.address()).await).await);
        fs::write(authority.path("crl"), authority.revoke(&[1]).der()).unwrap();
        assert!(!is_accepted(shake_hands(&connector, server.address()).await).await);
    }
}

/// What is agreed on with a client that speaks one version.
async fn agreed(
    authority: &Authority,
    tls: Tls,
    version: &'static SupportedProtocolVersion,
) -> Option<(ProtocolVersion, CipherSuite)> {
    let server = start(tls).await;
    let client = Client { versions: vec![version], ..authority.client(None) };
    let stream = client.connect(server.address()).await.ok()?;
    let (_, session) = stream.get_ref();
    Some((session.protocol_version()?, session.negotiated_cipher_suite()?.suite()))
}

#[tokio::test]
async fn versions_can_be_chosen() {
    let authority = Authority::new();
    let with = |versions| Tls { versions, ..authority.server() };
    for (served, spoken, expected) in [
        (TlsVersions::Tls12And13, &TLS12, Some(ProtocolVersion::TLSv1_2)),
        (TlsVersions::Tls12And13, &TLS13, Some(ProtocolVersion::TLSv1_3)),
        (TlsVersions::OnlyTls12, &TLS12, Some(ProtocolVersion::TLSv1_2)),
        (TlsVersions::OnlyTls12, &TLS13, None),
        (TlsVersions::OnlyTls13, &TLS12, None),
        (TlsVersions::OnlyTls13, &TLS13, Some(ProtocolVersion::TLSv1_3)),
    ] {
        let version = agreed(&authority, with(served), spoken).await.map(|(version, _)| version);
        assert_eq!(version, expected, "{served:?} {spoken:?}");
    }
}

#[tokio::test]
async fn cipher_suites_of_tls_1_2_can_be_chosen() {
    let authority = Authority::new();
    let chosen = CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256;
    let tls = Tls { tls12_suites: vec![chosen], ..authority.server() };
    let (_, suite) = agreed(&authority, tls.clone(), &TLS12).await.unwrap();
    assert_eq!(suite, chosen);
    assert!(agreed(&authority, tls, &TLS13).await.is_some());
}

#[tokio::test]
async fn what_cannot_be_held_is_said() {
    let authority = Authority::new();
    let good = with_revocations(&authority);
    fs::write(authority.path("nonsense"), "nonsense").unwrap();
    fs::write(authority.path("other.pem"), fs::read(authority.path("ca.pem")).unwrap()).unwrap();
    let crl = |name: &str| Tls { crl_file: Some(authority.path(name)), ..good.clone() };
    let wrong = [
        (Tls { trusted_ca_file: None, requires_client_cert: false, ..good.clone() }, "trusted CA"),
        (crl("none"), "cannot look at"),
        (crl("nonsense"), "is malformed"),
        (crl("other.pem"), "holds no revocation list"),
        (
            Tls { admitted: Admitted::HostNames(names(&["a b"])), ..good.clone() },
            "`a b` is neither a host name",
        ),
        (
            Tls {
                versions: TlsVersions::OnlyTls12,
                tls12_suites: vec![CipherSuite::TLS_NULL_WITH_NULL_NULL],
                ..good.clone()
            },
            "leave nothing to agree on",
        ),
    ];
    for (tls, expected) in wrong {
        let refused = refusal(tcp(Some(tls))).await;
        assert!(refused.contains(expected), "{refused}");
    }
}
