//! Decides for each request of a connection who answers it. Owns that decision and nothing else.

use std::convert::Infallible;
use std::sync::Arc;

use futures::future::{BoxFuture, Either};
use http::header::CONTENT_TYPE;
use http::{Request, Response, Version};
use hyper::body::Incoming;
use tonic::body::Body;

use super::pages::Pages;
use super::services::{GrpcReply, GrpcServices};
use crate::auth::{PeerIdentity, Relayed};
use crate::metrics::grpc::GrpcMetrics;

const GRPC: &[u8] = b"application/grpc";

/// Answers the requests of one connection.
#[derive(Clone)]
pub(super) struct Dispatch {
    /// Absent where only HTTP is served.
    services: Option<GrpcServices>,
    pages: Arc<Pages>,
    /// Present if the client showed a certificate.
    identity: Option<PeerIdentity>,
    /// Whether clients are other members, who act for others.
    is_of_peers: bool,
}

// === impl Dispatch ===

impl Dispatch {
    pub(super) fn new(services: Option<GrpcServices>, pages: Arc<Pages>) -> Self {
        Self { services, pages, identity: None, is_of_peers: false }
    }

    pub(super) fn of_peers(self) -> Self {
        Self { is_of_peers: true, ..self }
    }

    /// Where a connection's bytes are counted, if it may carry gRPC.
    pub(super) fn metrics(&self) -> Option<&GrpcMetrics> {
        self.services.as_ref().map(GrpcServices::metrics)
    }

    pub(super) fn with_identity(&self, identity: Option<PeerIdentity>) -> Self {
        Self { identity, ..self.clone() }
    }
}

impl hyper::service::Service<Request<Incoming>> for Dispatch {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<GrpcReply, BoxFuture<'static, Result<Response<Body>, Infallible>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let mut request = request.map(Body::new);
        match &self.services {
            Some(services) if is_grpc(&request) => {
                // A request without extensions allocates no map for them: only clients with a
                // certificate pay for it.
                if let Some(identity) = &self.identity {
                    request.extensions_mut().insert(identity.clone());
                }
                if self.is_of_peers {
                    request.extensions_mut().insert(Relayed);
                }
                Either::Left(services.answer(request))
            }
            _ => {
                let pages = Arc::clone(&self.pages);
                let identity = self.identity.clone();
                Either::Right(Box::pin(async move {
                    Ok(pages.answer(request, identity.as_ref()).await)
                }))
            }
        }
    }
}

/// gRPC needs HTTP/2; over HTTP/1 the same content type is one more way to ask for JSON.
fn is_grpc(request: &Request<Body>) -> bool {
    request.version() == Version::HTTP_2
        && (request.headers().get(CONTENT_TYPE))
            .is_some_and(|kind| kind.as_bytes().starts_with(GRPC))
}
