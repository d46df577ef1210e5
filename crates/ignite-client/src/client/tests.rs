//! Nodes that greet, and then say nothing, or what a real one said.

mod java;

use std::{io::ErrorKind, time::Duration};

use bytes::{BufMut, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};

use crate::{
    Client, Error, Mode, Options,
    wire::{
        frame::{self, MAGIC},
        pack::Packer,
    },
};

const WAIT: Duration = Duration::from_secs(60);
/// Room for a greeting.
const BYTES_MAX: usize = 200;

/// What a node of this name says first.
fn greeting(name: &str) -> BytesMut {
    let uuid = [&[0xd8, 3][..], &[0; 16]].concat();
    let packed = |pack: fn(&mut Packer, &str)| {
        let mut packer = Packer::new();
        pack(&mut packer, name);
        packer.finish()
    };
    let mut message = BytesMut::new();
    message.put(packed(|packer, _| {
        packer.int(3).int(0).int(0).nil().int(0);
    }));
    message.put_slice(&uuid);
    message.put(packed(|packer, name| {
        packer.string(name).len(1);
    }));
    message.put_slice(&uuid);
    message.put(packed(|packer, _| {
        packer.string("cluster").int(1).int(3).int(1).int(0).nil().nil();
    }));
    let mut greeting = BytesMut::from(&MAGIC[..]);
    greeting.put(frame::framed(&message));
    greeting
}

/// Serves one connection until its other end closes it.
async fn serve(mut socket: TcpStream, Node { name, answer }: Node) {
    socket.write_all(&greeting(name)).await.unwrap();
    let mut heard = [0; 1024];
    let mut is_first = true;
    while socket.read(&mut heard).await.is_ok_and(|count| count > 0) {
        // The handshake comes first.
        if !std::mem::take(&mut is_first) {
            socket.write_all(answer).await.unwrap();
        }
    }
}

/// What a node is called, and what it answers to everything.
#[derive(Clone, Copy)]
struct Node {
    name: &'static str,
    answer: &'static [u8],
}

/// The address of a node that serves as many connections as come.
async fn node(nodes: &mut JoinSet<()>, node: Node) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    nodes.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            connections.spawn(serve(socket, node));
        }
    });
    address
}

/// A node that the rest of its cluster cannot hear greets and answers heartbeats, and that is all: its
/// clients stayed with it for as long as it lived.
#[tokio::test]
async fn a_node_that_is_left_is_asked_no_more() {
    let mut nodes = JoinSet::new();
    let [first, second] = ["first", "second"].map(|name| Node { name, answer: b"" });
    let addresses = [node(&mut nodes, first).await, node(&mut nodes, second).await];
    let client = Client::connect(Options::new(addresses.clone())).await.unwrap();
    assert_eq!(client.peer().await.unwrap().node_name, "first");

    let leaving = async {
        // By then the request below waits for an answer.
        tokio::task::yield_now().await;
        client.leave().await
    };
    let both = async { tokio::join!(client.begin(Mode::ReadWrite), leaving) };
    let (begun, left) = timeout(WAIT, both).await.expect("nobody waits for the node that was left");
    assert_eq!(left.as_ref(), Some(&addresses[0]));
    match begun.unwrap_err() {
        Error::Lost { address, source } => {
            assert_eq!(
                (address, source.kind()),
                (addresses[0].clone(), ErrorKind::ConnectionAborted)
            );
        }
        other => panic!("{other}"),
    }
    assert_eq!(client.peer().await.unwrap().node_name, "second");
    assert!(client.leave().await.is_some());
    assert_eq!(client.leave().await, None, "there is nobody to leave");
    assert_eq!(client.peer().await.unwrap().node_name, "first");
}

/// Others that waited on the same connection were told that theirs was too large, which none of them
/// takes for a moment's trouble.
#[tokio::test]
async fn an_answer_that_is_too_large_is_the_trouble_of_who_asked() {
    let mut nodes = JoinSet::new();
    // A length above the bound, and the number of the first request.
    let answer = &[0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let address = node(&mut nodes, Node { name: "large", answer }).await;
    let options = Options { message_bytes_max: BYTES_MAX, ..Options::new([address]) };
    let client = Client::connect(options).await.unwrap();
    let both = async { tokio::join!(client.begin(Mode::ReadWrite), client.begin(Mode::ReadWrite)) };
    let (asker, other) = timeout(WAIT, both).await.expect("both are told");
    let asker = asker.unwrap_err();
    assert!(matches!(asker, Error::TooLarge { bytes: 256, bytes_max: BYTES_MAX }), "{asker}");
    let other = other.unwrap_err();
    assert!(matches!(other, Error::Lost { .. }), "{other}");
}
