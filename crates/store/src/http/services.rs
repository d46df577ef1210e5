//! The gRPC services behind the edge, found by the service's name in the path.
//!
//! A list of names is compared instead of asking a router: there are nine services, the busiest
//! come first, and tonic's services have already boxed the future that answers, so finding one
//! allocates nothing.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use http::{Request, Response};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service};
use tonic::server::NamedService;
use tonic::{Code, Status};

use super::counted;
use crate::metrics::grpc::{Call, GrpcMetrics};

/// How tonic words its refusal of a message above the limit.
const OVERSIZED: &str = "Error, decoded message length too large: found ";

/// What answers gRPC requests. Cheap to clone.
#[derive(Clone, Default)]
pub struct GrpcServices {
    services: Arc<[Named]>,
    metrics: GrpcMetrics,
    detour: Option<Arc<dyn Detour>>,
}

/// Where some requests are answered in place of the services here.
pub(crate) trait Detour: Send + Sync {
    /// Whether requests to this path go there now.
    fn takes(&self, path: &str) -> bool;

    fn answer(self: Arc<Self>, request: Request<Body>) -> FutureOf<Response<Body>>;
}

type FutureOf<T> = futures::future::BoxFuture<'static, T>;

/// The answer to one gRPC request, on its way.
pub struct GrpcReply {
    answer: BoxFuture<Response<Body>, Infallible>,
    /// Absent for what nobody counts, and once the call was counted.
    call: Option<Call>,
}

#[derive(Clone)]
struct Named {
    name: &'static str,
    service: Arc<dyn Answer>,
}

/// A tonic service whose concrete type is forgotten.
trait Answer: Send + Sync {
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>, Infallible>;
}

impl<S> Answer for S
where
    S: Service<
            Request<Body>,
            Response = Response<Body>,
            Error = Infallible,
            Future = BoxFuture<Response<Body>, Infallible>,
        > + Clone
        + Send
        + Sync,
{
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>, Infallible> {
        // tonic's generated services are always ready, and clone as one reference count.
        self.clone().call(request)
    }
}

// === impl GrpcServices ===

impl GrpcServices {
    /// Adds a service. Those asked most often belong first.
    #[must_use]
    pub fn with<S>(self, service: S) -> Self
    where
        S: NamedService
            + Service<
                Request<Body>,
                Response = Response<Body>,
                Error = Infallible,
                Future = BoxFuture<Response<Body>, Infallible>,
            > + Clone
            + Send
            + Sync
            + 'static,
    {
        let added = Named { name: S::NAME, service: Arc::new(service) };
        Self { services: self.services.iter().cloned().chain([added]).collect(), ..self }
    }

    /// Counts calls there.
    #[must_use]
    pub(crate) fn counted_by(self, metrics: GrpcMetrics) -> Self {
        Self { metrics, ..self }
    }

    /// Sends some requests elsewhere.
    #[must_use]
    pub(crate) fn relayed_by(self, detour: Arc<dyn Detour>) -> Self {
        Self { detour: Some(detour), ..self }
    }

    pub(super) fn metrics(&self) -> &GrpcMetrics {
        &self.metrics
    }

    /// Answers `/<service>/<method>`.
    pub fn answer(&self, request: Request<Body>) -> GrpcReply {
        let path = request.uri().path();
        if let Some(detour) = self.detour.as_ref().filter(|detour| detour.takes(path)) {
            let call = self.metrics.started(path);
            let answer = Arc::clone(detour).answer(request);
            return GrpcReply { answer: Box::pin(answer.map(Ok)), call };
        }
        let name = service_name(path);
        match self.services.iter().find(|service| service.name == name) {
            Some(found) => {
                let call = self.metrics.started(path);
                GrpcReply { answer: found.service.answer(request), call }
            }
            None => {
                let answer = Box::pin(std::future::ready(Ok(unknown(name))));
                GrpcReply { answer, call: None }
            }
        }
    }
}

/// So that a client in the same process can be made of it.
impl Service<Request<Body>> for GrpcServices {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = GrpcReply;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> GrpcReply {
        self.answer(request)
    }
}

// === impl GrpcReply ===

impl Future for GrpcReply {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Ok(response) = ready!(self.answer.as_mut().poll(context));
        let response = with_etcds_refusal(response);
        Poll::Ready(Ok(match self.call.take() {
            Some(call) => counted::count_end(call, response),
            None => response,
        }))
    }
}

fn service_name(path: &str) -> &str {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split_once('/').map_or(path, |(service, _)| service)
}

fn unknown(name: &str) -> Response<Body> {
    Status::unimplemented(format!("unknown service {name}")).into_http()
}

/// A message above the limit is `ResourceExhausted` to etcd's clients, where tonic answers
/// `OutOfRange`, which they take for a revision out of range.
fn with_etcds_refusal(response: Response<Body>) -> Response<Body> {
    let is_out_of_range = (response.headers().get(Status::GRPC_STATUS))
        .is_some_and(|code| Code::from_bytes(code.as_bytes()) == Code::OutOfRange);
    if !is_out_of_range {
        return response;
    }
    let refusal =
        Status::from_header_map(response.headers()).and_then(|status| oversized(status.message()));
    refusal.map_or(response, Status::into_http)
}

fn oversized(message: &str) -> Option<Status> {
    let mut numbers = message
        .strip_prefix(OVERSIZED)?
        .split(|character: char| !character.is_ascii_digit())
        .filter(|number| !number.is_empty());
    let (found, limit) = (numbers.next()?, numbers.next()?);
    Some(message_too_large(found, limit))
}

/// The refusal of a message above the limit, as etcd's gRPC library words it.
pub(super) fn message_too_large(
    found: impl std::fmt::Display,
    limit: impl std::fmt::Display,
) -> Status {
    let words = format!("grpc: received message larger than max ({found} vs. {limit})");
    Status::resource_exhausted(words)
}
