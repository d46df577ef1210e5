//! The thread that evaluates commands in order and owns the keyspace.

use std::{
    iter,
    sync::{Arc, mpsc as std_mpsc},
};

use bytes::Bytes;
use etcd_api::mvccpb::KeyValue;
use journal::{BatchId, Epoch};
use mvcc::{
    Keyspace, LeaseId, Leases, Outcome, Position, ReadError, Revision, Revoked, Values, Written,
};
use prost::Message;
use tokio::sync::mpsc;

use super::{
    Command, Compacted, Effect, LeaseContent,
    batch::{Batch, Gathered},
    command::Reply,
};
use crate::{
    Error, alarm,
    auth::{self, Access, Caller},
    housekeeping::{GivenUp, Superseded},
    meta,
    values::KeptValues,
};

/// Bytes written and answered at which a batch that waits for the committer takes no more commands,
const BATCH_BYTES_MAX: usize = 8 * 1024 * 1024;

/// and the number of commands: those that write little or nothing are kept in memory too until all
/// before them is durable, and clients that gave up on a stalled disk send them again. Above what
/// comes during one sync.
const BATCH_COMMANDS_MAX: usize = 16 * 1024;

/// Keys swept per step of a compaction: well below the time of a sync, so that no write waits for it.
const SWEEP_KEYS_MAX: usize = 64;

/// What the store is when it starts, read back from the journal.
pub(crate) struct Loaded {
    pub(crate) keyspace: Keyspace,
    pub(crate) alarms: alarm::Alarms,
    pub(crate) auth: auth::State,
}

/// The writer's ends of the channels it lives between.
pub(crate) struct Channels {
    pub(crate) commands: mpsc::Receiver<Command>,
    /// To the committer, which takes one batch at a time.
    pub(crate) batches: std_mpsc::SyncSender<Batch>,
    /// From the committer: the batch it had is durable.
    pub(crate) durable: std_mpsc::Receiver<()>,
    /// To housekeeping: what compaction found.
    pub(crate) superseded: std_mpsc::SyncSender<Superseded>,
    /// What housekeeping has done, where others follow who must know.
    pub(crate) given_up: Option<GivenUp>,
}

pub(crate) struct Writer {
    state: Loaded,
    epoch: Epoch,
    kept: Arc<KeptValues>,
    channels: Channels,
    gathered: Gathered,
    /// The batch the committer has.
    in_flight: Option<Arc<journal::Batch>>,
    batch_number: u64,
    /// The end of a lease with too many keys for one record; it comes before other commands, and goes
    /// on once what is gathered of it has gone to the committer.
    unfinished: Option<Command>,
    is_sweeping: bool,
    /// What housekeeping had no room for; it wakes the writer when it has.
    unsent: Option<Superseded>,
    /// Compactions to be answered when their space is given up.
    physical: Vec<Reply<Compacted>>,
}

/// What the writer can read: its own writes that are not durable yet, then what is kept.
struct WriterValues<'w> {
    gathered: &'w [Written],
    in_flight: Option<&'w journal::Batch>,
    kept: &'w KeptValues,
}

// === impl Writer ===

impl Writer {
    pub(crate) fn new(
        state: Loaded,
        epoch: Epoch,
        batch_number: u64,
        kept: Arc<KeptValues>,
        channels: Channels,
    ) -> Self {
        // A compaction from before the start may not have been swept to its end.
        let is_sweeping = state.keyspace.compacted() > Revision::NEVER_COMPACTED;
        Self {
            state,
            epoch,
            kept,
            channels,
            gathered: Gathered::default(),
            in_flight: None,
            batch_number,
            unfinished: None,
            is_sweeping,
            unsent: None,
            physical: Vec::new(),
        }
    }

    /// Works until told to stop, or until the committer or housekeeping is gone.
    pub(crate) fn run(mut self) {
        while self.step().is_some() {}
    }

    /// Evaluates the commands that are there, hands them over if the committer is free, and sweeps a
    /// little. `None` ends the thread.
    fn step(&mut self) -> Option<()> {
        let waiting = self.channels.commands.len().max(1);
        for _ in 0..waiting {
            match self.next_command()? {
                Some(Command::Stop) => return self.finish(),
                Some(command) => self.evaluate(command),
                None => break,
            }
            if self.gathered.bytes >= BATCH_BYTES_MAX
                || self.gathered.commands() >= BATCH_COMMANDS_MAX
            {
                self.wait_for_committer()?;
                break;
            }
        }
        self.hand_over()?;
        if self.can_sweep() { self.sweep() } else { self.send_superseded() }
    }

    /// The next command; waits for one only if there is nothing else to do.
    fn next_command(&mut self) -> Option<Option<Command>> {
        if let Some(unfinished) = self.unfinished.take() {
            return Some(Some(unfinished));
        }
        match self.channels.commands.try_recv() {
            Ok(command) => Some(Some(command)),
            Err(mpsc::error::TryRecvError::Disconnected) => None,
            Err(mpsc::error::TryRecvError::Empty) if self.can_sweep() => Some(None),
            Err(mpsc::error::TryRecvError::Empty) => {
                self.channels.commands.blocking_recv().map(Some)
            }
        }
    }

    /// Gives the gathered batch to the committer if it has none. If it has one, it will wake the
    /// writer when it is done.
    fn hand_over(&mut self) -> Option<()> {
        if self.in_flight.is_some() {
            match self.channels.durable.try_recv() {
                Ok(()) => self.in_flight = None,
                Err(std_mpsc::TryRecvError::Empty) => return Some(()),
                // It failed, and nobody will be told that anything after it is durable.
                Err(std_mpsc::TryRecvError::Disconnected) => return None,
            }
        }
        if self.gathered.is_empty() {
            return Some(());
        }
        let batch = self.take_batch();
        self.in_flight = Some(batch.journal.clone());
        self.channels.batches.send(batch).ok()
    }

    fn wait_for_committer(&mut self) -> Option<()> {
        if self.in_flight.take().is_some() {
            self.channels.durable.recv().ok()?;
        }
        Some(())
    }

    fn take_batch(&mut self) -> Batch {
        self.batch_number += 1;
        let gathered = std::mem::take(&mut self.gathered);
        let (records, previous) =
            gathered.written.into_iter().map(|written| (written.record, written.previous)).unzip();
        let id = BatchId { epoch: self.epoch, number: self.batch_number };
        Batch {
            journal: Arc::new(journal::Batch { id, records, meta: gathered.meta }),
            previous,
            view: self.state.keyspace.view(),
            effects: gathered.effects,
            answers: gathered.answers,
        }
    }

    /// Hands over the last batch and waits for it; always `None`.
    fn finish(&mut self) -> Option<()> {
        self.wait_for_committer()?;
        self.hand_over()?;
        self.wait_for_committer()?;
        None
    }

    /// One step of compaction. What it finds goes to housekeeping, which gives it up once the
    /// compaction is durable and no reader from before it is left.
    fn sweep(&mut self) -> Option<()> {
        let sweep = self.state.keyspace.sweep(SWEEP_KEYS_MAX);
        self.is_sweeping = !sweep.is_done;
        let replies = if sweep.is_done { std::mem::take(&mut self.physical) } else { Vec::new() };
        if sweep.dead.is_empty() && !sweep.is_done {
            return Some(());
        }
        self.unsent = Some(Superseded {
            compacted: self.state.keyspace.compacted(),
            revision: self.state.keyspace.revision(),
            positions: sweep.dead,
            replies,
            is_last: sweep.is_done,
        });
        self.send_superseded()
    }

    fn can_sweep(&self) -> bool {
        self.is_sweeping && self.unsent.is_none()
    }

    fn send_superseded(&mut self) -> Option<()> {
        let Some(superseded) = self.unsent.take() else { return Some(()) };
        match self.channels.superseded.try_send(superseded) {
            Ok(()) => Some(()),
            Err(std_mpsc::TrySendError::Full(superseded)) => {
                self.unsent = Some(superseded);
                Some(())
            }
            Err(std_mpsc::TrySendError::Disconnected(_)) => None,
        }
    }

    fn evaluate(&mut self, command: Command) {
        match command {
            Command::Put { request, caller, room, reply } => {
                let response = self
                    .permit(&caller, |access, leases| access.put(&request, leases))
                    .and_then(|()| self.write(|keyspace, values| keyspace.put(&request, values)));
                self.answer_write(room, reply, response);
            }
            Command::DeleteRange { request, caller, reply } => {
                let response =
                    self.permit(&caller, |access, _| access.delete_range(&request)).and_then(
                        |()| self.write(|keyspace, values| keyspace.delete_range(&request, values)),
                    );
                self.answer_write((), reply, response);
            }
            Command::Txn { request, caller, room, reply } => {
                let response = self
                    .permit(&caller, |access, leases| access.txn(&request, leases))
                    .and_then(|()| self.write(|keyspace, values| keyspace.txn(&request, values)));
                self.answer_write(room, reply, response);
            }
            Command::Compact { to, is_physical, reply } => self.compact(to, is_physical, reply),
            Command::Grant { id, ttl_s, room, reply } => {
                let granted = self.grant(id, ttl_s);
                self.answer_with(room, reply, granted);
            }
            Command::Revoke { id, caller, reply } => match self.revoke(id, caller.as_ref()) {
                Ok(Revoked::Partly) => {
                    self.unfinished = Some(Command::Revoke { id, caller, reply });
                }
                revoked => {
                    let revision = self.state.keyspace.revision();
                    self.answer(reply, revoked.map(|_whole| revision));
                }
            },
            Command::Lease { id, reply } => {
                let lease = self.state.keyspace.leases().get(id);
                let content = lease.map(|lease| LeaseContent {
                    keys: lease.keys().map(Bytes::copy_from_slice).collect(),
                });
                self.gathered.bytes += content.as_ref().map_or(0, |lease| bytes_of(&lease.keys));
                self.answer(reply, Ok(content));
            }
            Command::LeasedKeys { reply } => {
                let leases = self.state.keyspace.leases().iter();
                let keys = leases.flat_map(|(_, lease)| lease.keys());
                let keys: Vec<Bytes> = keys.map(Bytes::copy_from_slice).collect();
                self.gathered.bytes += bytes_of(&keys);
                self.answer(reply, Ok(keys));
            }
            Command::Alarm { change, reply } => {
                let alarms = self.alarm(change);
                self.answer(reply, Ok(alarms));
            }
            Command::Auth { change, caller, reply } => {
                let changed = self.auth(&caller, change);
                self.answer(reply, changed);
            }
            Command::Snapshot { reply } => self.gathered.effects.push(Effect::Snapshot(reply)),
            Command::Wake | Command::Stop => {}
        }
    }

    /// Rights are looked up in the order of the writes, so that a right that was taken away before a
    /// write does not let it through.
    fn permit(
        &self,
        caller: &Caller,
        check: impl FnOnce(Access<'_>, &Leases) -> Result<(), auth::Error>,
    ) -> Result<(), Error> {
        check(self.state.auth.access(caller), self.state.keyspace.leases()).map_err(Error::Auth)
    }

    fn write<R>(
        &mut self,
        act: impl FnOnce(&mut Keyspace, &dyn Values) -> Result<Outcome<R>, mvcc::Error>,
    ) -> Result<R, Error> {
        let values = WriterValues {
            gathered: &self.gathered.written,
            in_flight: self.in_flight.as_deref(),
            kept: &self.kept,
        };
        let outcome = act(&mut self.state.keyspace, &values).map_err(Error::Keyspace)?;
        if let Some(written) = outcome.written {
            self.gathered.add(written);
        }
        Ok(outcome.response)
    }

    fn compact(&mut self, to: Revision, is_physical: bool, reply: Reply<Compacted>) {
        if let Err(error) = self.state.keyspace.compact(to) {
            return self.answer(reply, Err(Error::Keyspace(error)));
        }
        let given_up = self.channels.given_up.as_ref().and_then(GivenUp::get);
        let given_up = given_up.map(meta::given_up);
        self.gathered.change_meta(iter::once(meta::compacted(to)).chain(given_up));
        self.is_sweeping = true;
        if is_physical {
            self.physical.push(reply);
        } else {
            let revision = self.state.keyspace.revision();
            self.answer(reply, Ok(Compacted { revision }));
        }
    }

    fn grant(&mut self, id: LeaseId, ttl_s: i64) -> Result<Revision, Error> {
        self.state.keyspace.grant(id, ttl_s).map_err(Error::Keyspace)?;
        self.gathered.change_meta([meta::lease_granted(id, ttl_s)]);
        self.gathered.effects.push(Effect::LeaseGranted { id, ttl_s });
        Ok(self.state.keyspace.revision())
    }

    fn revoke(&mut self, id: LeaseId, caller: Option<&Caller>) -> Result<Revoked, Error> {
        if let (Some(caller), Some(lease)) = (caller, self.state.keyspace.leases().get(id)) {
            self.permit(caller, |access, _| access.lease_write(lease.keys()))?;
        }
        let revoked = self.write(|keyspace, values| keyspace.revoke(id, values))?;
        if revoked == Revoked::Whole {
            self.gathered.change_meta([meta::lease_gone(id)]);
            self.gathered.effects.push(Effect::LeaseRevoked { id });
        }
        Ok(revoked)
    }

    fn alarm(&mut self, change: alarm::Change) -> Vec<alarm::Alarm> {
        let changed = self.state.alarms.apply(change);
        if !changed.meta.is_empty() {
            self.gathered.change_meta(changed.meta);
            self.gathered.effects.push(Effect::Alarms(self.state.alarms.clone()));
        }
        changed.alarms
    }

    fn auth(&mut self, caller: &Caller, change: auth::Change) -> Result<Revision, Error> {
        let meta = self.state.auth.apply(caller, change).map_err(Error::Auth)?;
        if !meta.is_empty() {
            self.gathered.change_meta(meta);
            self.gathered.effects.push(Effect::Auth(Arc::new(self.state.auth.clone())));
        }
        Ok(self.state.keyspace.revision())
    }

    /// Sends `answer` when everything before it is durable.
    fn answer<T: Send + 'static>(&mut self, reply: Reply<T>, answer: Result<T, Error>) {
        self.answer_with((), reply, answer);
    }

    /// The same for an answer that may hold many key-values.
    fn answer_write<T: Message + 'static>(
        &mut self,
        room: impl Send + 'static,
        reply: Reply<T>,
        answer: Result<T, Error>,
    ) {
        self.gathered.bytes += answer.as_ref().map_or(0, Message::encoded_len);
        self.answer_with(room, reply, answer);
    }

    /// Answers, and gives up the room that was promised only then: whoever asked may have gone away,
    /// and the write still comes.
    fn answer_with<T: Send + 'static>(
        &mut self,
        room: impl Send + 'static,
        reply: Reply<T>,
        answer: Result<T, Error>,
    ) {
        self.gathered.answers.push(Box::new(move || {
            // Nobody may be waiting any more; that changes nothing.
            drop(reply.send(answer));
            drop(room);
        }));
    }
}

fn bytes_of(keys: &[Bytes]) -> usize {
    keys.iter().map(|key| size_of::<Bytes>() + key.len()).sum()
}

// === impl WriterValues ===

impl Values for WriterValues<'_> {
    fn read(&self, at: Position) -> Result<KeyValue, ReadError> {
        let index_from = |first: Option<Revision>| usize::try_from(at.revision.0 - first?.0).ok();
        let gathered = index_from(self.gathered.first().map(|written| written.record.revision))
            .and_then(|index| self.gathered.get(index))
            .map(|written| &written.record);
        let in_flight = || {
            let records = &self.in_flight?.records;
            records.get(index_from(records.first().map(|record| record.revision))?)
        };
        match gathered.or_else(in_flight).and_then(|record| record.changes.get(at.sub as usize)) {
            Some(change) => Ok(change.kv.clone()),
            None => self.kept.read(at),
        }
    }
}

#[cfg(test)]
mod tests;
