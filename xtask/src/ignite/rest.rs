//! The two things nodes are asked over HTTP: how far they are, and to become a cluster.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

const ANSWER_WAIT: Duration = Duration::from_secs(60);
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// What the node says of itself; nothing while it does not listen yet.
pub(super) fn state(port: u16) -> Result<Option<String>> {
    let Some(body) = ask(port, "GET", "/management/v1/node/state", "")? else { return Ok(None) };
    let answer: serde_json::Value = serde_json::from_str(&body).context("read the state")?;
    Ok(answer["state"].as_str().map(ToOwned::to_owned))
}

/// Makes the nodes a cluster, all of them with a vote.
pub(super) fn initialize(port: u16, names: impl Iterator<Item = String>) -> Result<()> {
    let names: Vec<String> = names.collect();
    let request = serde_json::json!({
        "metaStorageNodes": names, "cmgNodes": names, "clusterName": "windlass",
    });
    let body = ask(port, "POST", "/management/v1/cluster/init", &request.to_string())?;
    body.map(drop).context("the node stopped listening")
}

/// The body of a good answer; nothing if nobody listens.
fn ask(port: u16, method: &str, path: &str, body: &str) -> Result<Option<String>> {
    let mut stream = match TcpStream::connect(("127.0.0.1", port)) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(None),
        stream => stream.with_context(|| format!("connect to port {port}"))?,
    };
    stream.set_read_timeout(Some(ANSWER_WAIT)).context("bound the wait")?;
    // Of HTTP 1.0, so that the answer comes in one piece and ends with the connection.
    let request = format!(
        "{method} {path} HTTP/1.0\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).context("send a request")?;
    let mut answer = String::new();
    stream.take(ANSWER_BYTES_MAX).read_to_string(&mut answer).context("read an answer")?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a head")?;
    let is_good = head.lines().next().is_some_and(|line| line.contains(" 200 "));
    ensure!(is_good, "{method} {path}: {answer}");
    Ok(Some(body.to_owned()))
}
