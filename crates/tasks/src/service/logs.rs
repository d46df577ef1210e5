//! Logs: what an attempt wrote, from wherever it lies. A log stays on the host that ran the attempt;
//! any other node passes it on, one hop and no more.

mod find;
mod local;
mod remote;

use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sandbox::log::{Start, Stream, Streams};
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

use self::find::Found;
use super::admit::place;
use super::error::{Error, Field};
use super::{Service, task_id};
use crate::core::id::TaskId;
use crate::wire;

/// What comes of a log: chunks, or why there are no more.
type Chunks = BoxStream<'static, Result<wire::LogsResponse, Status>>;

/// What is wanted, checked.
#[derive(Clone, Debug)]
struct Wanted {
    id: TaskId,
    /// `None`: the latest.
    attempt: Option<u32>,
    streams: Streams,
    start: Start,
    follow: bool,
    /// Another node asks: nobody else is asked then.
    is_passed_on: bool,
}

// === impl Service ===

impl Service {
    /// Whether there is such a task is known before the stream begins. The rest may take until the
    /// task starts, and belongs to the stream.
    pub(super) async fn stream_log(&self, request: wire::LogsRequest) -> Result<Chunks, Error> {
        let wanted = Wanted::new(&request)?;
        let place = place(&self.shared.followers, "log readers", self.bounds().followers_max)?;
        self.record(wanted.id).await?;
        let service = self.clone();
        let opened = async move {
            let chunks = service.open(&wanted, request).await?;
            Ok::<_, Status>(held(chunks, place))
        };
        Ok(stream::once(opened).try_flatten().boxed())
    }

    async fn open(&self, wanted: &Wanted, request: wire::LogsRequest) -> Result<Chunks, Error> {
        match self.find_attempt(wanted).await? {
            Found::Nothing => Ok(stream::empty().boxed()),
            Found::Here(attempt) => self.read_here(wanted, &attempt).await,
            Found::Elsewhere(attempt) if wanted.is_passed_on => Err(attempt.away(wanted.id)),
            Found::Elsewhere(attempt) => self.pass_on(&attempt, wanted.id, request).await,
        }
    }
}

/// Keeps the reader's place for as long as it reads.
fn held(chunks: Chunks, place: OwnedSemaphorePermit) -> Chunks {
    let chunks = chunks.map(move |chunk| {
        let _held = &place;
        chunk
    });
    chunks.boxed()
}

// === impl Wanted ===

impl Wanted {
    fn new(request: &wire::LogsRequest) -> Result<Self, Error> {
        let start = match (request.tail, request.from_offset) {
            (None, offset) => Start::Offset(offset),
            (Some(lines), 0) => Start::Lines(lines),
            (Some(_), _) => return Err(Error::field("tail", Field::NotWithOffset)),
        };
        Ok(Self {
            id: task_id("id", &request.id)?,
            attempt: Some(request.attempt).filter(|number| *number > 0),
            streams: streams(&request.streams)?,
            start,
            follow: request.follow,
            is_passed_on: request.proxied,
        })
    }
}

fn streams(wanted: &[i32]) -> Result<Streams, Error> {
    if wanted.is_empty() {
        return Ok(Streams::ALL);
    }
    let mut streams = Streams { stdout: false, stderr: false };
    for each in wanted {
        match wire::Stream::try_from(*each) {
            Ok(wire::Stream::Stdout) => streams.stdout = true,
            Ok(wire::Stream::Stderr) => streams.stderr = true,
            Ok(wire::Stream::Unspecified) | Err(_) => {
                return Err(Error::field("streams", Field::Unknown(*each)));
            }
        }
    }
    Ok(streams)
}

fn stream_number(stream: Stream) -> i32 {
    match stream {
        Stream::Stdout => wire::Stream::Stdout.into(),
        Stream::Stderr => wire::Stream::Stderr.into(),
    }
}
