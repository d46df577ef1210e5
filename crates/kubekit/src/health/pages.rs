//! Which path asks what, and how the answer reads: as Kubernetes' own components do.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use super::checks::{Health, Question};

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
const NEVER_KEPT: HeaderValue = HeaderValue::from_static("no-store");

/// What a service answers beside probes and metrics: path and query in, a page out, or nothing if it
/// has no such page. Made at once, from what is at hand.
pub type Answers = Arc<dyn Fn(&str, &str) -> Option<Page> + Send + Sync>;

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub status: StatusCode,
    pub content_type: &'static str,
    pub text: String,
}

/// What there is to see.
#[derive(Clone)]
pub(super) struct Pages {
    pub(super) health: Health,
    pub(super) registry: Arc<Registry>,
    pub(super) answers: Option<Answers>,
    /// Where probes that were written for somebody else ask what `/livez` answers.
    pub(super) live_alias: Option<&'static str>,
}

// === impl Pages ===

impl Pages {
    pub(super) fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if request.method() != Method::GET {
            return page(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET\n".to_owned());
        }
        let path = match request.uri().path() {
            alias if Some(alias) == self.live_alias => "/livez",
            path => path,
        };
        if path == "/metrics" {
            return self.metrics();
        }
        let (question, rest) = match (path.strip_prefix("/livez"), path.strip_prefix("/readyz")) {
            (Some(rest), _) => (Question::Live, rest),
            (_, Some(rest)) => (Question::Ready, rest),
            (None, None) => return self.other(path, request.uri().query().unwrap_or("")),
        };
        let only = rest.strip_prefix('/');
        if only.is_none() && !rest.is_empty() {
            return not_found();
        }
        self.verdict(question, only, is_verbose(request.uri().query().unwrap_or("")))
    }

    fn other(&self, path: &str, query: &str) -> Response<Full<Bytes>> {
        let Some(answer) = self.answers.as_ref().and_then(|answers| answers(path, query)) else {
            return not_found();
        };
        page(answer.status, HeaderValue::from_static(answer.content_type), answer.text)
    }

    fn verdict(
        &self,
        question: Question,
        only: Option<&str>,
        is_verbose: bool,
    ) -> Response<Full<Bytes>> {
        match self.health.report(question, only, Instant::now()) {
            None => not_found(),
            // Who is not told the reason has to ask again, so it is always told.
            Some(report) if !report.is_well => {
                page(StatusCode::SERVICE_UNAVAILABLE, TEXT, report.lines)
            }
            Some(report) if is_verbose => page(StatusCode::OK, TEXT, report.lines + "ok\n"),
            Some(_) => page(StatusCode::OK, TEXT, "ok\n".to_owned()),
        }
    }

    fn metrics(&self) -> Response<Full<Bytes>> {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        page(StatusCode::OK, OPEN_METRICS, text)
    }
}

fn is_verbose(query: &str) -> bool {
    query.split('&').any(|pair| pair == "verbose" || pair.starts_with("verbose="))
}

fn not_found() -> Response<Full<Bytes>> {
    page(StatusCode::NOT_FOUND, TEXT, "try /livez, /readyz or /metrics\n".to_owned())
}

fn page(status: StatusCode, content_type: HeaderValue, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response.headers_mut().insert(CACHE_CONTROL, NEVER_KEPT);
    response
}
