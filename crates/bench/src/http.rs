//! A GET over plain HTTP to a process on this machine.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Empty};
use hyper::{Request, body::Bytes};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) is_success: bool,
    pub(crate) body: String,
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Result<Answer> {
    let stream = TcpStream::connect(address).await.context("cannot connect")?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get(path).header("host", "localhost").body(Empty::<Bytes>::new())?;
    let answer = async move {
        let response = sender.send_request(request).await?;
        let is_success = response.status().is_success();
        let body = response.into_body().collect().await?.to_bytes();
        Ok(Answer { is_success, body: String::from_utf8_lossy(&body).into_owned() })
    };
    // The connection moves only while it is polled; it ends after the answer or with it.
    let (answer, _) = futures::join!(answer, connection);
    answer
}
