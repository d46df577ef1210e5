//! One connection to one node: many requests under way at once, each with a number that its answer
//! repeats. Owns what waits for answers; [`crate::lifecycle`] moves the bytes.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::timeout,
};

use crate::{
    Error, Options, Peer, lifecycle,
    wire::{
        frame::{self, Answer},
        pack::Packer,
        unpack::Unpacker,
    },
};

/// Requests that wait for the socket. Callers beyond it wait in line.
pub(crate) const OUTBOX_MAX: usize = 64;

/// The newest server clock any answer carried. Shared by all connections of a client, so that a
/// snapshot taken through one sees what was done through another.
pub(crate) type Observed = Arc<AtomicI64>;

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) address: String,
    pub(crate) peer: Peer,
    options: Arc<Options>,
    outbox: mpsc::Sender<Bytes>,
    waiting: Arc<Waiting>,
    /// Ends with the connection, and ends it.
    _tasks: JoinSet<()>,
}

/// Who waits for which answer.
#[derive(Debug)]
pub(crate) struct Waiting {
    address: String,
    observed: Observed,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Open {
        next_id: i64,
        replies: HashMap<i64, Reply>,
    },
    /// Nothing will be answered any more; why.
    Closed(Error),
}

type Reply = oneshot::Sender<Result<Unpacker, Error>>;

/// A request that somebody waits for. Whoever gives up is not remembered.
struct Asked<'a> {
    waiting: &'a Waiting,
    id: i64,
}

// === impl Connection ===

impl Connection {
    pub(crate) async fn open(
        address: &str,
        options: &Arc<Options>,
        observed: Observed,
    ) -> Result<Self, Error> {
        let waited = options.connect_timeout;
        let socket = timeout(waited, lifecycle::connect(address)).await;
        let socket =
            socket.map_err(|_elapsed| Error::Silent { address: address.to_owned(), waited })??;
        let greeted = timeout(waited, lifecycle::greet(address, socket, options)).await;
        let (stream, peer) = greeted
            .map_err(|_elapsed| Error::NoGreeting { address: address.to_owned(), waited })??;
        observed.fetch_max(peer.observable, Ordering::AcqRel);
        let waiting = Arc::new(Waiting::new(address, observed));
        let (outbox, outgoing) = mpsc::channel(OUTBOX_MAX);
        let tasks = lifecycle::start(stream, outgoing, Arc::clone(&waiting), &peer, options);
        Ok(Self {
            address: address.to_owned(),
            peer,
            options: Arc::clone(options),
            outbox,
            waiting,
            _tasks: tasks,
        })
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(*self.waiting.state.lock(), State::Open { .. })
    }

    /// For everybody who waits.
    pub(crate) fn end(&self) {
        self.waiting.on_end(self.waiting.lost(io::ErrorKind::ConnectionAborted.into()));
    }

    pub(crate) fn observed(&self) -> i64 {
        self.waiting.observed.load(Ordering::Acquire)
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn ask(&self, op: i32, payload: Packer) -> Result<Unpacker, Error> {
        let payload = payload.finish();
        let bytes_max = self.options.message_bytes_max;
        if payload.len() > bytes_max {
            return Err(Error::TooLarge { bytes: payload.len(), bytes_max });
        }
        let (id, answer) = self.waiting.register()?;
        let _asked = Asked { waiting: &self.waiting, id };
        if self.outbox.send(frame::request(op, id, &payload)).await.is_err() {
            return Err(self.waiting.reason());
        }
        match timeout(self.options.request_timeout, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_dropped)) => Err(self.waiting.reason()),
            Err(_elapsed) => Err(Error::Silent {
                address: self.address.clone(),
                waited: self.options.request_timeout,
            }),
        }
    }

    /// Asks without waiting, for what is only polite. Says nothing when there is no room for it.
    pub(crate) fn post(&self, op: i32, payload: Packer) {
        if let Ok((id, _nobody)) = self.waiting.register() {
            let is_sent = self.outbox.try_send(frame::request(op, id, &payload.finish())).is_ok();
            if !is_sent {
                self.waiting.forget(id);
            }
        }
    }
}

// === impl Asked ===

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.waiting.forget(self.id);
    }
}

// === impl Waiting ===

impl Waiting {
    pub(crate) fn new(address: &str, observed: Observed) -> Self {
        let state = State::Open { next_id: 1, replies: HashMap::new() };
        Self { address: address.to_owned(), observed, state: Mutex::new(state) }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// A new request's number, and where its answer will come.
    pub(crate) fn register(
        &self,
    ) -> Result<(i64, oneshot::Receiver<Result<Unpacker, Error>>), Error> {
        match &mut *self.state.lock() {
            State::Closed(error) => Err(error.clone()),
            State::Open { next_id, replies } => {
                let id = *next_id;
                *next_id += 1;
                let (reply, answer) = oneshot::channel();
                replies.insert(id, reply);
                Ok((id, answer))
            }
        }
    }

    fn forget(&self, id: i64) {
        if let State::Open { replies, .. } = &mut *self.state.lock() {
            replies.remove(&id);
        }
    }

    pub(crate) fn on_answer(&self, answer: Answer) {
        self.observed.fetch_max(answer.observable, Ordering::AcqRel);
        if answer.is_notification {
            // Only for features that this client did not ask for.
            return;
        }
        self.reply(answer.id, answer.outcome.map_err(Error::Server));
    }

    /// Ends one request, whose answer cannot be taken.
    pub(crate) fn refuse(&self, id: i64, error: Error) {
        self.reply(id, Err(error));
    }

    fn reply(&self, id: i64, outcome: Result<Unpacker, Error>) {
        let reply = match &mut *self.state.lock() {
            State::Open { replies, .. } => replies.remove(&id),
            State::Closed(_) => None,
        };
        if let Some(reply) = reply {
            // Nobody waits any more for an answer that came too late.
            drop(reply.send(outcome));
        }
    }

    /// Ends the connection for everybody. The first reason stays.
    pub(crate) fn on_end(&self, error: Error) {
        let mut state = self.state.lock();
        if let State::Open { replies, .. } = &mut *state {
            for (_, reply) in replies.drain() {
                drop(reply.send(Err(error.clone())));
            }
            *state = State::Closed(error);
        }
    }

    pub(crate) fn lost(&self, source: io::Error) -> Error {
        Error::Lost { address: self.address.clone(), source: Arc::new(source) }
    }

    fn reason(&self) -> Error {
        match &*self.state.lock() {
            State::Closed(error) => error.clone(),
            State::Open { .. } => self.lost(io::ErrorKind::BrokenPipe.into()),
        }
    }
}
