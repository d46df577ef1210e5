//! Counts requests by what they asked and how they were answered.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use tower::{Layer, Service};

use crate::metrics::Requests;

#[derive(Clone)]
pub(super) struct CountedLayer {
    requests: Requests,
}

#[derive(Clone)]
pub(super) struct Counted<S> {
    inner: S,
    requests: Requests,
}

// === impl CountedLayer ===

impl CountedLayer {
    pub(super) fn new(requests: Requests) -> Self {
        Self { requests }
    }
}

impl<S> Layer<S> for CountedLayer {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, requests: self.requests.clone() }
    }
}

// === impl Counted ===

impl<S, I, O> Service<Request<I>> for Counted<S>
where
    S: Service<Request<I>, Response = Response<O>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    O: Send + 'static,
{
    type Response = Response<O>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<O>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<I>) -> Self::Future {
        let pending = self.requests.begin(verb(&request));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            pending.answered(answer.status());
            Ok(answer)
        })
    }
}

/// kube marks its requests with what they do; the method alone cannot tell a list from a watch.
fn verb<I>(request: &Request<I>) -> &'static str {
    request.extensions().get::<&'static str>().copied().unwrap_or("other")
}
