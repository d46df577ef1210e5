//! One call in progress: messages out, messages in.

use bytes::{Buf, Bytes};
use h2::{RecvStream, SendStream};
use prost::Message;

use super::{Chunks, Error, PREFIX_BYTES, ResponseFuture, check_status, frame};

pub(crate) struct Stream {
    path: &'static str,
    outgoing: SendStream<Bytes>,
    incoming: Incoming,
    received: Chunks,
}

enum Incoming {
    /// Nothing came yet. A server may hold its headers back until its first message.
    Headers(ResponseFuture),
    /// Messages, then the status.
    Body(RecvStream),
    /// The status came and was good.
    Over,
}

// === impl Stream ===

impl Stream {
    pub(super) fn new(
        path: &'static str,
        response: ResponseFuture,
        outgoing: SendStream<Bytes>,
    ) -> Self {
        let incoming = Incoming::Headers(response);
        Self { path, outgoing, incoming, received: Chunks::default() }
    }

    pub(crate) fn send(&mut self, message: &impl Message, is_last: bool) -> Result<(), Error> {
        let path = self.path;
        self.outgoing
            .send_data(frame(message), is_last)
            .map_err(|source| Error::Transport { path, source })
    }

    /// The next message, or `None` after the last if the call ended well.
    pub(crate) async fn next<A: Message + Default>(&mut self) -> Result<Option<A>, Error> {
        loop {
            if let Some(message) = self.decode()? {
                return Ok(Some(message));
            }
            if !self.receive().await? {
                return Ok(None);
            }
        }
    }

    fn decode<A: Message + Default>(&mut self) -> Result<Option<A>, Error> {
        let path = self.path;
        let Some(length) = self.message_len() else { return Ok(None) };
        if self.received.remaining() < PREFIX_BYTES + length {
            return Ok(None);
        }
        self.received.advance(PREFIX_BYTES);
        let message = A::decode((&mut self.received).take(length));
        message.map(Some).map_err(|source| Error::Decode { path, source })
    }

    /// The length of the next message, once its prefix is here.
    fn message_len(&self) -> Option<usize> {
        let mut prefix = [0; PREFIX_BYTES];
        let mut at = 0;
        for piece in self.received.pieces() {
            let count = piece.len().min(PREFIX_BYTES - at);
            prefix[at..at + count].copy_from_slice(&piece[..count]);
            at += count;
            if at == PREFIX_BYTES {
                break;
            }
        }
        let [_flag, length @ ..] = prefix;
        (at == PREFIX_BYTES).then_some(u32::from_be_bytes(length) as usize)
    }

    /// Takes what comes next off the wire; `false` once there is no more.
    async fn receive(&mut self) -> Result<bool, Error> {
        let path = self.path;
        let failed = |source| Error::Transport { path, source };
        match &mut self.incoming {
            Incoming::Headers(response) => {
                let response = response.await.map_err(failed)?;
                self.incoming = accept(path, response)?;
                Ok(true)
            }
            Incoming::Body(body) => {
                if let Some(piece) = body.data().await {
                    let piece = piece.map_err(failed)?;
                    body.flow_control().release_capacity(piece.len()).map_err(failed)?;
                    self.received.push(piece);
                    return Ok(true);
                }
                let trailers = body.trailers().await.map_err(failed)?;
                check_status(path, &trailers.unwrap_or_default())?;
                self.incoming = Incoming::Over;
                Ok(false)
            }
            Incoming::Over => Ok(false),
        }
    }
}

fn accept(path: &'static str, response: http::Response<RecvStream>) -> Result<Incoming, Error> {
    if response.status() != http::StatusCode::OK {
        return Err(Error::Http { path, status: response.status() });
    }
    if response.body().is_end_stream() {
        check_status(path, response.headers())?;
        return Ok(Incoming::Over);
    }
    Ok(Incoming::Body(response.into_body()))
}
