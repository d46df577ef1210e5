//! A keyspace with the least around it that makes a store: changes are kept in memory, requests are
//! checked before they are carried out, and refusals have etcd's words.

use std::{cell::Cell, collections::BTreeMap};

use etcd_api::{
    ApiError,
    etcdserverpb::{
        CompactionRequest, CompactionResponse, HashKvRequest, HashKvResponse, LeaseGrantRequest,
        LeaseGrantResponse, LeaseRevokeResponse, LeaseTimeToLiveResponse, ResponseHeader,
    },
    mvccpb::{Event, EventType, KeyValue},
};
use mvcc::{
    Error, HistoryHash, Keyspace, LeaseId, Outcome, Position, ReadError, Revision, Values, Written,
    check::{self, RequestError},
    story::{Answer, Command},
};

/// etcd's default.
pub(crate) const TXN_OPS_MAX: usize = 128;

#[derive(Debug, Default)]
pub(crate) struct World {
    pub(crate) keyspace: Keyspace,
    pub(crate) memory: Memory,
}

/// Every change that was not named dead, by position.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) kept: BTreeMap<Position, KeyValue>,
    /// How many reads still succeed; all of them if not set.
    reads_left: Cell<Option<usize>>,
}

/// Why a world does not do what it is told.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// As a client is told.
    Api(ApiError),
    /// A change could not be read back.
    Read,
}

// === impl Memory ===

impl Memory {
    /// Makes the read after `reads` more ones fail, and all after it.
    pub(crate) fn fail_after(&self, reads: Option<usize>) {
        self.reads_left.set(reads);
    }

    fn keep(&mut self, written: &Written) {
        let kvs = written.record.positions().map(|(position, kv)| (position, kv.clone()));
        self.kept.extend(kvs);
    }
}

impl Values for Memory {
    fn read(&self, at: Position) -> Result<KeyValue, ReadError> {
        if let Some(left) = self.reads_left.get() {
            self.reads_left.set(Some(left.checked_sub(1).ok_or("the read was made to fail")?));
        }
        Ok(self.kept.get(&at).ok_or_else(|| format!("{at} is not kept"))?.clone())
    }
}

// === impl World ===

impl World {
    /// Carries out a command as a client would see it.
    ///
    /// # Panics
    ///
    /// If a change cannot be read back.
    pub(crate) fn answer(&mut self, command: &Command) -> Answer {
        match self.try_answer(command) {
            Ok(answer) => answer,
            Err(Refusal::Api(error)) => Answer::Refused(error.message().to_owned()),
            Err(Refusal::Read) => panic!("a change that {command:?} needs is not kept"),
        }
    }

    pub(crate) fn try_answer(&mut self, command: &Command) -> Result<Answer, Refusal> {
        let Self { keyspace, memory } = self;
        match command {
            Command::Put(request) => {
                check::put(request)?;
                let outcome = keyspace.put(request, memory)?;
                Ok(Answer::Put(self.kept(outcome)))
            }
            Command::Range(request) => {
                check::range(request)?;
                Ok(Answer::Range(keyspace.view().range(request, memory)?))
            }
            Command::DeleteRange(request) => {
                check::delete_range(request)?;
                let outcome = keyspace.delete_range(request, memory)?;
                Ok(Answer::DeleteRange(self.kept(outcome)))
            }
            Command::Txn(request) => {
                check::txn(request, TXN_OPS_MAX)?;
                let outcome = keyspace.txn(request, memory)?;
                Ok(Answer::Txn(self.kept(outcome)))
            }
            Command::Revoke(request) => {
                let outcome = keyspace.revoke(LeaseId(request.id), memory)?;
                self.kept(outcome);
                Ok(Answer::Revoke(LeaseRevokeResponse { header: self.header() }))
            }
            Command::Compact(request) => self.compact(request),
            Command::Grant(request) => self.grant(request),
            Command::TimeToLive(request) => Ok(self.time_to_live(request.id)),
            Command::HashKv(request) => self.hash_kv(request),
            Command::Watch(request) => Ok(self.watch(Revision(request.start_revision))),
        }
    }

    /// Sweeps up to `keys_max` keys, and forgets what is dead.
    ///
    /// # Panics
    ///
    /// If a change dies twice.
    pub(crate) fn sweep(&mut self, keys_max: usize) -> mvcc::Sweep {
        let sweep = self.keyspace.sweep(keys_max);
        for position in &sweep.dead {
            assert!(self.memory.kept.remove(position).is_some(), "{position} died twice");
        }
        sweep
    }

    fn kept<R>(&mut self, outcome: Outcome<R>) -> R {
        if let Some(written) = &outcome.written {
            self.check_previous(written);
            self.memory.keep(written);
        }
        outcome.response
    }

    /// What a writer is told of the versions it replaced is what the view says.
    fn check_previous(&self, written: &Written) {
        let view = self.keyspace.view();
        let of_view = written.record.positions().map(|(at, kv)| view.previous(kv.key(), at));
        assert_eq!(written.previous, of_view.collect::<Vec<_>>());
    }

    fn compact(&mut self, request: &CompactionRequest) -> Result<Answer, Refusal> {
        self.keyspace.compact(Revision(request.revision))?;
        if request.physical {
            assert!(self.sweep(usize::MAX).is_done, "a sweep without bound does all the work");
        }
        Ok(Answer::Compact(CompactionResponse { header: self.header() }))
    }

    fn grant(&mut self, request: &LeaseGrantRequest) -> Result<Answer, Refusal> {
        let LeaseGrantRequest { id, ttl } = *request;
        self.keyspace.grant(LeaseId(id), ttl)?;
        let error = String::new();
        Ok(Answer::Grant(LeaseGrantResponse { header: self.header(), id, ttl, error }))
    }

    fn time_to_live(&self, id: i64) -> Answer {
        let lease = self.keyspace.leases().get(LeaseId(id));
        let ttl = lease.map_or(-1, |lease| lease.ttl_s);
        Answer::TimeToLive(LeaseTimeToLiveResponse {
            header: self.header(),
            id,
            ttl,
            granted_ttl: ttl.max(0),
            keys: lease
                .map(|lease| lease.keys().map(bytes::Bytes::copy_from_slice).collect())
                .unwrap_or_default(),
        })
    }

    fn hash_kv(&self, request: &HashKvRequest) -> Result<Answer, Refusal> {
        let view = self.keyspace.view();
        let at = match request.revision {
            0 => view.revision(),
            wanted if wanted > view.revision().0 => return Err(ApiError::FutureRevision.into()),
            wanted if wanted < view.compacted().0 => return Err(ApiError::Compacted.into()),
            wanted => Revision(wanted),
        };
        let mut hash = HistoryHash::new(&view, at);
        for (position, kv) in &self.memory.kept {
            hash.add(*position, kv);
        }
        Ok(Answer::HashKv(HashKvResponse {
            header: self.header(),
            hash: hash.finish(),
            compact_revision: view.compacted().0,
            hash_revision: at.0,
        }))
    }

    fn watch(&self, from: Revision) -> Answer {
        let view = self.keyspace.view();
        let events = self.memory.kept.range(Position::first_of(from)..).map(|(position, kv)| {
            let kind = if kv.is_tombstone() { EventType::Delete } else { EventType::Put };
            let previous = view.previous(kv.key(), *position);
            Event::new(kind, kv, previous.map(|at| &self.memory.kept[&at]))
        });
        Answer::Watch(events.collect())
    }

    fn header(&self) -> Option<ResponseHeader> {
        Some(ResponseHeader { revision: self.keyspace.revision().0, ..Default::default() })
    }
}

// === impl Refusal ===

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl From<RequestError> for Refusal {
    fn from(error: RequestError) -> Self {
        Self::Api(match error {
            RequestError::EmptyKey => ApiError::EmptyKey,
            RequestError::InvalidSort => ApiError::InvalidSortOption,
            RequestError::ValueProvided => ApiError::ValueProvided,
            RequestError::LeaseProvided => ApiError::LeaseProvided,
            RequestError::TooManyOps => ApiError::TooManyOps,
            RequestError::DuplicateKey => ApiError::DuplicateKey,
            RequestError::EmptyOp => ApiError::KeyNotFound,
        })
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Api(match error {
            Error::FutureRevision { .. } => ApiError::FutureRevision,
            Error::Compacted { .. } => ApiError::Compacted,
            Error::KeyNotFound => ApiError::KeyNotFound,
            Error::LeaseNotFound(_) => ApiError::LeaseNotFound,
            Error::LeaseExists(_) => ApiError::LeaseExists,
            Error::TooLarge { .. } => ApiError::RequestTooLarge,
            Error::Read { .. } => return Self::Read,
        })
    }
}
