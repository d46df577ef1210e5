//! The JSON gateway: `/v3/…` requests become gRPC requests to the services of this process, and
//! their answers become JSON. Owns that translation; what a request means is the services' affair.

mod call;
pub(super) mod json;
mod lines;
mod refusal;
mod routes;
mod scan;

use futures::future::BoxFuture;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tonic::Status;
use tonic::body::Body;
use tonic_prost::ProstCodec;

use self::call::Call;
use super::pages;
use super::services::GrpcServices;

/// On every answer that a service gave, because etcd's gateway shows the metadata of the answer.
const ANSWERED_HEADER: HeaderName = HeaderName::from_static("grpc-metadata-content-type");
const ANSWERED: HeaderValue = HeaderValue::from_static("application/grpc");

/// Carries one request to its service and its answer back.
type Exchange = fn(Call) -> BoxFuture<'static, Result<Response<Body>, Status>>;

/// What JSON requests are read into.
trait Ask: Message + DeserializeOwned + Default + 'static {}
impl<M: Message + DeserializeOwned + Default + 'static> Ask for M {}

/// What JSON answers are written from.
trait Reply: Message + Serialize + Default + 'static {}
impl<M: Message + Serialize + Default + 'static> Reply for M {}

/// Where the gateway sends requests, and how large they may be.
#[derive(Clone)]
pub(super) struct Gateway {
    pub(super) services: GrpcServices,
    pub(super) message_bytes_max: usize,
}

// === impl Gateway ===

impl Gateway {
    /// Takes the body out of the request if it is read.
    pub(super) async fn answer(&self, path: &str, request: &mut Request<Body>) -> Response<Body> {
        let answered = self.try_answer(path, request).await;
        answered.unwrap_or_else(|refused| refusal::response(&refused))
    }

    async fn try_answer(
        &self,
        path: &str,
        request: &mut Request<Body>,
    ) -> Result<Response<Body>, Status> {
        let route = routes::find(path).ok_or_else(|| Status::not_found("Not Found"))?;
        if request.method() != Method::POST {
            return Err(Status::unimplemented("Method Not Allowed"));
        }
        let call = Call::new(self.clone(), route.method, std::mem::take(request));
        let timeout = call.timeout()?;
        let answered = (route.exchange)(call);
        match timeout {
            None => answered.await,
            Some(timeout) => {
                tokio::time::timeout(timeout, answered).await.unwrap_or_else(|_elapsed| {
                    Err(Status::deadline_exceeded("context deadline exceeded"))
                })
            }
        }
    }
}

/// One message there, one back.
fn unary<Q: Ask, R: Reply>(mut call: Call) -> BoxFuture<'static, Result<Response<Body>, Status>> {
    Box::pin(async move {
        let message = call.message::<Q>().await?;
        let request = call.request(message);
        let codec = ProstCodec::<Q, R>::default();
        let reply = call.client().unary(request, call.path(), codec).await?;
        let mut response = pages::json(StatusCode::OK, json::write(reply.get_ref())?);
        response.headers_mut().insert(ANSWERED_HEADER, ANSWERED);
        Ok(response)
    })
}

/// One message there, many back.
fn answer_stream<Q: Ask, R: Reply>(
    mut call: Call,
) -> BoxFuture<'static, Result<Response<Body>, Status>> {
    Box::pin(async move {
        let message = call.message::<Q>().await?;
        let request = call.request(message);
        let codec = ProstCodec::<Q, R>::default();
        Ok(lines::response(call.client().server_streaming(request, call.path(), codec).await).await)
    })
}

/// Many messages there, many back, at the same time.
fn both_streams<Q: Ask, R: Reply>(
    mut call: Call,
) -> BoxFuture<'static, Result<Response<Body>, Status>> {
    Box::pin(async move {
        let messages = call.messages::<Q>();
        let request = call.request(messages);
        let codec = ProstCodec::<Q, R>::default();
        Ok(lines::response(call.client().streaming(request, call.path(), codec).await).await)
    })
}
