//! Standing in line behind a name, which is what locks and elections are made of.
//!
//! Whoever comes puts a key under the name, attached to a lease. The oldest key is first in line;
//! everyone else waits for the deletion of the key just before their own, so that one departure wakes
//! one waiter.
//!
//! ```text
//! name/1a  created at 5   ← first
//! name/3f  created at 8   ← waits for the deletion of name/1a
//! name/2c  created at 9   ← waits for the deletion of name/3f
//! ```
//!
//! Clients know these keys and do the same themselves, so nothing here may be done differently.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use etcd_api::{
    etcdserverpb::{
        Compare, DeleteRangeRequest, PutRequest, RangeRequest, RangeResponse, RequestOp,
        ResponseHeader, TxnRequest, TxnResponse, WatchCreateRequest,
        compare::{CompareResult, CompareTarget, TargetUnion},
        range_request::{SortOrder, SortTarget},
        request_op::Request as Op,
        response_op::Response as OpResponse,
        watch_create_request::FilterType,
    },
    mvccpb::KeyValue,
};
use mvcc::{LeaseId, Revision};

use super::{agent::Agent, departures::Guard};
use crate::Error;

/// Behind the name, before the lease.
const SEPARATOR: u8 = b'/';

/// All that stand behind one name.
pub(super) struct Line {
    agent: Arc<Agent>,
    prefix: Bytes,
}

/// A place in a line. Dropping it gives it up, unless it was kept.
pub(super) struct Place {
    line: Line,
    pub(super) key: Bytes,
    pub(super) created: Revision,
    guard: Guard,
}

/// How a place was taken.
pub(super) struct Entered {
    pub(super) place: Place,
    pub(super) header: Option<ResponseHeader>,
    pub(super) is_first: bool,
    /// The value that stood there, if the lease had a place before.
    pub(super) found_value: Option<Bytes>,
}

// === impl Line ===

impl Line {
    pub(super) fn new(agent: Arc<Agent>, name: &[u8]) -> Self {
        let mut prefix = BytesMut::from(name);
        prefix.put_u8(SEPARATOR);
        Self { agent, prefix: prefix.freeze() }
    }

    pub(super) fn prefix(&self) -> &Bytes {
        &self.prefix
    }

    /// Who is first, if anybody is there.
    pub(super) async fn first(&self) -> Result<RangeResponse, Error> {
        self.agent.range(&self.first_request()).await
    }

    /// Takes a place at the end, or the one that `lease` has already.
    pub(super) async fn enter(self, lease: LeaseId, value: Bytes) -> Result<Entered, Error> {
        let key = place_key(&self.prefix, lease);
        let put = PutRequest { key: key.clone(), value, lease: lease.0, ..Default::default() };
        let first = op(Op::RequestRange(self.first_request()));
        let request = TxnRequest {
            compare: vec![created(&key, CompareResult::Equal, Revision(0))],
            success: vec![op(Op::RequestPut(put)), first.clone()],
            failure: vec![op(Op::RequestRange(one(&key))), first],
        };
        let guard = Guard::new(&self.agent, key.clone()).await?;
        let response = self.agent.txn(request).await?;
        Ok(Entered::new(self, key, guard, response))
    }

    fn first_request(&self) -> RangeRequest {
        RangeRequest { sort_order: SortOrder::Ascend.into(), ..self.by_creation() }
    }

    /// The last that came before `created`, which is above 1 as all that is written: 0 would mean no
    /// limit.
    async fn last_before(&self, created: Revision) -> Result<RangeResponse, Error> {
        let request = RangeRequest {
            sort_order: SortOrder::Descend.into(),
            max_create_revision: created.0 - 1,
            ..self.by_creation()
        };
        self.agent.range(&request).await
    }

    fn by_creation(&self) -> RangeRequest {
        RangeRequest {
            key: self.prefix.clone(),
            range_end: end_of(&self.prefix),
            sort_target: SortTarget::Create.into(),
            limit: 1,
            ..Default::default()
        }
    }
}

// === impl Place ===

impl Place {
    /// Waits until everyone who came before is gone.
    pub(super) async fn wait_for_turn(&self) -> Result<(), Error> {
        loop {
            let mut before = self.line.last_before(self.created).await?;
            let Some(kv) = before.kvs.pop() else { return Ok(()) };
            let from = Revision(before.header.unwrap_or_default().revision);
            self.deletion(kv.key_bytes(), from).await?;
        }
    }

    /// What stands at this place now; nothing if its lease has ended.
    pub(super) async fn look(&self) -> Result<RangeResponse, Error> {
        self.line.agent.range(&one(&self.key)).await
    }

    /// The place is the caller's own from now on.
    pub(super) fn keep(self) -> Bytes {
        self.guard.disarm();
        self.key
    }

    async fn deletion(&self, key: Bytes, from: Revision) -> Result<(), Error> {
        let watch = WatchCreateRequest {
            key,
            start_revision: from.0,
            filters: vec![FilterType::Noput.into()],
            ..Default::default()
        };
        self.line.agent.follow(watch)?.next().await?;
        Ok(())
    }
}

// === impl Entered ===

impl Entered {
    fn new(line: Line, key: Bytes, mut guard: Guard, mut response: TxnResponse) -> Self {
        let first = read_kv(&mut response);
        let found = if response.succeeded { None } else { read_kv(&mut response) };
        let revision = response.header.as_ref().map_or(0, |header| header.revision);
        let created = found.as_ref().map_or(revision, KeyValue::create_revision);
        let is_first = first.is_none_or(|first| first.create_revision() == created);
        guard.entered(Revision(created));
        Self {
            place: Place { line, key, created: Revision(created), guard },
            header: response.header,
            is_first,
            found_value: found.map(|kv| kv.value_bytes()),
        }
    }
}

/// Carries out `change` if the key is still the one that was created at `revision`.
pub(super) fn if_still(key: &Bytes, revision: Revision, change: Op) -> TxnRequest {
    TxnRequest {
        compare: vec![created(key, CompareResult::Equal, revision)],
        success: vec![op(change)],
        failure: Vec::new(),
    }
}

pub(super) fn deletion(key: &Bytes) -> Op {
    Op::RequestDeleteRange(DeleteRangeRequest { key: key.clone(), ..Default::default() })
}

pub(super) fn created(key: &Bytes, result: CompareResult, revision: Revision) -> Compare {
    Compare {
        result: result.into(),
        target: CompareTarget::Create.into(),
        key: key.clone(),
        range_end: Bytes::new(),
        target_union: Some(TargetUnion::CreateRevision(revision.0)),
    }
}

/// The first key behind all that start with `prefix`, which ends with the separator.
pub(super) fn end_of(prefix: &Bytes) -> Bytes {
    let mut end = BytesMut::from(&prefix[..prefix.len() - 1]);
    end.put_u8(SEPARATOR + 1);
    end.freeze()
}

/// Leases are written as Go prints a signed number in hex.
fn place_key(prefix: &Bytes, lease: LeaseId) -> Bytes {
    let sign = if lease.0 < 0 { "-" } else { "" };
    let lease = format!("{sign}{:x}", lease.0.unsigned_abs());
    [prefix, lease.as_bytes()].concat().into()
}

fn one(key: &Bytes) -> RangeRequest {
    RangeRequest { key: key.clone(), ..Default::default() }
}

fn op(request: Op) -> RequestOp {
    RequestOp { request: Some(request) }
}

/// The key-value that the last answer of a transaction read, which is taken off it.
fn read_kv(response: &mut TxnResponse) -> Option<KeyValue> {
    match response.responses.pop()?.response? {
        OpResponse::ResponseRange(mut range) => range.kvs.pop(),
        _ => None,
    }
}
