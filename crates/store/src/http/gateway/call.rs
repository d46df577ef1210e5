//! One JSON request on its way to a service: its messages, metadata and deadline.

use std::time::Duration;

use bytes::BytesMut;
use futures::stream::{self, Stream};
use http::header::AUTHORIZATION;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, Request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tonic::Status;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;

use super::json::{self, First};
use super::scan::Scan;
use super::{Ask, Gateway};
use crate::http::services::{GrpcServices, message_too_large};

/// How much longer a request may be in JSON than on the wire: base64, names and indentation.
const JSON_BYTES_PER_BYTE_MAX: usize = 4;

/// Headers with this prefix reach the service without it.
const METADATA_PREFIX: &str = "grpc-metadata-";
const TIMEOUT_HEADER: &str = "grpc-timeout";

pub(super) struct Call {
    gateway: Gateway,
    method: &'static str,
    headers: HeaderMap,
    body: Body,
}

/// A body that is read message by message.
struct Incoming {
    body: Body,
    /// What was received and is not yet a whole message.
    text: BytesMut,
    /// How much of it is known to be no whole message.
    scan: Scan,
    text_bytes_max: usize,
}

// === impl Call ===

impl Call {
    pub(super) fn new(gateway: Gateway, method: &'static str, request: Request<Body>) -> Self {
        let (parts, body) = request.into_parts();
        Self { gateway, method, headers: parts.headers, body }
    }

    /// A client of the service in this process: what it sends crosses no socket.
    pub(super) fn client(&self) -> Grpc<GrpcServices> {
        Grpc::new(self.gateway.services.clone()).max_decoding_message_size(usize::MAX)
    }

    pub(super) fn path(&self) -> PathAndQuery {
        PathAndQuery::from_static(self.method)
    }

    pub(super) fn request<T>(&self, content: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(content);
        *request.metadata_mut() = metadata(&self.headers);
        request
    }

    /// The one message of the body. What follows it is ignored, as etcd does.
    pub(super) async fn message<Q: Ask>(&mut self) -> Result<Q, Status> {
        let text_bytes_max = self.text_bytes_max();
        let body = Limited::new(std::mem::take(&mut self.body), text_bytes_max);
        let text = body.collect().await.map_err(|error| match error.downcast::<Status>() {
            Ok(status) => *status,
            Err(error) if error.is::<LengthLimitError>() => {
                message_too_large(text_bytes_max, self.gateway.message_bytes_max)
            }
            Err(error) => Status::unavailable(error.to_string()),
        })?;
        json::read(&text.to_bytes())
    }

    /// The messages of the body as they come.
    pub(super) fn messages<Q: Ask>(&mut self) -> impl Stream<Item = Q> + use<Q> {
        let incoming = Incoming {
            text_bytes_max: self.text_bytes_max(),
            body: std::mem::take(&mut self.body),
            text: BytesMut::new(),
            scan: Scan::default(),
        };
        stream::unfold(incoming, |mut incoming| async move {
            let message = incoming.next().await?;
            Some((message, incoming))
        })
    }

    /// How long the client wants to wait, if it says so.
    pub(super) fn timeout(&self) -> Result<Option<Duration>, Status> {
        let Some(value) = self.headers.get(TIMEOUT_HEADER) else { return Ok(None) };
        let value = value.to_str().unwrap_or_default();
        let timeout = duration(value)
            .ok_or_else(|| Status::invalid_argument(format!("invalid grpc-timeout: {value}")))?;
        Ok(Some(timeout))
    }

    fn text_bytes_max(&self) -> usize {
        self.gateway.message_bytes_max.saturating_mul(JSON_BYTES_PER_BYTE_MAX)
    }
}

// === impl Incoming ===

impl Incoming {
    /// The next message, or nothing when the body ends. What is no message ends it too: by then
    /// the answer may be under way, and etcd does the same. A message is read once it is whole, and not
    /// at every piece of it: a client could send megabytes byte by byte.
    async fn next<Q: Ask>(&mut self) -> Option<Q> {
        loop {
            if !self.scan.has_value(&self.text) {
                self.receive().await?;
                continue;
            }
            match json::first(&self.text) {
                First::Message { message, length } => {
                    bytes::Buf::advance(&mut self.text, length);
                    self.scan = Scan::default();
                    return Some(message);
                }
                First::Malformed(error) => {
                    tracing::debug!(%error, "a JSON stream ends with what is no message");
                    return None;
                }
                First::Nothing | First::Partial => self.receive().await?,
            }
        }
    }

    /// Waits for more text; nothing if there is none or it is too long.
    async fn receive(&mut self) -> Option<()> {
        let received = match self.body.frame().await? {
            Ok(frame) => frame.into_data().unwrap_or_default(),
            Err(error) => {
                tracing::debug!(%error, "a JSON stream broke off");
                return None;
            }
        };
        if self.text.len() + received.len() > self.text_bytes_max {
            tracing::debug!("a JSON stream ends with a message above the limit");
            return None;
        }
        self.text.extend_from_slice(&received);
        Some(())
    }
}

/// What of the request's headers a service gets to see: the token, and what is marked for it.
fn metadata(headers: &HeaderMap) -> MetadataMap {
    let mut kept = HeaderMap::new();
    for (name, value) in headers {
        if name == AUTHORIZATION {
            kept.append(AUTHORIZATION, value.clone());
        }
        let marked = name.as_str().strip_prefix(METADATA_PREFIX);
        if let Some(Ok(name)) = marked.map(|name| HeaderName::from_bytes(name.as_bytes())) {
            kept.append(name, value.clone());
        }
    }
    MetadataMap::from_headers(kept)
}

/// A number and its unit, as gRPC writes timeouts.
fn duration(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let count: u64 = text[..text.len() - unit.len_utf8()].parse().ok()?;
    match unit {
        'H' => Some(Duration::from_secs(count.checked_mul(3600)?)),
        'M' => Some(Duration::from_secs(count.checked_mul(60)?)),
        'S' => Some(Duration::from_secs(count)),
        'm' => Some(Duration::from_millis(count)),
        'u' => Some(Duration::from_micros(count)),
        'n' => Some(Duration::from_nanos(count)),
        _ => None,
    }
}
