//! A store with etcd's semantics, in memory: the keyspace that the real one is built on.

use std::collections::BTreeMap;

use etcd_api::etcdserverpb::RangeRequest;
use etcd_api::mvccpb::{Event, EventType, KeyValue};
use mvcc::{Keyspace, LeaseId as Lease, Outcome, Position, ReadError, Values};
use tasks::core::fsck::{Absences, Finding, Snapshot};
use tasks::core::id::{Revision, TaskId};
use tasks::core::keys::{Key, KeyRange};
use tasks::core::record::Record;
use tasks::core::transition::{Plan, Settled};
use tasks::core::txn::{Answer, LeaseId, Op, Txn};

/// etcd's default.
const TXN_OPS_MAX: usize = 128;

#[derive(Default)]
pub(crate) struct Store {
    keyspace: Keyspace,
    memory: Memory,
}

/// Every change ever made.
#[derive(Default)]
struct Memory(BTreeMap<Position, KeyValue>);

// === impl Memory ===

impl Values for Memory {
    fn read(&self, at: Position) -> Result<KeyValue, ReadError> {
        Ok(self.0.get(&at).ok_or("not kept")?.clone())
    }
}

// === impl Store ===

impl Store {
    pub(crate) fn revision(&self) -> Revision {
        Revision(self.keyspace.revision().0)
    }

    /// Carries out a transaction as a server would: refused requests are bugs of who made them.
    pub(crate) fn txn(&mut self, txn: &Txn) -> Answer {
        self.try_txn(txn).expect("only a lease can be missing")
    }

    /// `None` if a lease that is put on does not exist.
    pub(crate) fn try_txn(&mut self, txn: &Txn) -> Option<Answer> {
        let request = txn.to_request();
        mvcc::check::txn(&request, TXN_OPS_MAX).expect("the core makes valid requests");
        let outcome = match self.keyspace.txn(&request, &self.memory) {
            Ok(outcome) => outcome,
            Err(mvcc::Error::LeaseNotFound(_)) => return None,
            Err(error) => panic!("{error}"),
        };
        let response = self.keep(outcome);
        Some(Answer::new(response).expect("every answer is whole"))
    }

    /// Carries out a plan.
    pub(crate) fn settle(&mut self, plan: &Plan) -> Settled {
        let answer = self.txn(&plan.txn);
        plan.settle(&answer).expect("answers fit their plans")
    }

    /// Carries out a plan that nobody is in the way of.
    #[track_caller]
    pub(crate) fn win(&mut self, plan: &Plan) -> Record {
        match self.settle(plan) {
            Settled::Won(Some(record)) => *record,
            other => panic!("not won: {other:?}"),
        }
    }

    pub(crate) fn grant(&mut self, lease: LeaseId, ttl_s: i64) {
        self.keyspace.grant(Lease(lease.0), ttl_s).expect("leases are granted once");
    }

    /// Whether there was such a lease.
    pub(crate) fn revoke(&mut self, lease: LeaseId) -> bool {
        match self.keyspace.revoke(Lease(lease.0), &self.memory) {
            Ok(outcome) => {
                self.keep(outcome);
                true
            }
            Err(mvcc::Error::LeaseNotFound(_)) => false,
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) fn has_lease(&self, lease: LeaseId) -> bool {
        self.keyspace.leases().get(Lease(lease.0)).is_some()
    }

    pub(crate) fn list(&self, range: KeyRange) -> Vec<KeyValue> {
        let request = RangeRequest {
            key: range.start.into(),
            range_end: range.end.into(),
            ..Default::default()
        };
        let answer = self.keyspace.view().range(&request, &self.memory);
        answer.expect("everything is kept").kvs
    }

    pub(crate) fn get(&self, key: Key) -> Option<KeyValue> {
        let request = RangeRequest { key: key.to_bytes(), ..Default::default() };
        let answer = self.keyspace.view().range(&request, &self.memory);
        answer.expect("everything is kept").kvs.pop()
    }

    pub(crate) fn record(&self, id: TaskId) -> Option<Record> {
        let kv = self.get(Key::Task(id))?;
        Some(Record::decode(&kv).expect("only the core writes records"))
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let (mut kvs, nodes) =
            (self.list(KeyRange::TASKS_AND_STATUSES), self.list(KeyRange::NODES));
        kvs.extend(nodes);
        Snapshot::new(&kvs)
    }

    pub(crate) fn fsck(&self) -> Vec<Finding> {
        self.snapshot().check(&Absences::default())
    }

    /// What a watch of the range shows that begins after `after`.
    pub(crate) fn events(&self, range: KeyRange, after: Revision) -> Vec<Event> {
        let from = Position::first_of(mvcc::Revision(after.0 + 1));
        let kvs = self.memory.0.range(from..).map(|(_, kv)| kv);
        let watched = kvs.filter(|kv| range.contains(kv.key()));
        let event = |kv: &KeyValue| {
            let kind = if kv.is_tombstone() { EventType::Delete } else { EventType::Put };
            Event::new(kind, kv, None)
        };
        watched.map(event).collect()
    }

    /// Writes behind the core's back.
    pub(crate) fn meddle(&mut self, ops: Vec<Op>) {
        self.txn(&Txn::read(ops));
    }

    fn keep<R>(&mut self, outcome: Outcome<R>) -> R {
        if let Some(written) = &outcome.written {
            let changes = written.record.positions().map(|(at, kv)| (at, kv.clone()));
            self.memory.0.extend(changes);
        }
        outcome.response
    }
}
