//! The one writer: gives every write its revision, and answers once it is durable.
//!
//! ```text
//! workers ──commands──► sequencer ──batches──► committer ──► published state, watches, answers
//!                        evaluates               appends
//! ```
//!
//! Two threads. The [`writer`] evaluates commands against the keyspace, pending writes included,
//! and gathers what they leave in a batch. The [`committer`] makes one batch durable at a time;
//! meanwhile the next one gathers. There is no timer: a batch goes as soon as the committer is
//! free, so it holds what arrived while the one before was syncing.

mod batch;
mod command;
mod committer;
mod writer;

pub(crate) use batch::{ChangeEvent, CommittedBatch, Effect, Previous};
pub(crate) use command::{Command, Compacted, LeaseContent, Reply, SnapshotPoint};
pub use committer::CommitError;
pub(crate) use committer::{Audience, Committer};
pub(crate) use writer::{Channels, Loaded, Writer};

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use etcd_api::{
    ApiError,
    etcdserverpb::{
        DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse, TxnRequest, TxnResponse,
    },
};
use mvcc::{LeaseId, Revision};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::{
    Error, alarm,
    auth::{self, Caller},
    metrics::Proposals,
    quota::Promise,
    replica::REQUEST_TIMEOUT,
};

/// Commands that wait for the sequencer. Full means that the journal is slower than the clients;
/// they wait for room.
pub(crate) const COMMANDS_MAX: usize = 4096;

/// Sends commands to the sequencer and waits for their answers.
#[derive(Clone)]
pub(crate) struct Sequencer {
    writer: Arc<ArcSwapOption<mpsc::Sender<Command>>>,
    /// Whether the writer is here for as long as the store; else it comes and goes with the role.
    is_permanent: bool,
    proposals: Proposals,
}

// === impl Sequencer ===

impl Sequencer {
    /// One whose writer is yet to be seated.
    pub(crate) fn new(is_permanent: bool, proposals: Proposals) -> Self {
        Self { writer: Arc::default(), is_permanent, proposals }
    }

    pub(crate) fn seat(&self, commands: mpsc::Sender<Command>) {
        self.writer.store(Some(Arc::new(commands)));
    }

    /// Takes no more, and tells the writer to end. Blocks while its queue is full.
    pub(crate) fn unseat(&self) {
        if let Some(commands) = self.writer.swap(None) {
            // A closed channel means that the writer has ended already, which is what was asked for.
            commands.blocking_send(Command::Stop).ok();
        }
    }

    pub(crate) async fn put(
        &self,
        request: PutRequest,
        caller: Caller,
        room: Promise,
    ) -> Result<PutResponse, Error> {
        self.ask(|reply| Command::Put { request, caller, room, reply }).await
    }

    pub(crate) async fn delete_range(
        &self,
        request: DeleteRangeRequest,
        caller: Caller,
    ) -> Result<DeleteRangeResponse, Error> {
        self.ask(|reply| Command::DeleteRange { request, caller, reply }).await
    }

    pub(crate) async fn txn(
        &self,
        request: TxnRequest,
        caller: Caller,
        room: Option<Promise>,
    ) -> Result<TxnResponse, Error> {
        self.ask(|reply| Command::Txn { request: Box::new(request), caller, room, reply }).await
    }

    /// Forgets history below `to`. With `is_physical` the answer waits until the space is given up.
    pub(crate) async fn compact(
        &self,
        to: Revision,
        is_physical: bool,
    ) -> Result<Compacted, Error> {
        self.ask(|reply| Command::Compact { to, is_physical, reply }).await
    }

    pub(crate) async fn grant(
        &self,
        id: LeaseId,
        ttl_s: i64,
        room: Promise,
    ) -> Result<Revision, Error> {
        self.ask(|reply| Command::Grant { id, ttl_s, room, reply }).await
    }

    /// Without a caller the lease has expired, and the store waits for as long as it takes: a lease is
    /// found expired only once.
    pub(crate) async fn revoke(
        &self,
        id: LeaseId,
        caller: Option<Caller>,
    ) -> Result<Revision, Error> {
        let is_own_doing = caller.is_none();
        let command = |reply| Command::Revoke { id, caller, reply };
        if is_own_doing { self.send(command).await } else { self.ask(command).await }
    }

    pub(crate) async fn lease(&self, id: LeaseId) -> Result<Option<LeaseContent>, Error> {
        self.ask(|reply| Command::Lease { id, reply }).await
    }

    /// The keys of all leases.
    pub(crate) async fn leased_keys(&self) -> Result<Vec<Bytes>, Error> {
        self.ask(|reply| Command::LeasedKeys { reply }).await
    }

    pub(crate) async fn alarm(&self, change: alarm::Change) -> Result<Vec<alarm::Alarm>, Error> {
        self.ask(|reply| Command::Alarm { change, reply }).await
    }

    pub(crate) async fn auth(
        &self,
        change: auth::Change,
        caller: Caller,
    ) -> Result<Revision, Error> {
        self.ask(|reply| Command::Auth { change, caller, reply }).await
    }

    /// The newest durable state with the meta table that belongs to it.
    pub(crate) async fn snapshot(&self) -> Result<SnapshotPoint, Error> {
        self.ask(|reply| Command::Snapshot { reply }).await
    }

    /// Lets what was sent before finish, then ends both threads.
    pub(crate) async fn stop(&self) {
        // A closed channel means that the writer has ended already, which is what was asked for.
        if let Some(commands) = self.writer.load_full() {
            commands.send(Command::Stop).await.ok();
        }
    }

    /// Whether the writer has no more to do than half of what may wait for it, so that what is not
    /// urgent holds nobody up.
    pub(crate) fn has_room(&self) -> bool {
        let writer = self.writer.load();
        writer.as_ref().is_some_and(|commands| commands.capacity() >= commands.max_capacity() / 2)
    }

    /// Whether nothing will be answered any more.
    pub(crate) fn has_stopped(&self) -> bool {
        self.is_permanent && self.writer.load().as_ref().is_none_or(|writer| writer.is_closed())
    }

    /// Waits until [`has_stopped`](Self::has_stopped), for ever where the writer comes and goes.
    pub(crate) async fn stopped(&self) {
        match self.writer.load_full() {
            Some(commands) if self.is_permanent => commands.closed().await,
            _ => std::future::pending().await,
        }
    }

    /// Why an answer never came.
    fn gone(&self) -> Error {
        if self.is_permanent { Error::Stopped } else { Error::Deposed }
    }

    /// A writer that comes and goes may be cut off from its journal, and is waited for only so long.
    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Command,
    ) -> Result<T, Error> {
        if self.is_permanent {
            return self.send(command).await;
        }
        let answered = timeout(REQUEST_TIMEOUT, self.send(command)).await;
        answered.unwrap_or_else(|_elapsed| Err(ApiError::Timeout.into()))
    }

    async fn send<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, Error>>) -> Command,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let proposal = self.proposals.begin();
        let Some(commands) = self.writer.load_full() else { return Err(Error::NoWriter) };
        if commands.send(command(reply)).await.is_err() {
            return Err(self.gone());
        }
        match answer.await {
            Ok(answer) => {
                proposal.answered();
                answer
            }
            Err(_) => Err(self.gone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_writer_that_is_cut_off_is_not_waited_for_for_ever() {
        let sequencer = Sequencer::new(false, Proposals::default());
        let (commands, _queue) = mpsc::channel(1);
        sequencer.seat(commands);
        for _ in ["in the queue", "before it"] {
            let refused = sequencer.lease(LeaseId(1)).await.err().expect("refused");
            assert_eq!(refused.api(), ApiError::Timeout);
        }
    }

    #[tokio::test]
    async fn what_is_not_urgent_waits_while_the_queue_is_half_full() {
        let sequencer = Sequencer::new(true, Proposals::default());
        assert!(!sequencer.has_room(), "nobody writes");
        let (commands, _queue) = mpsc::channel(4);
        sequencer.seat(commands.clone());
        let has_room = [(); 4].map(|()| {
            assert!(commands.try_send(Command::Wake).is_ok(), "the queue has room");
            sequencer.has_room()
        });
        assert_eq!(has_room, [true, true, false, false]);
    }
}
