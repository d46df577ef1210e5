//! Counts requests by what they asked and how they were answered.

use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use tower::{Layer, Service};

use crate::metrics::{Asked, Requests};

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
        let pending = self.requests.begin(asked(&request));
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            pending.answered(answer.status());
            Ok(answer)
        })
    }
}

fn asked<I>(request: &Request<I>) -> Asked {
    let (namespace, resource) = subject(request.uri().path());
    Asked { verb: verb(request), resource: resource.to_owned(), namespace: namespace.to_owned() }
}

/// As Kubernetes calls it. kube marks its requests with what they do; the method alone cannot tell a
/// list from a watch. Whether only metadata is asked for is nothing that counts.
fn verb<I>(request: &Request<I>) -> &'static str {
    match request.extensions().get::<&'static str>().copied() {
        Some("get_metadata") => "get",
        Some("list_metadata") => "list",
        Some("watch_metadata") => "watch",
        Some("patch_metadata") => "patch",
        Some("replace") => "update",
        Some(verb) => verb,
        None => "other",
    }
}

/// The namespace and the kind of objects that a path is about, each empty if there is none.
fn subject(path: &str) -> (&str, &str) {
    let mut segments = path.trim_start_matches('/').split('/');
    let before_resource = match segments.next() {
        Some("api") => 1,
        Some("apis") => 2,
        _ => return ("", ""),
    };
    let rest: Vec<&str> = segments.skip(before_resource).collect();
    match rest[..] {
        ["namespaces", namespace, resource, ..] => (namespace, resource),
        [resource, ..] => ("", resource),
        [] => ("", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_what_it_is_about() {
        let leases = "/apis/coordination.k8s.io/v1/namespaces/n/leases";
        for (path, expected) in [
            ("/api/v1/nodes", ("", "nodes")),
            ("/api/v1/nodes/worker-7", ("", "nodes")),
            ("/api/v1/namespaces/n/configmaps/x", ("n", "configmaps")),
            (leases, ("n", "leases")),
            ("/api/v1/namespaces", ("", "namespaces")),
            ("/api/v1/namespaces/n", ("", "namespaces")),
            (
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                ("", "selfsubjectaccessreviews"),
            ),
            ("/version", ("", "")),
            ("/api", ("", "")),
        ] {
            assert_eq!(subject(path), expected, "{path}");
        }
    }
}
