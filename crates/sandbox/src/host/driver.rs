//! Accompanies the shim of one attempt, and does its work when it is gone.

use std::{io, os::fd::OwnedFd, sync::Arc, time::Duration};

use rustix::process::Pid;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, Interest, unix::AsyncFd},
    net::UnixStream,
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until, timeout_at},
};
use tracing::{Instrument, warn};

use super::{Event, Inner, Machinery, NOTE_BYTES_MAX, Order, attempt::Line};
use crate::{
    Ended, Exit, Outcome, Usage,
    boottime::wall_time,
    log::{self, Sizes, Volume, Writer},
    record::{self, Record},
    shim::{
        chain,
        control::{self, Frames, Job, Stop, Word, encode},
        nursery::{Born, Nursery},
    },
};

/// A shim that has not ended its attempt this long after the grace is killed, and its work done here.
/// It may be stopped, or starved.
const SHIM_PATIENCE: Duration = Duration::from_secs(1);
/// A shim that has not begun by then does not come: its nursery stands still. Forking takes
/// milliseconds; this is for a machine that is very busy.
const BEGIN_MAX: Duration = Duration::from_secs(10);
/// What a killed shim left is looked at again after this long.
const BURY_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// Read from a shim at once: more than all it ever says.
const PIECE_BYTES: usize = 8 << 10;
const SIGNAL_KILL: i32 = 9;

/// Why no shim began.
#[derive(Debug, thiserror::Error)]
enum Obstacle {
    #[error("a note of {0} bytes is above the limit of {NOTE_BYTES_MAX}")]
    Note(usize),
    #[error("what an earlier attempt left cannot be removed")]
    Clear(#[source] io::Error),
    #[error("the attempt cannot be recorded")]
    Record(#[source] record::Error),
    #[error("cannot start a shim")]
    Shim(#[source] io::Error),
    #[error("no shim listened within {BEGIN_MAX:?}")]
    Deaf,
    #[error("the start was aborted")]
    Aborted(#[source] tokio::task::JoinError),
}

/// Why a dead shim's work could not be done.
#[derive(Debug, thiserror::Error)]
enum Unburied {
    #[error("cannot clean up")]
    Runtime(#[source] crate::runtime::Error),
    #[error("cannot read the record")]
    Record(#[source] record::Error),
    #[error("cannot end the log")]
    Log(#[source] log::Error),
    #[error("the work was aborted")]
    Aborted(#[source] tokio::task::JoinError),
}

/// One attempt, from its order to its end.
pub(super) async fn drive(host: Arc<Inner>, order: Order, line: Line) {
    let span = tracing::info_span!("attempt", id = %order.id);
    let mut driver = Driver { host, order, line, is_created: false };
    async move { driver.run().await }.instrument(span).await;
}

struct Driver {
    host: Arc<Inner>,
    order: Order,
    line: Line,
    /// Whether the command may have begun.
    is_created: bool,
}

/// The shim and how to talk with it.
struct Companion {
    socket: UnixStream,
    frames: Frames,
    /// Becomes readable when the shim is gone; `None` until it said who it is, and once that was seen.
    process: Option<AsyncFd<OwnedFd>>,
    /// Whether everything it ever said was read.
    is_silent: bool,
    /// When patience with it ends.
    give_up_at: Option<Instant>,
    /// When it is to have begun; `None` once it has.
    begin_by: Option<Instant>,
    /// Where it is to come from.
    nursery: u64,
}

// === impl Driver ===

impl Driver {
    async fn run(&mut self) {
        let mut companion = match self.begin().await {
            Ok(companion) => companion,
            Err(obstacle) => {
                self.line.tell(Event::Ended(self.never_begun(&obstacle).await));
                return;
            }
        };
        let ended = match self.accompany(&mut companion).await {
            Some(ended) => ended,
            None => self.bury().await,
        };
        self.line.tell(Event::Ended(ended));
    }

    /// Records the attempt, starts its shim and tells it what to do.
    async fn begin(&self) -> Result<Companion, Obstacle> {
        if self.order.note.len() > NOTE_BYTES_MAX {
            return Err(Obstacle::Note(self.order.note.len()));
        }
        let (host, id) = (Arc::clone(&self.host), self.order.id);
        let note = self.order.note.clone();
        let born = spawn_blocking(move || {
            host.places.clear_attempt(id).map_err(Obstacle::Clear)?;
            Record::create(&host.places.record(id), &note).map_err(Obstacle::Record)?;
            host.nursery().bear(&host.deadline).map_err(Obstacle::Shim)
        });
        let born = born.await.map_err(Obstacle::Aborted)??;
        let begin_by = Instant::now() + BEGIN_MAX;
        let mut companion = Companion::new(born, begin_by).map_err(Obstacle::Shim)?;
        let Machinery::Shim { kind, .. } = self.host.machinery else {
            unreachable!("a fake needs no shim")
        };
        let (site, spec) = (self.host.site.clone(), self.order.spec.clone());
        let job = Job { id: self.order.id, kind, site, spec };
        // A large job does not fit into what waits for a shim that is not there.
        let said = timeout_at(begin_by, companion.say(&encode(&job))).await;
        match said {
            Ok(said) => said.map_err(Obstacle::Shim)?,
            Err(_elapsed) => {
                self.give_up_nursery(companion.nursery).await;
                return Err(Obstacle::Deaf);
            }
        }
        Ok(companion)
    }

    /// What was asked of it comes to nothing; the next attempt has another.
    async fn give_up_nursery(&self, number: u64) {
        warn!("no shim begins; another nursery takes the place of the one that bears none");
        let host = Arc::clone(&self.host);
        if let Err(error) = spawn_blocking(move || host.nursery().give_up(number)).await {
            warn!(error = chain(&error), "the nursery is not given up");
        }
    }

    /// Listens until the shim has told the end, or is gone without.
    async fn accompany(&mut self, companion: &mut Companion) -> Option<Ended> {
        loop {
            let (give_up_at, begin_by) = (companion.give_up_at, companion.begin_by);
            tokio::select! {
                word = companion.hear() => match word {
                    Ok(Some(Word::Ended(ended))) => return Some(ended),
                    Ok(Some(Word::Begun { pid })) => {
                        companion.begin_by = None;
                        self.watch(companion, pid);
                    }
                    Ok(Some(word)) => self.on_word(word),
                    Ok(None) => return None,
                    Err(error) => {
                        warn!(error = chain(&error), "the shim is not understood");
                        return None;
                    }
                },
                grace = self.line.stop() => companion.stop(grace).await,
                () = sleep_until(give_up_at.unwrap_or_else(Instant::now)), if give_up_at.is_some() => {
                    warn!("the shim does not stop its attempt; killing it");
                    return None;
                }
                () = sleep_until(begin_by.unwrap_or_else(Instant::now)), if begin_by.is_some() => {
                    self.give_up_nursery(companion.nursery).await;
                    return None;
                }
            }
        }
    }

    fn on_word(&mut self, word: Word) {
        match word {
            Word::Created => {
                self.is_created = true;
                self.line.tell(Event::Created);
            }
            Word::Started => self.line.tell(Event::Started),
            Word::Trouble(error) => warn!(error, "the shim is in trouble"),
            Word::Begun { .. } | Word::Ended(_) => unreachable!("taken before"),
        }
    }

    /// Watches the shim's process: something it left may hold its end of the socket, which then does
    /// not end with it.
    fn watch(&self, companion: &mut Companion, pid: i32) {
        let record = Record::open(&self.host.places.record(self.order.id));
        let process = record.and_then(|record| match Pid::from_raw(pid) {
            Some(pid) => record.shim(pid),
            None => Ok(None),
        });
        match process {
            Ok(Some(process)) => companion.process = watched(process),
            Ok(None) => companion.hear_last_words(),
            Err(error) => warn!(error = chain(&error), "the shim is not watched"),
        }
    }

    async fn never_begun(&self, obstacle: &Obstacle) -> Ended {
        let ended = Ended::never_started(chain(obstacle));
        // An attempt that has a record of its own did not get it from here.
        if !matches!(obstacle, Obstacle::Clear(_) | Obstacle::Record(_) | Obstacle::Note(_)) {
            self.keep(ended.clone()).await;
        }
        ended
    }

    /// Does what the shim would have done: sees to it that nothing is left, and only then tells.
    async fn bury(&self) -> Ended {
        let ended = loop {
            match self.try_bury().await {
                Ok(ended) => break ended,
                Err(error) => {
                    warn!(error = chain(&error), "the shim is gone and its attempt may be alive");
                    sleep(BURY_AGAIN_AFTER).await;
                }
            }
        };
        self.keep(ended.clone()).await;
        ended
    }

    async fn try_bury(&self) -> Result<Ended, Unburied> {
        let (host, id) = (Arc::clone(&self.host), self.order.id);
        let assumed = self.outcome_without_shim();
        let work = spawn_blocking(move || {
            let record = Record::open(&host.places.record(id)).map_err(Unburied::Record)?;
            record.withdraw().map_err(Unburied::Record)?;
            host.runtime().cleanup(id).map_err(Unburied::Runtime)?;
            let kept = record.read().map_err(Unburied::Record)?.ended;
            let log = end_log(&host, id).map_err(Unburied::Log)?;
            Ok(kept.unwrap_or(Ended { outcome: assumed, usage: Usage::default(), log }))
        });
        work.await.map_err(Unburied::Aborted)?
    }

    /// What it means that the shim is gone and left no result. All it said was heard before its end,
    /// so if it did not say that it was ready to start, it did not start.
    fn outcome_without_shim(&self) -> Outcome {
        if self.line.stopped().is_some() {
            Outcome::Stopped
        } else if self.is_created {
            Outcome::Exited { exit: Exit::Signal(SIGNAL_KILL), is_oom_killed: false }
        } else {
            Outcome::NeverStarted { reason: "the shim ended before the command began".to_owned() }
        }
    }

    /// Keeps the end until it is forgotten. If the disk refuses, it is still worth telling: it is lost
    /// only if the daemon ends before somebody else recorded it.
    async fn keep(&self, ended: Ended) {
        let path = self.host.places.record(self.order.id);
        let kept = spawn_blocking(move || Record::open(&path)?.end(&ended)).await;
        if let Ok(Err(error)) = kept {
            warn!(error = chain(&error), "the result is not kept on disk");
        }
    }
}

// === impl Inner ===

impl Inner {
    fn nursery(&self) -> &Nursery {
        match &self.machinery {
            Machinery::Shim { nursery, .. } => nursery,
            Machinery::Fake(_) => unreachable!("a fake needs no shim"),
        }
    }
}

// === impl Companion ===

impl Companion {
    fn new(born: Born, begin_by: Instant) -> io::Result<Self> {
        let socket = std::os::unix::net::UnixStream::from(born.control);
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: UnixStream::from_std(socket)?,
            frames: Frames::default(),
            process: None,
            is_silent: false,
            give_up_at: None,
            begin_by: Some(begin_by),
            nursery: born.nursery,
        })
    }

    async fn say(&mut self, frame: &[u8]) -> io::Result<()> {
        self.socket.write_all(frame).await
    }

    /// The next word; `None` once the shim is gone. Cancel safe: what was read is kept.
    async fn hear(&mut self) -> Result<Option<Word>, control::Error> {
        loop {
            if let Some(word) = self.frames.pop()? {
                return Ok(Some(word));
            }
            if self.is_silent {
                return Ok(None);
            }
            let mut piece = [0; PIECE_BYTES];
            tokio::select! {
                read = self.socket.read(&mut piece) => match read {
                    Ok(0) => return Ok(None),
                    Ok(size) => self.frames.push(&piece[..size]),
                    // It was killed with words unread.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                    Err(error) => return Err(control::Error::Read(error)),
                },
                () = gone(self.process.as_ref()) => self.hear_last_words(),
            }
        }
    }

    /// Passes the wish on. A shim that cannot be told is gone, which is heard.
    async fn stop(&mut self, grace: Duration) {
        let give_up_at = Instant::now() + grace + SHIM_PATIENCE;
        self.give_up_at = Some(self.give_up_at.map_or(give_up_at, |before| before.min(give_up_at)));
        if let Err(error) = self.say(&encode(&Stop { grace })).await {
            warn!(error = chain(&error), "the shim cannot be told to stop");
        }
    }

    /// Reads what the shim said before it was gone. Whoever else holds its socket says nothing.
    fn hear_last_words(&mut self) {
        self.process = None;
        self.is_silent = true;
        let mut piece = [0; PIECE_BYTES];
        while let Ok(size @ 1..) = rustix::io::read(&self.socket, &mut piece) {
            self.frames.push(&piece[..size]);
        }
    }
}

#[expect(unsafe_code, reason = "tokio trusts its caller with descriptors")]
fn watched(process: OwnedFd) -> Option<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor stays open, and the same, as long as it is owned.
    let watched = unsafe { AsyncFd::register_with_interest(process, Interest::READABLE) };
    watched.map_err(|error| warn!(error = chain(&error), "the shim is not watched")).ok()
}

/// Waits until the process is gone; for ever if there is none to see.
async fn gone(process: Option<&AsyncFd<OwnedFd>>) {
    match process {
        Some(process) => drop(process.readable().await),
        None => std::future::pending().await,
    }
}

/// Writes the end a dead shim left out, behind its last whole record.
pub(super) fn end_log(host: &Inner, id: crate::AttemptId) -> Result<Volume, log::Error> {
    let resumed = Writer::resume(&host.places.attempt(id), Sizes::default())?;
    Ok(resumed.map(|log| log.end(wall_time())).unwrap_or_default())
}
