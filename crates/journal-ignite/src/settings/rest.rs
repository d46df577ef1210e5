//! One question to a node's REST interface.

use std::{io, sync::Arc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use ignite_client::Credentials;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use crate::Error;

const ANSWER_WAIT: Duration = Duration::from_secs(10);
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// What stands before addresses that speak TLS.
pub(crate) const ENCRYPTED: &str = "https://";

pub(super) struct Node<'a> {
    pub(super) address: &'a str,
    /// How clients connect: with the same user, and the same certificates.
    pub(super) client: &'a ignite_client::Options,
}

// === impl Node ===

impl Node<'_> {
    /// One setting of the node or of the cluster, by its full name.
    pub(super) async fn setting(
        &self,
        of: &'static str,
        name: &str,
    ) -> Result<serde_json::Value, Error> {
        let path = format!("/management/v1/configuration/{of}/{name}");
        let asked = timeout(ANSWER_WAIT, self.ask(&path)).await;
        let answer = asked.unwrap_or_else(|_elapsed| Err(io::ErrorKind::TimedOut.into()));
        answer.and_then(|answer| body(&answer)).map_err(|source| Error::Rest {
            address: self.address.to_owned(),
            source: Arc::new(source),
        })
    }

    async fn ask(&self, path: &str) -> io::Result<String> {
        let Some(address) = self.address.strip_prefix(ENCRYPTED) else {
            let stream = TcpStream::connect(self.address).await?;
            return exchange(stream, &self.request(self.address, path)).await;
        };
        let tls = self.client.tls.as_ref();
        let tls = tls.ok_or_else(|| io::Error::other("there is no certificate to know it by"))?;
        let connector = TlsConnector::from(Arc::clone(&tls.config));
        let socket = TcpStream::connect(address).await?;
        let stream = connector.connect(tls.name_of(address)?, socket).await?;
        exchange(stream, &self.request(address, path)).await
    }

    /// Of HTTP 1.0, so that the answer comes in one piece and ends with the connection.
    fn request(&self, host: &str, path: &str) -> String {
        let credentials = self.client.credentials.as_ref();
        let authorization =
            credentials.map_or_else(String::new, |Credentials { user, password }| {
                let both = BASE64_STANDARD.encode(format!("{user}:{password}"));
                format!("authorization: Basic {both}\r\n")
            });
        format!("GET {path} HTTP/1.0\r\nhost: {host}\r\n{authorization}\r\n")
    }
}

async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &str,
) -> io::Result<String> {
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
    String::from_utf8(answer).map_err(io::Error::other)
}

fn body(answer: &str) -> io::Result<serde_json::Value> {
    let (head, body) =
        answer.split_once("\r\n\r\n").ok_or_else(|| io::Error::other("the answer is no HTTP"))?;
    let status = head.lines().next().unwrap_or_default();
    if !status.contains(" 200 ") {
        return Err(io::Error::other(format!("the answer is: {status}")));
    }
    serde_json::from_str(body.trim()).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_good_answer_has_a_setting() {
        let check = |answer: &str| body(answer).map_err(|error| error.to_string());
        assert_eq!(check("HTTP/1.0 200 OK\r\na: b\r\n\r\ntrue\n"), Ok(true.into()));
        assert!(check("HTTP/1.0 401 Unauthorized\r\n\r\n").unwrap_err().contains("401"));
        assert!(check("nothing").is_err());
        assert!(check("HTTP/1.0 200 OK\r\n\r\n{").is_err());
    }
}
