//! A write transaction under way.
//!
//! A draft changes the keyspace as it goes, so that its own reads see its writes, and keeps what it
//! needs to take everything back. All its changes share one revision.

use std::{ops::ControlFlow, sync::Arc};

use etcd_api::{
    etcdserverpb::{
        DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse, RangeRequest,
        RangeResponse, ResponseHeader,
    },
    mvccpb::{KeyValue, KeyValueParts},
};

use crate::{
    Change, Error, Keyspace, LeaseId, Position, ReadError, Record, Revision, Values,
    entry::{Entry, Version},
    key::{Key, KeyRange},
    range::{self, read},
    record::CHANGE_OVERHEAD_BYTES,
};

/// What a write transaction did: the record for the journal, and for each of its changes the version
/// its key had before the transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub record: Record,
    pub previous: Vec<Option<Position>>,
}

/// An answer, and what was written to give it; nothing if the state did not change.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome<R> {
    pub response: R,
    pub written: Option<Written>,
}

/// How far the end of a lease came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// The lease and all its keys are gone.
    Whole,
    /// As many of its keys as one record takes; the lease is still there, to be revoked again.
    Partly,
}

pub(crate) struct Draft<'k> {
    keyspace: &'k mut Keyspace,
    values: &'k dyn Values,
    begin: Revision,
    changes: Vec<Change>,
    /// What each change replaced.
    before: Vec<Option<Arc<Entry>>>,
    /// Of the record.
    bytes: usize,
}

/// Reads the draft's own changes from memory and everything else from where it is kept.
struct DraftValues<'d> {
    revision: Revision,
    changes: &'d [Change],
    kept: &'d dyn Values,
}

// === impl DraftValues ===

impl Values for DraftValues<'_> {
    fn read(&self, at: Position) -> Result<KeyValue, ReadError> {
        if at.revision == self.revision {
            return Ok(self.changes[at.sub as usize].kv.clone());
        }
        self.kept.read(at)
    }
}

// === impl Draft ===

impl<'k> Draft<'k> {
    /// Runs `act` as one transaction: all of it happens, or on an error nothing.
    pub(crate) fn run<R>(
        keyspace: &'k mut Keyspace,
        values: &'k dyn Values,
        act: impl FnOnce(&mut Self) -> Result<R, Error>,
    ) -> Result<Outcome<R>, Error> {
        let begin = keyspace.revision();
        let (changes, before) = (Vec::new(), Vec::new());
        let mut draft = Self { keyspace, values, begin, changes, before, bytes: 0 };
        match act(&mut draft).and_then(|response| draft.check_size().map(|()| response)) {
            Ok(response) => Ok(Outcome { response, written: draft.into_written() }),
            Err(error) => {
                draft.take_back();
                Err(error)
            }
        }
    }

    pub(crate) fn range(&self, request: &RangeRequest) -> Result<RangeResponse, Error> {
        range::execute(&self.keyspace.view, request, &self.own_values())
    }

    pub(crate) fn put(&mut self, request: &PutRequest) -> Result<PutResponse, Error> {
        let before = self.newest(&request.key);
        let needs_kv = request.prev_kv || request.ignore_value;
        let prev_kv = match before {
            Some(version) if needs_kv => Some(read(&self.own_values(), version.position)?),
            _ => None,
        };
        let value = match &prev_kv {
            Some(prev) if request.ignore_value => prev.value_bytes(),
            _ => request.value.clone(),
        };
        let lease = match before {
            Some(version) if request.ignore_lease => version.lease,
            _ => LeaseId(request.lease),
        };
        let revision = self.begin.next();
        self.change(KeyValue::new(&KeyValueParts {
            key: &request.key,
            create_revision: before.map_or(revision, |version| version.created).0,
            mod_revision: revision.0,
            version: before.map_or(1, |version| version.version + 1),
            value: &value,
            lease: lease.0,
        }));
        let prev_kv = prev_kv.filter(|_| request.prev_kv);
        Ok(PutResponse { header: self.header(), prev_kv })
    }

    pub(crate) fn delete_range(
        &mut self,
        request: &DeleteRangeRequest,
    ) -> Result<DeleteRangeResponse, Error> {
        let keys = self.live_keys(KeyRange::new(&request.key, &request.range_end));
        let mut prev_kvs = Vec::new();
        if request.prev_kv {
            let values = self.own_values();
            for (_, position) in &keys {
                prev_kvs.push(read(&values, *position)?);
            }
        }
        for (key, _) in &keys {
            self.delete(key);
        }
        let deleted = i64::try_from(keys.len()).expect("keys fit in memory");
        Ok(DeleteRangeResponse { header: self.header(), deleted, prev_kvs })
    }

    /// Deletes a key that exists.
    pub(crate) fn delete(&mut self, key: &[u8]) {
        self.change(KeyValue::tombstone(key, self.begin.next().0));
    }

    /// Ends a lease and every key that hangs on it, or as many of them as one record takes: whoever
    /// ends a lease for its age cannot be refused.
    pub(crate) fn revoke(&mut self, id: LeaseId) -> Result<Revoked, Error> {
        let lease = self.keyspace.leases.get(id).ok_or(Error::LeaseNotFound(id))?;
        let keys: Vec<Vec<u8>> = lease.keys().map(<[u8]>::to_vec).collect();
        for key in &keys {
            let tombstone = KeyValue::tombstone(key, self.begin.next().0);
            let is_full = self.bytes + bytes_of(&tombstone) > self.keyspace.record_bytes_max;
            if is_full && !self.changes.is_empty() {
                return Ok(Revoked::Partly);
            }
            self.change(tombstone);
        }
        self.keyspace.leases.remove(id);
        Ok(Revoked::Whole)
    }

    fn check_size(&self) -> Result<(), Error> {
        let (bytes, bytes_max) = (self.bytes, self.keyspace.record_bytes_max);
        if bytes > bytes_max { Err(Error::TooLarge { bytes, bytes_max }) } else { Ok(()) }
    }

    /// The newest version of `key` if it exists.
    fn newest(&self, key: &[u8]) -> Option<Version> {
        self.keyspace.view.tree.get(key).and_then(|entry| entry.live().copied())
    }

    fn live_keys(&self, range: KeyRange<'_>) -> Vec<(Key, Position)> {
        let view = &self.keyspace.view;
        let mut keys = Vec::new();
        view.walk(range, view.revision, &mut |entry| {
            if let Some(version) = entry.live() {
                keys.push((entry.key.clone(), version.position));
            }
            ControlFlow::Continue(())
        });
        keys
    }

    fn change(&mut self, kv: KeyValue) {
        let revision = self.begin.next();
        self.keyspace.view.revision = revision;
        let sub = u32::try_from(self.changes.len()).expect("a transaction's keys fit in memory");
        self.bytes += bytes_of(&kv);
        self.before.push(self.keyspace.apply(Position::new(revision, sub), &kv));
        self.changes.push(Change { sub, kv });
    }

    fn own_values(&self) -> DraftValues<'_> {
        DraftValues { revision: self.begin.next(), changes: &self.changes, kept: self.values }
    }

    fn header(&self) -> Option<ResponseHeader> {
        Some(ResponseHeader { revision: self.keyspace.revision().0, ..Default::default() })
    }

    fn into_written(self) -> Option<Written> {
        if self.changes.is_empty() {
            return None;
        }
        // A transaction may delete what it put; watchers are then shown what was there before both.
        let at_begin =
            |entry: &Option<Arc<Entry>>| Some(entry.as_ref()?.at(self.begin)?.position());
        let previous = self.before.iter().map(at_begin).collect();
        Some(Written {
            record: Record { revision: self.begin.next(), changes: self.changes },
            previous,
        })
    }

    fn take_back(self) {
        for (change, before) in self.changes.iter().zip(self.before).rev() {
            self.keyspace.unapply(change.kv.key(), before);
        }
        self.keyspace.view.revision = self.begin;
    }
}

fn bytes_of(kv: &KeyValue) -> usize {
    kv.encoded().len() + CHANGE_OVERHEAD_BYTES
}
