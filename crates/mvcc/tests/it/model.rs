//! The naive store: a list of everything that ever happened. Every question is answered by reading
//! the list from its beginning, so there is little here that could be wrong.

pub(crate) mod duplicates;
mod history;
mod range;
mod txn;

use std::collections::BTreeMap;

use etcd_api::{
    ApiError,
    etcdserverpb::{
        CompactionRequest, CompactionResponse, LeaseGrantRequest, LeaseGrantResponse,
        LeaseRevokeResponse, LeaseTimeToLiveResponse, ResponseHeader,
    },
    mvccpb::KeyValue,
};
use mvcc::{
    Position, Revision,
    story::{Answer, Command},
};

#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// All changes ever made, in order; compaction takes nothing away.
    events: Vec<(Position, KeyValue)>,
    pub(crate) revision: i64,
    pub(crate) compacted: i64,
    /// The TTL of each lease.
    leases: BTreeMap<i64, i64>,
}

/// A key's live versions by key.
type State = BTreeMap<Vec<u8>, KeyValue>;

// === impl Model ===

impl Default for Model {
    fn default() -> Self {
        Self { events: Vec::new(), revision: 1, compacted: -1, leases: BTreeMap::new() }
    }
}

impl Model {
    /// Carries out a command that makes sense in itself.
    pub(crate) fn answer(&mut self, command: &Command) -> Answer {
        let mut after = self.clone();
        match after.try_answer(command) {
            Ok(answer) => {
                *self = after;
                answer
            }
            Err(error) => Answer::Refused(error.message().to_owned()),
        }
    }

    /// On an error the model is spoilt.
    fn try_answer(&mut self, command: &Command) -> Result<Answer, ApiError> {
        match command {
            Command::Range(request) => self.range(request).map(Answer::Range),
            Command::Put(request) => self.alone(|draft| draft.put(request)).map(Answer::Put),
            Command::DeleteRange(request) => {
                self.alone(|draft| Ok(draft.delete_range(request))).map(Answer::DeleteRange)
            }
            Command::Txn(request) => self.txn(request).map(Answer::Txn),
            Command::Compact(request) => self.compact(request),
            Command::Grant(request) => self.grant(request),
            Command::Revoke(request) => self.revoke(request.id),
            Command::TimeToLive(request) => Ok(self.time_to_live(request.id)),
            Command::HashKv(_) | Command::Watch(_) => unreachable!("the model does not know them"),
        }
    }

    /// The keys that existed at `at`.
    pub(crate) fn state_at(&self, at: i64) -> State {
        let mut state = State::new();
        for (position, kv) in &self.events {
            match position.revision.0 <= at {
                true if kv.is_tombstone() => drop(state.remove(kv.key())),
                true => drop(state.insert(kv.key().to_vec(), kv.clone())),
                false => {}
            }
        }
        state
    }

    /// The newest version of a key that exists.
    fn newest(&self, key: &[u8]) -> Option<KeyValue> {
        let (_, kv) = self.events.iter().rfind(|(_, kv)| kv.key() == key)?;
        (!kv.is_tombstone()).then(|| kv.clone())
    }

    fn compact(&mut self, request: &CompactionRequest) -> Result<Answer, ApiError> {
        match request.revision {
            to if to <= self.compacted => return Err(ApiError::Compacted),
            to if to > self.revision => return Err(ApiError::FutureRevision),
            to => self.compacted = to,
        }
        Ok(Answer::Compact(CompactionResponse { header: self.header() }))
    }

    fn grant(&mut self, request: &LeaseGrantRequest) -> Result<Answer, ApiError> {
        let LeaseGrantRequest { id, ttl } = *request;
        if self.leases.insert(id, ttl).is_some() {
            return Err(ApiError::LeaseExists);
        }
        let error = String::new();
        Ok(Answer::Grant(LeaseGrantResponse { header: self.header(), id, ttl, error }))
    }

    fn revoke(&mut self, id: i64) -> Result<Answer, ApiError> {
        self.leases.remove(&id).ok_or(ApiError::LeaseNotFound)?;
        let keys = self.keys_of(id);
        self.alone(|draft| {
            keys.iter().for_each(|key| draft.delete(key));
            Ok(())
        })?;
        Ok(Answer::Revoke(LeaseRevokeResponse { header: self.header() }))
    }

    fn time_to_live(&self, id: i64) -> Answer {
        let ttl = self.leases.get(&id).copied();
        Answer::TimeToLive(LeaseTimeToLiveResponse {
            header: self.header(),
            id,
            ttl: ttl.unwrap_or(-1),
            granted_ttl: ttl.unwrap_or(0),
            keys: self.keys_of(id).into_iter().map(Into::into).collect(),
        })
    }

    /// The keys whose newest version names the lease.
    fn keys_of(&self, id: i64) -> Vec<Vec<u8>> {
        let state = self.state_at(self.revision).into_iter();
        state.filter(|(_, kv)| kv.lease() == id).map(|(key, _)| key).collect()
    }

    fn header(&self) -> Option<ResponseHeader> {
        Some(ResponseHeader { revision: self.revision, ..Default::default() })
    }

    fn push(&mut self, sub: u32, kv: KeyValue) {
        self.events.push((Position::new(Revision(kv.mod_revision()), sub), kv));
    }
}

/// Whether a key belongs to the range of a request, by etcd's definition.
pub(crate) fn is_in_range(key: &[u8], start: &[u8], end: &[u8]) -> bool {
    if end.is_empty() {
        return key == start;
    }
    key >= start && (end == b"\0" || key < end)
}
