//! Who is let in: over TLS by a certificate, over the socket by its permissions.

use std::os::unix::fs::PermissionsExt;

use tasks::client::{Client, Error, Options};
use tasks::service::refusal::{Kind, Refusal};
use tasks::store::Tls;
use tasks::wire;
use tasks::wire::tasks_client::TasksClient;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};

use super::authority::{Authority, listener};
use super::served::{Plan, Served, id_of};
use crate::live::computer::steps;
use crate::live::etcd::Etcd;
use crate::live::waiting::PATIENCE;

async fn encrypted(etcd: &Etcd, authority: &Authority, name: &'static str) -> Served {
    let identity = authority.sign(name);
    let tls = Some((listener(&identity), identity));
    Served::start_as(etcd, Plan { name, tls, rootfs: Some(name), ..Plan::default() }).await
}

async fn connect(served: &Served, tls: Tls) -> Result<Client, Error> {
    Client::connect(&Options { address: served.address.clone(), tls: Some(tls) }).await
}

/// rustls needs to be told which cryptography to use, once.
fn with_cryptography() {
    // Another test may have been first.
    drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
}

#[tokio::test]
async fn a_caller_is_known_by_its_certificate_and_logs_pass_between_nodes() {
    with_cryptography();
    let etcd = Etcd::start().await;
    let authority = Authority::new();
    let first = encrypted(&etcd, &authority, "node1").await;
    let second = encrypted(&etcd, &authority, "node2").await;
    let client = connect(&first, authority.sign("alice")).await.unwrap();
    let there = wire::TaskSpec { rootfs: "node2".to_owned(), ..steps("print hello") };
    let id = id_of(&client.submit(there).await.unwrap());
    let ended = client.wait(&[id], PATIENCE).await.unwrap();
    assert_eq!(ended.tasks[0].task.as_ref().unwrap().submitted_by, "alice");
    let request = wire::LogsRequest { id: id.to_string(), ..Default::default() };
    let chunk = client.logs(request).next().await.unwrap().expect("it wrote");
    let Some(wire::logs_response::Content::Data(bytes)) = chunk.content else { panic!("data") };
    assert_eq!(&bytes[..], b"hello\n");
    drop(second);
}

#[tokio::test]
async fn who_has_no_certificate_is_unauthenticated() {
    with_cryptography();
    let etcd = Etcd::start().await;
    let authority = Authority::new();
    let served = encrypted(&etcd, &authority, "node1").await;
    let ca = std::fs::read(authority.path("ca.crt")).unwrap();
    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(ca));
    let endpoint = Endpoint::from_shared(format!("https://{}", served.address)).unwrap();
    let channel = endpoint.tls_config(tls).unwrap().connect().await.unwrap();
    let refused = TasksClient::new(channel).nodes(wire::NodesRequest {}).await.unwrap_err();
    assert_eq!(Refusal::from(refused).kind, Kind::Unauthenticated);
}

#[tokio::test]
async fn certificates_of_others_are_refused() {
    with_cryptography();
    let etcd = Etcd::start().await;
    let authority = Authority::new();
    let served = encrypted(&etcd, &authority, "node1").await;
    let mallory = Authority::new().sign("mallory");
    // Trusts the node, which does not trust it.
    let stranger = Tls { ca_file: authority.path("ca.crt"), ..mallory };
    let refused = match connect(&served, stranger).await {
        Ok(client) => client.nodes().await.is_err(),
        Err(_) => true,
    };
    assert!(refused);
}

#[tokio::test]
async fn a_socket_is_for_its_owner_alone() {
    let etcd = Etcd::start().await;
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("node.sock");
    let plan = Plan { socket: Some(socket.clone()), ..Plan::default() };
    let served = Served::start_as(&etcd, plan).await;
    assert_eq!(socket.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let client = Client::connect(&Options::unix(&socket)).await.unwrap();
    assert_eq!(client.nodes().await.unwrap().len(), 1);
    served.stop().await;
    assert!(!socket.exists(), "nothing is left behind");
}
