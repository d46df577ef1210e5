//! A task's output as one stream, whatever happens to the connections below it.

use tonic::Streaming;

use super::retry::{TRIES_MAX, pause};
use super::{Client, Error};
use crate::service::refusal::{Kind, Refusal};
use crate::wire;
use crate::wire::logs_response::Content;

/// See [`Client::logs`].
#[derive(Debug)]
pub struct Logs {
    client: Client,
    /// What to ask for when the stream has to be opened again.
    request: wire::LogsRequest,
    stream: Option<Streaming<wire::LogsResponse>>,
    /// Broken streams since the last chunk.
    broken: u32,
    has_ended: bool,
}

// === impl Logs ===

impl Logs {
    pub(super) fn new(client: Client, request: wire::LogsRequest) -> Self {
        Self { client, request, stream: None, broken: 0, has_ended: false }
    }

    /// The next chunk; `None` after the last. May be dropped while it waits: nothing is lost.
    pub async fn next(&mut self) -> Result<Option<wire::LogsResponse>, Error> {
        while !self.has_ended {
            match self.receive().await {
                Ok(Some(chunk)) => {
                    self.on_chunk(&chunk);
                    return Ok(Some(chunk));
                }
                Ok(None) => self.has_ended = true,
                Err(refusal) => self.on_broken(refusal).await?,
            }
        }
        Ok(None)
    }

    async fn receive(&mut self) -> Result<Option<wire::LogsResponse>, Refusal> {
        if self.stream.is_none() {
            let opened = self.client.tasks.clone().logs(self.request.clone()).await;
            self.stream = Some(opened?.into_inner());
        }
        let stream = self.stream.as_mut().expect("it was just opened");
        Ok(stream.message().await?)
    }

    /// From here on the same attempt is meant, from behind this chunk, whatever is the latest or the
    /// last few lines by then.
    fn on_chunk(&mut self, chunk: &wire::LogsResponse) {
        self.broken = 0;
        self.request.attempt = chunk.attempt;
        self.request.from_offset = chunk.next_offset;
        self.request.tail = None;
        self.has_ended = matches!(chunk.content, Some(Content::End(_)));
    }

    async fn on_broken(&mut self, refusal: Refusal) -> Result<(), Error> {
        self.stream = None;
        self.broken += 1;
        if refusal.kind != Kind::Unavailable || self.broken >= TRIES_MAX {
            return Err(Error::Refused(refusal));
        }
        tokio::time::sleep(pause(self.broken)).await;
        Ok(())
    }
}
