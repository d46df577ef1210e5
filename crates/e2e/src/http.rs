//! Plain HTTP to a peer on loopback: health, version, metrics and the JSON gateway.

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub body: String,
}

/// The lines of an answer that does not end: a watch through the gateway.
#[derive(Debug)]
pub struct Lines {
    body: Incoming,
    pending: Vec<u8>,
}

/// `GET` of a path on a loopback port.
pub async fn get(port: u16, path: &str) -> Result<Answer> {
    let response = send(port, Method::GET, path, Bytes::new(), None).await?;
    read(response).await
}

/// The value of a metric on `/metrics`, summed over its labels; zero if it was never touched.
pub async fn metric(port: u16, name: &str) -> Result<f64> {
    let answer = get(port, "/metrics").await?;
    let samples = answer
        .body
        .lines()
        .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
    let values = samples.map(|line| {
        let value = line.rsplit(' ').next().context("a sample has a value")?;
        value.parse::<f64>().with_context(|| format!("read `{line}`"))
    });
    values.sum()
}

/// `POST` of a JSON body, as the gateway wants it.
pub async fn post(port: u16, path: &str, body: &Value) -> Result<Answer> {
    post_as(port, path, body, None).await
}

/// The same with an auth token.
pub async fn post_as(port: u16, path: &str, body: &Value, token: Option<&str>) -> Result<Answer> {
    let body = Bytes::from(body.to_string());
    read(send(port, Method::POST, path, body, token).await?).await
}

/// `POST` whose answer is a stream of JSON lines.
pub async fn post_for_lines(port: u16, path: &str, body: &Value) -> Result<Lines> {
    let body = Bytes::from(body.to_string());
    let response = send(port, Method::POST, path, body, None).await?;
    Ok(Lines { body: response.into_body(), pending: Vec::new() })
}

async fn send(
    port: u16,
    method: Method,
    path: &str,
    body: Bytes,
    token: Option<&str>,
) -> Result<http::Response<Incoming>> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let mut request = Request::builder()
        .method(method)
        .uri(format!("http://127.0.0.1:{port}{path}"))
        .header("content-type", "application/json");
    if let Some(token) = token {
        request = request.header("authorization", token);
    }
    let request = request.body(Full::new(body)).context("build the request")?;
    client.request(request).await.with_context(|| format!("send to port {port}, {path}"))
}

async fn read(response: http::Response<Incoming>) -> Result<Answer> {
    let status = response.status();
    let body = response.into_body().collect().await.context("read the answer")?.to_bytes();
    Ok(Answer { status, body: String::from_utf8_lossy(&body).into_owned() })
}

// === impl Answer ===

impl Answer {
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.body).with_context(|| format!("read as JSON: {}", self.body))
    }
}

// === impl Lines ===

impl Lines {
    /// The next line as JSON; `None` at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(end) = self.pending.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.pending.drain(..=end).collect();
                return serde_json::from_slice(&line).context("read a line as JSON").map(Some);
            }
            match self.body.frame().await {
                Some(frame) => {
                    let data = frame.context("read the stream")?.into_data();
                    self.pending.extend(data.unwrap_or_default());
                }
                None => return Ok(None),
            }
        }
    }
}
