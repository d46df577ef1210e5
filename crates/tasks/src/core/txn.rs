//! Transactions as the core speaks of them, and how they are said in etcd's words. Sends nothing.

use bytes::Bytes;
use etcd_api::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use etcd_api::etcdserverpb::request_op::Request;
use etcd_api::etcdserverpb::response_op::Response;
use etcd_api::etcdserverpb::{
    self as etcd, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, ResponseOp, TxnRequest,
    TxnResponse,
};
use etcd_api::mvccpb::KeyValue;

use super::id::Revision;
use super::keys::{Key, KeyRange};

/// If all compares hold, `then` happens, else `otherwise`; as one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    pub compares: Vec<Compare>,
    pub then: Vec<Op>,
    pub otherwise: Vec<Op>,
}

/// What must hold of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    ModifiedAt(Key, Revision),
    CreatedAt(Key, Revision),
    Exists(Key),
    Absent(Key),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Put(Key, Bytes),
    /// Ends with the lease.
    PutLeased(Key, Bytes, LeaseId),
    Delete(Key),
    Get(Key),
    /// All keys of a range, without their values.
    ListKeys(KeyRange),
    Txn(Txn),
}

/// The store's name for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub i64);

/// What the store answered, one result per operation of the branch that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub revision: Revision,
    pub succeeded: bool,
    pub results: Vec<OpResult>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpResult {
    Written,
    Found(Vec<KeyValue>),
    Txn(Answer),
}

/// A response that does not answer the request it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    #[error("the response has no header")]
    NoHeader,
    #[error("an operation has no result")]
    NoResult,
}

// === impl Txn ===

impl Txn {
    /// Reads that need no compare.
    #[must_use]
    pub fn read(ops: Vec<Op>) -> Self {
        Self { then: ops, ..Self::default() }
    }

    /// The bytes of all keys and values, the measure of the store's bound on requests.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let ops = self.then.iter().map(|op| match op {
            Op::Put(key, value) | Op::PutLeased(key, value, _) => {
                key.to_bytes().len() + value.len()
            }
            Op::Delete(key) | Op::Get(key) => key.to_bytes().len(),
            Op::ListKeys(range) => range.start.len() + range.end.len(),
            Op::Txn(txn) => txn.bytes(),
        });
        ops.sum()
    }

    #[must_use]
    pub fn to_request(&self) -> TxnRequest {
        let ops = |ops: &[Op]| ops.iter().map(Op::to_request).collect();
        TxnRequest {
            compare: self.compares.iter().map(|compare| compare.to_request()).collect(),
            success: ops(&self.then),
            failure: ops(&self.otherwise),
        }
    }
}

// === impl Compare ===

impl Compare {
    fn to_request(self) -> etcd::Compare {
        let (key, result, target, union) = match self {
            Self::ModifiedAt(key, Revision(at)) => {
                (key, CompareResult::Equal, CompareTarget::Mod, TargetUnion::ModRevision(at))
            }
            Self::CreatedAt(key, Revision(at)) => {
                (key, CompareResult::Equal, CompareTarget::Create, TargetUnion::CreateRevision(at))
            }
            Self::Exists(key) => {
                (key, CompareResult::Greater, CompareTarget::Version, TargetUnion::Version(0))
            }
            Self::Absent(key) => {
                (key, CompareResult::Equal, CompareTarget::Version, TargetUnion::Version(0))
            }
        };
        etcd::Compare {
            result: result.into(),
            target: target.into(),
            key: key.to_bytes(),
            target_union: Some(union),
            range_end: Bytes::new(),
        }
    }
}

// === impl Op ===

impl Op {
    fn to_request(&self) -> RequestOp {
        let request = match self {
            Self::Put(key, value) => put(*key, value, 0),
            Self::PutLeased(key, value, LeaseId(lease)) => put(*key, value, *lease),
            Self::Delete(key) => Request::RequestDeleteRange(DeleteRangeRequest {
                key: key.to_bytes(),
                ..Default::default()
            }),
            Self::Get(key) => {
                Request::RequestRange(RangeRequest { key: key.to_bytes(), ..Default::default() })
            }
            Self::ListKeys(range) => Request::RequestRange(RangeRequest {
                key: Bytes::from_static(range.start),
                range_end: Bytes::from_static(range.end),
                keys_only: true,
                ..Default::default()
            }),
            Self::Txn(txn) => Request::RequestTxn(txn.to_request()),
        };
        RequestOp { request: Some(request) }
    }
}

fn put(key: Key, value: &Bytes, lease: i64) -> Request {
    let (key, value) = (key.to_bytes(), value.clone());
    Request::RequestPut(PutRequest { key, value, lease, ..Default::default() })
}

// === impl Answer ===

impl Answer {
    pub fn new(response: TxnResponse) -> Result<Self, AnswerError> {
        let header = response.header.as_ref().ok_or(AnswerError::NoHeader)?;
        let revision = Revision(header.revision);
        Self::at(revision, response)
    }

    /// Nested answers have no revision of their own.
    fn at(revision: Revision, response: TxnResponse) -> Result<Self, AnswerError> {
        let results = response.responses.into_iter().map(|op| OpResult::new(revision, op));
        let results = results.collect::<Result<_, _>>()?;
        Ok(Self { revision, succeeded: response.succeeded, results })
    }

    /// The one key-value that a get of this answer found.
    pub fn found(&self, index: usize) -> Result<Option<&KeyValue>, AnswerError> {
        self.listed(index).map(<[_]>::first)
    }

    pub fn listed(&self, index: usize) -> Result<&[KeyValue], AnswerError> {
        match self.results.get(index) {
            Some(OpResult::Found(kvs)) => Ok(kvs),
            _ => Err(AnswerError::NoResult),
        }
    }

    pub fn nested(&self, index: usize) -> Result<&Self, AnswerError> {
        match self.results.get(index) {
            Some(OpResult::Txn(answer)) => Ok(answer),
            _ => Err(AnswerError::NoResult),
        }
    }
}

// === impl OpResult ===

impl OpResult {
    fn new(revision: Revision, op: ResponseOp) -> Result<Self, AnswerError> {
        Ok(match op.response.ok_or(AnswerError::NoResult)? {
            Response::ResponsePut(_) | Response::ResponseDeleteRange(_) => Self::Written,
            Response::ResponseRange(range) => Self::Found(range.kvs),
            Response::ResponseTxn(txn) => Self::Txn(Answer::at(revision, txn)?),
        })
    }
}
