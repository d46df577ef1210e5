//! Writes on the model. A transaction works on a copy, which is thrown away if it fails.

use std::cmp::Ordering;

use etcd_api::{
    ApiError,
    etcdserverpb::{
        Compare, DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse, RangeRequest,
        RequestOp, ResponseHeader, ResponseOp, TxnRequest, TxnResponse,
        compare::{CompareResult, CompareTarget, TargetUnion},
        request_op::Request,
        response_op::Response,
    },
    mvccpb::{KeyValue, KeyValueParts},
};

use super::{Model, is_in_range};

/// A transaction under way: the model it writes to, and the state before.
pub(super) struct Draft<'m> {
    model: &'m mut Model,
    before: Model,
    writes: u32,
}

// === impl Model ===

impl Model {
    /// Carries out something as a transaction of its own.
    pub(super) fn alone<R>(
        &mut self,
        act: impl FnOnce(&mut Draft<'_>) -> Result<R, ApiError>,
    ) -> Result<R, ApiError> {
        let before = self.clone();
        act(&mut Draft { model: self, before, writes: 0 })
    }

    pub(super) fn txn(&mut self, request: &TxnRequest) -> Result<TxnResponse, ApiError> {
        let mut response = self.alone(|draft| draft.txn(request))?;
        response.header = self.header();
        Ok(response)
    }

    fn holds(&self, compare: &Compare) -> bool {
        let state = self.state_at(self.revision);
        let is_meant = |key: &[u8]| is_in_range(key, &compare.key, &compare.range_end);
        let kvs: Vec<&KeyValue> =
            state.iter().filter(|(key, _)| is_meant(key)).map(|(_, kv)| kv).collect();
        match (kvs.is_empty(), compare.target()) {
            (true, CompareTarget::Value) => false,
            (true, _) => holds_for(compare, &KeyValue::default()),
            (false, _) => kvs.iter().all(|kv| holds_for(compare, kv)),
        }
    }
}

// === impl Draft ===

impl Draft<'_> {
    pub(super) fn put(&mut self, request: &PutRequest) -> Result<PutResponse, ApiError> {
        if request.lease != 0 && !self.model.leases.contains_key(&request.lease) {
            return Err(ApiError::LeaseNotFound);
        }
        let old = self.model.newest(&request.key);
        if old.is_none() && (request.ignore_value || request.ignore_lease) {
            return Err(ApiError::KeyNotFound);
        }
        let old = old.unwrap_or_default();
        let is_new = old.version() == 0;
        self.write(KeyValue::new(&KeyValueParts {
            key: &request.key,
            create_revision: if is_new { self.revision() } else { old.create_revision() },
            mod_revision: self.revision(),
            version: old.version() + 1,
            value: if request.ignore_value { old.value() } else { &request.value },
            lease: if request.ignore_lease { old.lease() } else { request.lease },
        }));
        let prev_kv = (request.prev_kv && !is_new).then_some(old);
        Ok(PutResponse { header: self.header(), prev_kv })
    }

    pub(super) fn delete_range(&mut self, request: &DeleteRangeRequest) -> DeleteRangeResponse {
        let mut doomed = self.model.state_at(i64::MAX);
        doomed.retain(|key, _| is_in_range(key, &request.key, &request.range_end));
        doomed.keys().for_each(|key| self.delete(key));
        DeleteRangeResponse {
            header: self.header(),
            deleted: doomed.len() as i64,
            prev_kvs: if request.prev_kv { doomed.into_values().collect() } else { Vec::new() },
        }
    }

    pub(super) fn delete(&mut self, key: &[u8]) {
        self.write(KeyValue::tombstone(key, self.revision()));
    }

    /// Conditions at every depth look at the state before, operations at the state they left.
    fn txn(&mut self, request: &TxnRequest) -> Result<TxnResponse, ApiError> {
        let succeeded = request.compare.iter().all(|compare| self.before.holds(compare));
        let branch = if succeeded { &request.success } else { &request.failure };
        let responses = branch.iter().map(|op| self.operation(op)).collect::<Result<_, _>>()?;
        Ok(TxnResponse { header: Some(ResponseHeader::default()), succeeded, responses })
    }

    fn operation(&mut self, op: &RequestOp) -> Result<ResponseOp, ApiError> {
        let response = match op.request.as_ref() {
            None => return Err(ApiError::KeyNotFound),
            Some(Request::RequestPut(request)) => Response::ResponsePut(self.put(request)?),
            Some(Request::RequestDeleteRange(request)) => {
                Response::ResponseDeleteRange(self.delete_range(request))
            }
            Some(Request::RequestTxn(request)) => Response::ResponseTxn(self.txn(request)?),
            Some(Request::RequestRange(request)) => {
                self.check_revision(request)?;
                Response::ResponseRange(self.model.range(request)?)
            }
        };
        Ok(ResponseOp { response: Some(response) })
    }

    /// What is read must have existed before the transaction, and a negative revision is no way
    /// to say "latest", but for the one that stands for "never compacted".
    fn check_revision(&self, request: &RangeRequest) -> Result<(), ApiError> {
        match request.revision {
            0 => Ok(()),
            wanted if wanted > self.before.revision => Err(ApiError::FutureRevision),
            wanted if wanted < self.before.compacted => Err(ApiError::Compacted),
            _ => Ok(()),
        }
    }

    fn write(&mut self, kv: KeyValue) {
        self.model.revision = self.revision();
        self.model.push(self.writes, kv);
        self.writes += 1;
    }

    fn revision(&self) -> i64 {
        self.before.revision + 1
    }

    fn header(&self) -> Option<ResponseHeader> {
        self.model.header()
    }
}

fn holds_for(compare: &Compare, kv: &KeyValue) -> bool {
    let ordering = match compare.target_union.as_ref() {
        None => Ordering::Equal,
        Some(TargetUnion::Version(wanted)) => kv.version().cmp(wanted),
        Some(TargetUnion::CreateRevision(wanted)) => kv.create_revision().cmp(wanted),
        Some(TargetUnion::ModRevision(wanted)) => kv.mod_revision().cmp(wanted),
        Some(TargetUnion::Lease(wanted)) => kv.lease().cmp(wanted),
        Some(TargetUnion::Value(wanted)) => kv.value().cmp(wanted),
    };
    match compare.result() {
        CompareResult::Equal => ordering == Ordering::Equal,
        CompareResult::NotEqual => ordering != Ordering::Equal,
        CompareResult::Greater => ordering == Ordering::Greater,
        CompareResult::Less => ordering == Ordering::Less,
    }
}
