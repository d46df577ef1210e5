//! Everything that is asked over plain HTTP, found by its path: health, version, metrics and the
//! JSON gateway. Owns the paths and the headers that etcd puts on every answer.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tokio::time::timeout;
use tonic::body::Body;

use super::access::{self, Access};
use super::endpoints::Question;
use super::front::{FrontPage, Making};
use super::gateway::Gateway;
use super::{Content, Traffic, endpoints};
use crate::auth::PeerIdentity;

const PLAIN_TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

const GATEWAY: &str = "/v3/";
/// What the gateway was called before etcd 3.4; clients of that time still say it.
const OLD_GATEWAY: &str = "/v3beta/";

const NAME_IGNORED: &str = "CommonName of client sending a request against gateway will be ignored and not used as expected";

const NO_CERTIFICATE: &str = "a client certificate is needed";

/// How much is read of a request whose answer does not need it, and for how long: what is on its way
/// comes at once, and who streams for ever hears the answer all the same.
const UNREAD_BYTES_MAX: usize = 256 * 1024;
const UNREAD_WAIT_MAX: Duration = Duration::from_secs(2);

/// The HTTP side of one listener.
pub(super) struct Pages {
    pub(super) content: Content,
    pub(super) traffic: Traffic,
    /// Whether only clients with a certificate read anything here.
    pub(super) is_private: bool,
    /// Absent where metrics are served, to everybody.
    pub(super) access: Option<Access>,
    /// Absent where JSON is not served.
    pub(super) gateway: Option<Gateway>,
}

/// What can be read with GET.
enum Page {
    Version,
    Metrics,
    Health(Question),
    Front(Making),
}

// === impl Pages ===

impl Pages {
    pub(super) async fn answer(
        &self,
        mut request: Request<Body>,
        identity: Option<&PeerIdentity>,
    ) -> Response<Body> {
        let response = self.respond(&mut request, identity).await;
        let read = timeout(UNREAD_WAIT_MAX, read_rest(request.body_mut())).await;
        read.unwrap_or_else(|_elapsed| tracing::debug!("a client goes on after its answer"));
        response
    }

    /// Whoever reads the body takes it out of the request.
    async fn respond(
        &self,
        request: &mut Request<Body>,
        identity: Option<&PeerIdentity>,
    ) -> Response<Body> {
        let Some(access) = &self.access else { return self.route(request, identity).await };
        if let Some(host) = access.unexpected_host(request) {
            tracing::warn!(host, "refusing a request to an unexpected host name");
            return unexpected_host(host);
        }
        if let Some(origin) = access.unexpected_page(request.headers()) {
            tracing::warn!(origin, "refusing a request of a page");
            return unexpected_page(origin);
        }
        let readers = access.readers(request.headers());
        let mut response = if request.method() == Method::OPTIONS {
            Response::new(Body::empty())
        } else {
            self.route(request, identity).await
        };
        if let Some(origin) = readers {
            access::allow_origin(response.headers_mut(), origin);
        }
        response
    }

    async fn route(
        &self,
        request: &mut Request<Body>,
        identity: Option<&PeerIdentity>,
    ) -> Response<Body> {
        if self.is_private && identity.is_none() {
            return error_text(StatusCode::UNAUTHORIZED, NO_CERTIFICATE);
        }
        let path = request.uri().path();
        if let Some(gateway) = &self.gateway
            && let Some(path) = gateway_path(path)
        {
            if identity.is_some() && self.content.probes.is_auth_enabled() {
                return error_text(StatusCode::BAD_REQUEST, NAME_IGNORED);
            }
            return gateway.answer(&path, request).await;
        }
        match self.page(path) {
            None => not_found(),
            // Of metrics etcd shows even the head.
            Some(Page::Metrics) if request.method() == Method::HEAD => {
                endpoints::metrics(&self.content.registry, request.headers())
            }
            Some(_) if request.method() != Method::GET => method_not_allowed(),
            Some(Page::Version) => endpoints::version(),
            Some(Page::Metrics) => endpoints::metrics(&self.content.registry, request.headers()),
            Some(Page::Health(question)) => {
                let query = request.uri().query().unwrap_or_default();
                question.answer(&*self.content.probes, query).await
            }
            Some(Page::Front(making)) => {
                making.await.map_or_else(stopping, FrontPage::into_response)
            }
        }
    }

    fn page(&self, path: &str) -> Option<Page> {
        match path {
            _ if matches!(self.traffic, Traffic::Grpc | Traffic::Peers) => None,
            "/version" if matches!(self.traffic, Traffic::Metrics | Traffic::Guest) => None,
            "/version" => Some(Page::Version),
            "/metrics" => Some(Page::Metrics),
            _ => Question::of(path).map(Page::Health).or_else(|| self.front(path)),
        }
    }

    fn front(&self, path: &str) -> Option<Page> {
        let is_for_clients = matches!(self.traffic, Traffic::Everything | Traffic::Http);
        let front = self.content.front.as_ref().filter(|_| is_for_clients)?;
        front(path).map(Page::Front)
    }
}

/// Over HTTP/2 an answer ends the stream, whatever the client still has to send on it. Some then show no
/// answer but an error, curl among them.
async fn read_rest(body: &mut Body) {
    let mut left = UNREAD_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(bytes) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

fn gateway_path(path: &str) -> Option<String> {
    match path.strip_prefix(OLD_GATEWAY) {
        Some(rest) => Some(format!("{GATEWAY}{rest}")),
        None => path.starts_with(GATEWAY).then(|| path.to_owned()),
    }
}

pub(super) fn text(status: StatusCode, text: impl Into<Vec<u8>>) -> Response<Body> {
    full(status, PLAIN_TEXT, text.into())
}

pub(super) fn json(status: StatusCode, json: Vec<u8>) -> Response<Body> {
    full(status, JSON, json)
}

/// An error in words: one line, and no browser takes it for something else.
pub(super) fn error_text(status: StatusCode, words: &str) -> Response<Body> {
    let mut response = text(status, format!("{words}\n"));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

pub(super) fn full(status: StatusCode, kind: HeaderValue, body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::new(Full::from(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

fn not_found() -> Response<Body> {
    error_text(StatusCode::NOT_FOUND, "404 page not found")
}

fn stopping() -> Response<Body> {
    error_text(StatusCode::SERVICE_UNAVAILABLE, "stopping")
}

fn method_not_allowed() -> Response<Body> {
    let mut response = error_text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    response
}

fn unexpected_page(origin: &str) -> Response<Body> {
    error_text(StatusCode::FORBIDDEN, &format!("pages of `{origin}` may ask nothing here"))
}

fn unexpected_host(host: &str) -> Response<Body> {
    let words = format!(
        "the host name `{host}` is not expected here; ask by address or over https, or add the name to \
         --host-whitelist"
    );
    error_text(StatusCode::MISDIRECTED_REQUEST, &words)
}
