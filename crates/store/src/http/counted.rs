//! Counting what goes over the wire and how calls end. Owns the wrappers; what is counted belongs to
//! the metrics.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::body::Body;
use tonic::{Code, Status};

use crate::metrics::grpc::{Call, GrpcMetrics};

/// A connection whose bytes are counted.
pub(super) struct Metered<S> {
    stream: S,
    /// Absent where no gRPC is spoken.
    metrics: Option<GrpcMetrics>,
}

/// An answer of many messages, whose last words tell how the call ended.
struct LastWords {
    body: Body,
    call: Option<Call>,
}

/// Counts the end of a call: now if its outcome is known, else when the answer has ended.
pub(super) fn count_end(call: Call, response: Response<Body>) -> Response<Body> {
    match code(response.headers()) {
        Some(code) => call.ended(code),
        None if call.is_stream() => {
            return response.map(|body| Body::new(LastWords { body, call: Some(call) }));
        }
        // An answer of one message is complete with its head.
        None => call.ended(Code::Ok),
    }
    response
}

fn code(headers: &HeaderMap) -> Option<Code> {
    headers.get(Status::GRPC_STATUS).map(|code| Code::from_bytes(code.as_bytes()))
}

// === impl LastWords ===

impl http_body::Body for LastWords {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(code) = frame.trailers_ref().and_then(code)
            && let Some(call) = self.call.take()
        {
            call.ended(code);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

// === impl Metered ===

impl<S> Metered<S> {
    pub(super) fn new(stream: S, metrics: Option<GrpcMetrics>) -> Self {
        Self { stream, metrics }
    }

    fn sent(&self, written: &Poll<io::Result<usize>>) {
        if let (Some(metrics), Poll::Ready(Ok(bytes))) = (&self.metrics, written) {
            metrics.sent_bytes.inc_by(*bytes as u64);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Some(metrics) = &self.metrics {
            metrics.received_bytes.inc_by((buffer.filled().len() - before) as u64);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.sent(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.sent(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
