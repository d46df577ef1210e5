//! The two things nodes are asked over HTTP: how far they are, and to become a cluster.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

const ANSWER_WAIT: Duration = Duration::from_secs(60);
const ANSWER_BYTES_MAX: u64 = 1 << 20;

/// Nodes refuse every question with it while they become a cluster.
const CONFLICT: &str = "409";

struct Answer {
    status: String,
    body: String,
}

/// What the node says of itself; nothing while it does not listen yet, or becomes part of a cluster.
pub(super) fn state(port: u16) -> Result<Option<String>> {
    match ask(port, "GET", "/management/v1/node/state", "")? {
        Some(answer) if answer.status != CONFLICT => {
            let body = answer.good()?;
            let answer: serde_json::Value =
                serde_json::from_str(&body).context("read the state")?;
            Ok(answer["state"].as_str().map(ToOwned::to_owned))
        }
        _ => Ok(None),
    }
}

/// Makes the nodes a cluster, all of them with a vote.
pub(super) fn initialize(port: u16, names: impl Iterator<Item = String>) -> Result<()> {
    let names: Vec<String> = names.collect();
    let request = serde_json::json!({
        "metaStorageNodes": names, "cmgNodes": names, "clusterName": "windlass",
    });
    let answer = ask(port, "POST", "/management/v1/cluster/init", &request.to_string())?;
    answer.context("the node stopped listening")?.good().map(drop)
}

// === impl Answer ===

impl Answer {
    fn parse(text: &str) -> Result<Self> {
        let (head, body) = text.split_once("\r\n\r\n").context("an answer has a head")?;
        let status = head.split(' ').nth(1).context("an answer has a status")?;
        Ok(Self { status: status.to_owned(), body: body.to_owned() })
    }

    fn good(self) -> Result<String> {
        ensure!(self.status == "200", "the node answers {}: {}", self.status, self.body);
        Ok(self.body)
    }
}

/// What a node answers; nothing if nobody listens.
fn ask(port: u16, method: &str, path: &str, body: &str) -> Result<Option<Answer>> {
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
    Answer::parse(&answer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_good_answer_has_a_body() {
        let check = |text: &str| Answer::parse(text).and_then(Answer::good);
        assert_eq!(check("HTTP/1.1 200 OK\r\na: b\r\n\r\n{}").unwrap(), "{}");
        let refused = check("HTTP/1.1 409 Conflict\r\n\r\nnot now").unwrap_err().to_string();
        assert_eq!(refused, "the node answers 409: not now");
        assert!(check("nothing").is_err());
    }
}
