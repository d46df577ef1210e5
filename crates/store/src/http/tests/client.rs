//! Clients of the edge: gRPC over any stream, and HTTP/1 as text.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::body::Body;
use tonic::codegen::Service;

/// One HTTP/2 connection that tonic's clients can use.
#[derive(Clone)]
pub(super) struct Connection(http2::SendRequest<Body>);

/// Keeps connections going; dropping it ends them.
#[derive(Default)]
pub(super) struct Connections(JoinSet<()>);

// === impl Connections ===

impl Connections {
    pub(super) async fn open<S>(&mut self, stream: S) -> Connection
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        self.0.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the test's connection ended");
            }
        });
        Connection(sender)
    }

    pub(super) async fn tcp(&mut self, address: SocketAddr) -> Connection {
        let stream = TcpStream::connect(address).await.unwrap();
        self.open(stream).await
    }
}

// === impl Connection ===

impl Service<Request<Body>> for Connection {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = BoxFuture<'static, hyper::Result<Response<Incoming>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let path = request.uri().path();
        *request.uri_mut() = format!("http://localhost{path}").parse().expect("it is an address");
        Box::pin(self.0.send_request(request))
    }
}

/// Asks over HTTP/1 and returns the answer: status, the headers that matter, body.
pub(super) async fn ask(address: SocketAddr, request: Request<String>) -> String {
    let stream = TcpStream::connect(address).await.unwrap();
    ask_over(stream, request).await
}

pub(super) async fn ask_over<S>(stream: S, request: Request<String>) -> String
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    render(&answer(stream, request).await)
}

/// The whole answer to a request over HTTP/1.
pub(super) async fn answer<S>(stream: S, request: Request<String>) -> Response<Bytes>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let mut connection: Pin<Box<_>> = Box::pin(connection);
    let asked = async {
        let response = sender.send_request(request.map(Full::<Bytes>::from)).await.unwrap();
        let (head, body) = response.into_parts();
        Response::from_parts(head, body.collect().await.unwrap().to_bytes())
    };
    let mut asked = std::pin::pin!(asked);
    tokio::select! {
        answer = &mut asked => answer,
        ended = &mut connection => {
            ended.unwrap();
            asked.await
        }
    }
}

/// A request as one line, with its headers and its body.
pub(super) fn request(line: &str, headers: &[(&str, &str)], body: &str) -> Request<String> {
    let (method, path) = line.split_once(' ').expect("a line is `METHOD path`");
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(body.to_owned()).unwrap()
}

fn render(response: &Response<Bytes>) -> String {
    let shown = ["content-type", "allow", "x-content-type-options", "www-authenticate"];
    let mut text = response.status().to_string();
    for name in shown {
        if let Some(value) = response.headers().get(name) {
            text += &format!("\n{name}: {}", value.to_str().unwrap());
        }
    }
    text + "\n\n" + str::from_utf8(response.body()).unwrap()
}
