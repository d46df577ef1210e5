//! A log that lies on this host.

use futures::stream::{self, StreamExt, TryStreamExt};
use sandbox::AttemptId;
use sandbox::log::{Content, Entry, Follower, Log, Reader, Start, Streams};
use tokio::task::spawn_blocking;
use tonic::Status;

use super::find::Attempt;
use super::{Chunks, Wanted, stream_number};
use crate::core::id::TaskId;
use crate::core::record::Record;
use crate::node::Updates;
use crate::service::Service;
use crate::service::error::Error;
use crate::wire;
use crate::wire::logs_response;

/// Entries read at once from a log that is not followed; each is at most 64 KiB.
const ENTRIES_AT_ONCE: usize = 16;

/// One who reads a log as it grows.
struct Following {
    service: Service,
    id: TaskId,
    number: u32,
    log: Log,
    start: Start,
    streams: Streams,
    follower: Follower,
    has_read: bool,
    updates: Updates,
    /// As it was last seen; `None` when the attempt is over, and what its log has is all it will
    /// have.
    going_on: Option<Record>,
}

// === impl Service ===

impl Service {
    pub(super) async fn read_here(
        &self,
        wanted: &Wanted,
        attempt: &Attempt,
    ) -> Result<Chunks, Error> {
        let (id, number) = (wanted.id, attempt.number);
        let log = self.node().host().logs(AttemptId { task: id.0, number });
        if attempt.has_ended && !exists(&log).await? {
            return match attempt.never_ran {
                true => Ok(stream::empty().boxed()),
                false => Err(Error::LogGone { id, attempt: number }),
            };
        }
        if !wanted.follow {
            return match attempt.has_ended || self.is_there(&log, id, number).await? {
                true => read(log, wanted, number).await,
                false => Ok(stream::empty().boxed()),
            };
        }
        let (start, streams) = (wanted.start, wanted.streams);
        let mut following = Following {
            service: self.clone(),
            id,
            number,
            start,
            streams,
            follower: log.follow_current(start, streams),
            has_read: false,
            log,
            updates: self.listen()?,
            going_on: None,
        };
        following.look().await?;
        let chunks = stream::try_unfold(following, |mut following| async move {
            let entry = following.next().await?;
            let number = following.number;
            Ok::<_, Status>(entry.map(|entry| (chunk(number, entry), following)))
        });
        Ok(chunks.boxed())
    }

    /// Whether the log is that of an attempt which was seen to go on. Before it begins, one may lie there of
    /// an earlier task with the same id; after its end it has none that could be told from that.
    async fn is_there(&self, log: &Log, id: TaskId, number: u32) -> Result<bool, Error> {
        let log = log.clone();
        let looked = spawn_blocking(move || log.is_current()).await;
        let is_current = looked.or(Err(Error::Stopping))?.map_err(Error::ReadLog)?;
        Ok(is_current || !is_running(self.going_on(id, number).await?.as_ref()))
    }

    /// The task while the attempt goes on, as far as is recorded. One that nobody knows of does not.
    async fn going_on(&self, id: TaskId, number: u32) -> Result<Option<Record>, Error> {
        let record = match self.record(id).await {
            Ok(record) => record,
            Err(Error::NoTask(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let attempt = record.task.attempts.iter().find(|each| each.number.0 == number);
        let goes_on = attempt.is_some_and(|attempt| attempt.cause.is_none());
        Ok(goes_on.then_some(record))
    }
}

fn is_running(going_on: Option<&Record>) -> bool {
    going_on.is_some_and(|record| record.task.status.running().is_some())
}

async fn exists(log: &Log) -> Result<bool, Error> {
    let log = log.clone();
    let looked = spawn_blocking(move || log.exists()).await;
    looked.or(Err(Error::Stopping))?.map_err(Error::ReadLog)
}

/// What is there now, a few entries at a time.
async fn read(log: Log, wanted: &Wanted, number: u32) -> Result<Chunks, Error> {
    let (start, streams) = (wanted.start, wanted.streams);
    let opened = spawn_blocking(move || log.read(start, streams)).await;
    let reader = opened.or(Err(Error::Stopping))?.map_err(Error::ReadLog)?;
    let batches = stream::try_unfold(reader, |reader| async move {
        let read = spawn_blocking(move || next_few(reader)).await;
        let (entries, reader) = read.or(Err(Error::Stopping))?.map_err(Error::ReadLog)?;
        Ok::<_, Error>((!entries.is_empty()).then_some((entries, reader)))
    });
    let entries = batches.map_ok(|entries| stream::iter(entries.into_iter().map(Ok::<_, Error>)));
    Ok(entries
        .try_flatten()
        .map_ok(move |entry| chunk(number, entry))
        .map_err(Status::from)
        .boxed())
}

fn next_few(mut reader: Reader) -> Result<(Vec<Entry>, Reader), sandbox::log::Error> {
    let mut entries = Vec::new();
    while entries.len() < ENTRIES_AT_ONCE
        && let Some(entry) = reader.next_entry()?
    {
        entries.push(entry);
    }
    Ok((entries, reader))
}

// === impl Following ===

impl Following {
    /// The next entry; `None` after the last. An attempt that never came to write ends without one.
    async fn next(&mut self) -> Result<Option<Entry>, Error> {
        while let Some(known) = &self.going_on {
            tokio::select! {
                entry = self.follower.next() => {
                    self.has_read = true;
                    return entry.map_err(Error::ReadLog);
                }
                changed = self.service.until_changed(&mut self.updates, known) => changed?,
            }
            self.look().await?;
        }
        if exists(&self.log).await? {
            self.follower.next().await.map_err(Error::ReadLog)
        } else {
            Ok(None)
        }
    }

    /// Whether the attempt goes on. The log of one that is not to go on is what lies there.
    async fn look(&mut self) -> Result<(), Error> {
        self.going_on = self.service.going_on(self.id, self.number).await?;
        if !self.has_read && !is_running(self.going_on.as_ref()) {
            self.follower = self.log.follow(self.start, self.streams);
        }
        Ok(())
    }
}

fn chunk(attempt: u32, entry: Entry) -> wire::LogsResponse {
    let next_offset = entry.next_offset();
    let (stream, content) = match entry.content {
        Content::Data { stream, bytes } => {
            (stream_number(stream), logs_response::Content::Data(bytes))
        }
        Content::Gap { bytes } => {
            let gap = logs_response::Gap { dropped_bytes: bytes };
            (wire::Stream::Unspecified.into(), logs_response::Content::Gap(gap))
        }
        Content::End => {
            let end = logs_response::Content::End(logs_response::End {});
            (wire::Stream::Unspecified.into(), end)
        }
    };
    wire::LogsResponse {
        attempt,
        offset: entry.offset,
        time_ms: i64::try_from(entry.time.as_millis()).unwrap_or(i64::MAX),
        stream,
        next_offset,
        content: Some(content),
    }
}
