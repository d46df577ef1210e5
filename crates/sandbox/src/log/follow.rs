//! Reads a log as it grows, without blocking the caller's thread.

use std::{collections::VecDeque, time::Duration};

use tokio::task::{JoinHandle, spawn_blocking};

use super::{Content, Entry, Error, Log, Reader, Start, Streams};
use crate::{places::unless_missing, record};

/// Held in memory for a slow consumer.
const BATCH_BYTES_MAX: usize = 256 << 10;
/// A growing log is looked at again after this long; one that rests, twice as long each time.
const LOOK_AFTER_MIN: Duration = Duration::from_millis(10);
const LOOK_AFTER_MAX: Duration = Duration::from_millis(250);

/// Delivers entries until the end. Files are polled: a notification per follower would cost more than
/// the few looks, and a look cannot be missed.
#[derive(Debug)]
pub struct Follower {
    work: Work,
    ready: VecDeque<Entry>,
    look_after: Duration,
}

/// Where the reader is.
#[derive(Debug)]
enum Work {
    Resting(Box<Job>),
    /// On a thread that may block. Held here, so that a dropped `next` loses nothing.
    Reading(JoinHandle<Result<Batch, Error>>),
    Done,
}

/// The reader, and what it read.
type Batch = (Box<Job>, Vec<Entry>);

#[derive(Debug)]
struct Job {
    log: Log,
    start: Start,
    streams: Streams,
    /// What is there before the attempt has a record is not its own.
    awaits_record: bool,
    /// `None`: nothing was there yet.
    reader: Option<Reader>,
}

// === impl Follower ===

impl Follower {
    pub(super) fn new(log: Log, start: Start, streams: Streams) -> Self {
        Self::of(Job { log, start, streams, awaits_record: false, reader: None })
    }

    pub(super) fn current(log: Log, start: Start, streams: Streams) -> Self {
        Self::of(Job { log, start, streams, awaits_record: true, reader: None })
    }

    fn of(job: Job) -> Self {
        let work = Work::Resting(Box::new(job));
        Self { work, ready: VecDeque::new(), look_after: Duration::ZERO }
    }

    /// The next entry, as soon as there is one; `None` after [`Content::End`]. Cancel safe.
    ///
    /// # Errors
    ///
    /// If the log cannot be read. Nothing follows an error.
    pub async fn next(&mut self) -> Result<Option<Entry>, Error> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                if entry.content == Content::End {
                    self.work = Work::Done;
                }
                return Ok(Some(entry));
            }
            match &mut self.work {
                Work::Done => return Ok(None),
                Work::Resting(_) => {
                    tokio::time::sleep(self.look_after).await;
                    self.begin();
                }
                Work::Reading(reading) => {
                    let read = reading.await;
                    self.work = Work::Done;
                    let (job, entries) = read.map_err(Error::Aborted)??;
                    self.work = Work::Resting(job);
                    self.take(entries);
                }
            }
        }
    }

    fn begin(&mut self) {
        if let Work::Resting(mut job) = std::mem::replace(&mut self.work, Work::Done) {
            self.work = Work::Reading(spawn_blocking(move || {
                let entries = job.read()?;
                Ok((job, entries))
            }));
        }
    }

    fn take(&mut self, entries: Vec<Entry>) {
        self.look_after = if entries.is_empty() {
            (self.look_after * 2).clamp(LOOK_AFTER_MIN, LOOK_AFTER_MAX)
        } else {
            Duration::ZERO
        };
        self.ready.extend(entries);
    }
}

// === impl Job ===

impl Job {
    fn read(&mut self) -> Result<Vec<Entry>, Error> {
        if self.reader.is_none() && !self.has_begun()? {
            return Ok(Vec::new());
        }
        // Asked before the files are read: who is over now has written everything by now.
        let is_over = self.is_over()?;
        let reader = match &mut self.reader {
            Some(reader) => reader,
            None => self.reader.insert(self.log.read(self.start, self.streams)?),
        };
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while bytes < BATCH_BYTES_MAX {
            let Some(entry) = reader.next_entry()? else {
                if is_over && !reader.is_ended() {
                    entries.push(missing_end(reader));
                }
                break;
            };
            if let Content::Data { bytes: data, .. } = &entry.content {
                bytes += data.len();
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Whether there is something to read. What a record is made for is cleared away before.
    fn has_begun(&self) -> Result<bool, Error> {
        Ok((!self.awaits_record || self.log.is_current()?) && self.log.exists()?)
    }

    /// Whether nobody will write any more. The record is made before the log, so a log without one
    /// belongs to an attempt that was forgotten; looked for in the other order, an attempt that begins
    /// in between would seem to be one.
    fn is_over(&self) -> Result<bool, Error> {
        if !self.log.exists()? {
            return Ok(false);
        }
        let path = &self.log.record;
        let has_ended = unless_missing(record::has_ended(path));
        let has_ended = has_ended.map_err(|source| Error::Read { path: path.clone(), source })?;
        Ok(has_ended.unwrap_or(true))
    }
}

/// The end of a log whose disk had no room for it.
fn missing_end(reader: &Reader) -> Entry {
    Entry { offset: reader.offset(), time: reader.time(), content: Content::End }
}
