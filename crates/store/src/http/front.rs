//! Pages for people, of a process that serves more than a store. The store's own paths come first, so
//! no client of etcd ever sees one.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use tonic::body::Body;

use super::pages;

/// Nothing is fetched, run or framed: all there is to a page is its own text and style.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'",
);

/// A path in, the making of a page out, or nothing if there is no such page.
pub type FrontPages = Arc<dyn Fn(&str) -> Option<Making> + Send + Sync>;

/// Nothing comes of it when the process stops meanwhile.
pub type Making = BoxFuture<'static, Option<FrontPage>>;

/// One page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrontPage {
    pub content_type: &'static str,
    pub text: String,
}

// === impl FrontPage ===

impl FrontPage {
    pub(super) fn into_response(self) -> Response<Body> {
        let kind = HeaderValue::from_static(self.content_type);
        let mut response = pages::full(StatusCode::OK, kind, self.text.into_bytes());
        let headers = response.headers_mut();
        headers.insert(CONTENT_SECURITY_POLICY, POLICY);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}
