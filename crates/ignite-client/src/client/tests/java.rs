//! The same calls as the Java client made, against a node that answers what the real one answered it:
//! whole requests are compared byte for byte.

use std::time::Duration;

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::{
    Client, Error, Mode, Options, Row, Value,
    wire::{
        frame::{self, MAGIC},
        op,
        pack::Packer,
        tests::{bytes, hex},
        unpack::Unpacker,
    },
};

const RECORDED: &str = include_str!("../../../testdata/java-3.1.0.txt");
/// What the Java client says of its own schema, timeouts and time zone, and what this one says: nothing.
/// And the length of a text, for which it takes a byte more than it needs as soon as the text could be longer.
const DEFAULTS: [(&str, &str); 5] = [
    ("a65055424c4943", "c0"),
    ("0000a74574632f555443", "c0c0c0"),
    ("00c0a74574632f555443", "c0c0c0"),
    ("a74574632f555443", "c0"),
    ("d91c", "bc"),
];
/// A number of eight bytes at the end of a request, in hexadecimal.
const TIME_DIGITS: usize = 18;

/// A request, and what it was answered.
struct Exchange {
    op: i32,
    payload: String,
    answer: Bytes,
}

struct Recording {
    client: String,
    node: Bytes,
    exchanges: Vec<Exchange>,
}

// === impl Recording ===

impl Recording {
    fn read(text: &str) -> Self {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let mut next = |word: &str| Some(lines.next()?.strip_prefix(word).unwrap().to_owned());
        let (client, node) = (next("client ").unwrap(), bytes(&next("node ").unwrap()));
        let mut exchanges = Vec::new();
        while let Some(request) = next("> ") {
            let (op, payload) = request.split_once(' ').unwrap();
            let op = op.parse().unwrap();
            let answer = bytes(&next("< ").unwrap());
            exchanges.push(Exchange { op, payload: as_ours(op, payload), answer });
        }
        Self { client, node, exchanges }
    }
}

/// What this client writes where the Java client wrote this: the same, but for what both leave to the node.
fn as_ours(op: i32, payload: &str) -> String {
    match op {
        op::SQL_EXEC | op::SQL_EXEC_SCRIPT | op::SQL_EXEC_BATCH => DEFAULTS
            .iter()
            .fold(payload.to_owned(), |payload, (theirs, ours)| payload.replace(theirs, ours)),
        // It tells the time that it has heard of, which nodes read for snapshots only.
        op::TX_BEGIN if payload.starts_with("c2") => {
            payload[..payload.len() - TIME_DIGITS].to_owned()
        }
        _ => payload.to_owned(),
    }
}

/// Reads the next frame from a socket.
async fn receive(socket: &mut TcpStream) -> Bytes {
    let length = socket.read_u32().await.unwrap();
    let mut message = vec![0; length as usize];
    socket.read_exact(&mut message).await.unwrap();
    message.into()
}

/// The next request that is no heartbeat, and its number.
async fn next(socket: &mut TcpStream) -> (Bytes, i64) {
    loop {
        let request = receive(socket).await;
        let mut unpacker = Unpacker::new(request.clone());
        let op = unpacker.int("an operation").unwrap();
        if op != op::HEARTBEAT {
            return (request, unpacker.long("a request's number").unwrap());
        }
    }
}

/// Answers as the real node did, as long as the same is asked.
async fn replay(listener: TcpListener, recording: Recording) {
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut magic = [0; MAGIC.len()];
    socket.read_exact(&mut magic).await.unwrap();
    assert_eq!(magic, MAGIC);
    assert_eq!(hex(&receive(&mut socket).await), recording.client, "the greeting");
    socket.write_all(&MAGIC).await.unwrap();
    socket.write_all(&frame::framed(&recording.node)).await.unwrap();
    for (at, Exchange { op, payload, answer }) in recording.exchanges.into_iter().enumerate() {
        let (request, id) = next(&mut socket).await;
        let expected = frame::request(op, id, &bytes(&payload));
        assert_eq!(hex(&frame::framed(&request)), hex(&expected), "request {at}");
        let mut number = Packer::new();
        number.int(id);
        let message = [&number.finish()[..], &answer].concat();
        socket.write_all(&frame::framed(&message)).await.unwrap();
    }
}

const V: &[u8] = &[0x80, 1];

fn key(id: i32) -> Row {
    Row::new([("ID", id.into())])
}

fn row(id: i32, name: &str) -> Row {
    Row::new([("NAME", name.into()), ("ID", id.into()), ("V", V.into())])
}

async fn calls(client: &Client) -> Result<(), Error> {
    let script = "CREATE TABLE T (NAME VARCHAR, ID INT PRIMARY KEY, V VARBINARY DEFAULT x'07')";
    client.execute_script(script).await?;
    let table = client.table("T").await?;
    table.upsert(None, &row(1, "a")).await?;
    table.upsert(None, &Row::new([("ID", 2.into()), ("NAME", "b".into())])).await?;
    assert!(!table.insert(None, &row(1, "x")).await?);
    assert_eq!(table.get(None, &key(1)).await?, Some(row(1, "a")));
    assert_eq!(table.get(None, &key(9)).await?, None);
    table.upsert_all(None, &[row(3, "c"), row(4, "d")]).await?;
    let left = table.insert_all(None, &[row(4, "d"), row(5, "e")]).await?;
    assert_eq!(left, [row(4, "d")]);
    let found = table.get_all(None, &[key(3), key(9), key(5)]).await?;
    assert_eq!(found, [Some(row(3, "c")), None, Some(row(5, "e"))]);
    assert!(table.replace_exact(None, &row(3, "c"), &row(3, "C")).await?);
    assert!(table.delete(None, &key(5)).await?);
    assert_eq!(table.delete_all(None, &[key(4), key(9)]).await?, [key(9)]);

    let tx = client.begin(Mode::ReadWrite).await?;
    table.upsert(Some(&tx), &row(6, "f")).await?;
    tx.commit().await?;
    let tx = client.begin_with_timeout(Mode::ReadWrite, Duration::from_secs(5)).await?;
    assert_eq!(table.get(Some(&tx), &key(6)).await?, Some(row(6, "f")));
    tx.rollback().await?;
    let snapshot = client.begin(Mode::Snapshot).await?;
    assert_eq!(table.get(Some(&snapshot), &key(6)).await?, Some(row(6, "f")));
    snapshot.commit().await?;

    let asked = "SELECT ID, NAME FROM T WHERE ID >= ? ORDER BY ID";
    let found = client.execute(None, asked, &[2.into()]).await?.all().await?;
    let named = |id: i32, name: &str| Row::new([("ID", id.into()), ("NAME", name.into())]);
    assert_eq!(found, [named(2, "b"), named(3, "C"), named(6, "f")]);
    let asked = "SELECT ID FROM T ORDER BY ID";
    let found = client.execute_paged(None, asked, &[], 2).await?.all().await?;
    assert_eq!(found, [1, 2, 3, 6].map(key));
    let rows = [(11, "k"), (12, "l")].map(|(id, name)| vec![Value::I32(id), name.into()]);
    let statement = "INSERT INTO T (ID, NAME) VALUES (?, ?)";
    assert_eq!(client.execute_batch(None, statement, &rows).await?, [1, 1]);
    Ok(())
}

#[tokio::test]
async fn requests_are_the_java_clients() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut node = JoinSet::new();
    node.spawn(replay(listener, Recording::read(RECORDED)));
    let calling = async {
        let client = Client::connect(Options::new([address])).await?;
        calls(&client).await
    };
    tokio::select! {
        called = calling => called.unwrap(),
        // It ends first only where something else was asked than what is recorded.
        Some(ended) = node.join_next() => ended.unwrap(),
    }
    node.join_all().await;
}
