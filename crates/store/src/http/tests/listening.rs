//! Sockets that can and cannot be bound.

use std::net::SocketAddr;
use std::path::Path;

use tokio::net::{TcpListener, UnixListener, UnixStream};

use super::server::{Server, options, tcp, unix};
use crate::http::{Edge, Error};
use crate::options::{Address, Listener};

/// What the edge says when it cannot bind: the error and its causes.
pub(super) async fn refusal(listener: Listener) -> String {
    let Err(error) = Edge::bind(&options(vec![listener])).await else {
        panic!("it was bound");
    };
    chain(&error)
}

fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

fn bind_and_leave(path: &Path) {
    drop(UnixListener::bind(path).unwrap());
    assert!(path.exists(), "a socket outlives its process");
}

#[tokio::test]
async fn an_address_in_use() {
    let taken = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = taken.local_addr().unwrap();
    let refused = refusal(Listener { address: Address::Tcp(address), tls: None }).await;
    assert_eq!(
        refused,
        format!(
            "cannot open a listener: {address} is in use; \
             stop the process that listens there or choose another address"
        ),
    );
}

#[tokio::test]
async fn a_socket_left_behind_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    bind_and_leave(&path);
    let server = Server::start(&options(vec![unix(path.clone())])).await;
    UnixStream::connect(&path).await.unwrap();
    server.shutdown.cancel();
    server.ended().await;
    assert!(!path.exists(), "the edge leaves no socket behind");
}

#[tokio::test]
async fn a_socket_in_use_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let _listener = UnixListener::bind(&path).unwrap();
    let refused = refusal(unix(path.clone())).await;
    assert!(refused.contains("is in use; stop the process"), "{refused}");
    assert!(path.exists());
}

#[tokio::test]
async fn what_is_no_socket_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("precious");
    std::fs::write(&path, "data").unwrap();
    let refused = refusal(unix(path.clone())).await;
    assert!(refused.contains("exists and is not a socket"), "{refused}");
    assert_eq!(std::fs::read(&path).unwrap(), b"data");
}

#[tokio::test]
async fn ports_are_those_the_system_chose() {
    let mut options = options(vec![tcp(None), tcp(None)]);
    options.http_listeners = vec![tcp(None)];
    let edge = Edge::bind(&options).await.unwrap();
    let ports = edge.local_addresses().map(|(_, address)| match address {
        Address::Tcp(address) => address.port(),
        Address::Unix(_) => 0,
    });
    assert_eq!(ports.filter(|port| *port != 0).count(), 3);
}
