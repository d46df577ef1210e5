//! Asks a service that answers people and probes for one of its pages.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// How long an answer may take: it is made at once.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// A status of ten thousand groups is smaller.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// What was answered.
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: String,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("nobody answers at {0}")]
    Silent(String),
    #[error("{0} answers with something else than HTTP")]
    Strange(String),
}

/// One page. The server speaks plain HTTP and closes when it is asked to.
pub(crate) async fn get(server: &str, path: &str) -> Result<Answer, Error> {
    let silent = || Error::Silent(server.to_owned());
    let asked = async {
        let mut stream = TcpStream::connect(server).await?;
        let head = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        let mut bytes = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes).await?;
        Ok::<_, io::Error>(bytes)
    };
    let bytes = timeout(ANSWER_TIMEOUT, asked).await.map_err(|_elapsed| silent())?;
    let bytes = bytes.map_err(|_io| silent())?;
    parse(&bytes).ok_or_else(|| Error::Strange(server.to_owned()))
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let code = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    Some(Answer { code, body: body.to_owned() })
}
