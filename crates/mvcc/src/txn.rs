//! Carrying out requests on the keyspace: puts, deletes, and transactions of them.

use etcd_api::etcdserverpb::{
    DeleteRangeRequest, DeleteRangeResponse, PutRequest, PutResponse, RangeRequest, RequestOp,
    ResponseHeader, ResponseOp, TxnRequest, TxnResponse, request_op::Request,
    response_op::Response,
};

use crate::{
    Error, Keyspace, LeaseId, Outcome, Revision, Revoked, Values, View, compare, draft::Draft,
    range,
};

/// A transaction whose conditions are decided: which branch is taken at every level. All conditions
/// look at the state before the outermost transaction.
struct Plan<'r> {
    is_success: bool,
    ops: Vec<Op<'r>>,
}

enum Op<'r> {
    Range(&'r RangeRequest),
    Put(&'r PutRequest),
    Delete(&'r DeleteRangeRequest),
    Txn(Plan<'r>),
    /// An operation without content; requests are checked for it before they come here.
    Nothing,
}

// === impl Keyspace ===

impl Keyspace {
    pub fn put(
        &mut self,
        request: &PutRequest,
        values: &dyn Values,
    ) -> Result<Outcome<PutResponse>, Error> {
        self.check_put(request)?;
        Draft::run(self, values, |draft| draft.put(request))
    }

    pub fn delete_range(
        &mut self,
        request: &DeleteRangeRequest,
        values: &dyn Values,
    ) -> Result<Outcome<DeleteRangeResponse>, Error> {
        Draft::run(self, values, |draft| draft.delete_range(request))
    }

    pub fn txn(
        &mut self,
        request: &TxnRequest,
        values: &dyn Values,
    ) -> Result<Outcome<TxnResponse>, Error> {
        let plan = Plan::decide(&self.view, request, values)?;
        self.check(&plan)?;
        Draft::run(self, values, |draft| {
            let responses = draft_ops(draft, &plan.ops)?;
            Ok((plan.is_success, responses))
        })
        .map(|outcome| self.txn_outcome(outcome))
    }

    /// Ends a lease and deletes its keys, in key order, in one revision unless they are too many for
    /// one record.
    pub fn revoke(&mut self, id: LeaseId, values: &dyn Values) -> Result<Outcome<Revoked>, Error> {
        Draft::run(self, values, |draft| draft.revoke(id))
    }

    fn txn_outcome(&self, outcome: Outcome<(bool, Vec<ResponseOp>)>) -> Outcome<TxnResponse> {
        let (succeeded, responses) = outcome.response;
        let header = Some(header(self.revision()));
        Outcome { response: TxnResponse { header, succeeded, responses }, written: outcome.written }
    }

    /// Everything that can refuse a transaction, before anything is changed.
    fn check(&self, plan: &Plan<'_>) -> Result<(), Error> {
        for op in &plan.ops {
            match op {
                Op::Range(request) => check_revision(&self.view, request)?,
                Op::Put(request) => self.check_put(request)?,
                Op::Txn(plan) => self.check(plan)?,
                Op::Delete(_) | Op::Nothing => {}
            }
        }
        Ok(())
    }

    fn check_put(&self, request: &PutRequest) -> Result<(), Error> {
        let lease = LeaseId(request.lease);
        if lease != LeaseId::NONE && self.leases.get(lease).is_none() {
            return Err(Error::LeaseNotFound(lease));
        }
        let keeps_something = request.ignore_value || request.ignore_lease;
        let exists = || self.view.tree.get(&request.key).is_some_and(|entry| entry.is_live());
        if keeps_something && !exists() { Err(Error::KeyNotFound) } else { Ok(()) }
    }
}

// === impl View ===

impl View {
    /// Answers a transaction that only reads; see [`is_read_only`].
    pub fn txn(&self, request: &TxnRequest, values: &dyn Values) -> Result<TxnResponse, Error> {
        let plan = Plan::decide(self, request, values)?;
        let responses = self.read_ops(&plan.ops, values)?;
        let header = Some(header(self.revision()));
        Ok(TxnResponse { header, succeeded: plan.is_success, responses })
    }

    fn read_ops(&self, ops: &[Op<'_>], values: &dyn Values) -> Result<Vec<ResponseOp>, Error> {
        ops.iter()
            .map(|op| {
                let response = match op {
                    Op::Range(request) => {
                        check_revision(self, request)?;
                        Some(Response::ResponseRange(range::execute(self, request, values)?))
                    }
                    Op::Txn(plan) => Some(nested(plan, self.read_ops(&plan.ops, values)?)),
                    Op::Put(_) | Op::Delete(_) | Op::Nothing => None,
                };
                Ok(ResponseOp { response })
            })
            .collect()
    }
}

/// Whether a transaction cannot write, whatever its conditions decide.
#[must_use]
pub fn is_read_only(request: &TxnRequest) -> bool {
    request.success.iter().chain(&request.failure).all(|op| match &op.request {
        Some(Request::RequestRange(_)) | None => true,
        Some(Request::RequestTxn(nested)) => is_read_only(nested),
        Some(Request::RequestPut(_) | Request::RequestDeleteRange(_)) => false,
    })
}

// === impl Plan ===

impl<'r> Plan<'r> {
    fn decide(view: &View, request: &'r TxnRequest, values: &dyn Values) -> Result<Self, Error> {
        let is_success = compare::all_hold(view, &request.compare, values)?;
        let branch = if is_success { &request.success } else { &request.failure };
        let ops = branch.iter().map(|op| Op::decide(view, op, values)).collect::<Result<_, _>>()?;
        Ok(Self { is_success, ops })
    }
}

// === impl Op ===

impl<'r> Op<'r> {
    fn decide(view: &View, op: &'r RequestOp, values: &dyn Values) -> Result<Self, Error> {
        Ok(match &op.request {
            Some(Request::RequestRange(request)) => Self::Range(request),
            Some(Request::RequestPut(request)) => Self::Put(request),
            Some(Request::RequestDeleteRange(request)) => Self::Delete(request),
            Some(Request::RequestTxn(request)) => Self::Txn(Plan::decide(view, request, values)?),
            None => Self::Nothing,
        })
    }
}

fn draft_ops(draft: &mut Draft<'_>, ops: &[Op<'_>]) -> Result<Vec<ResponseOp>, Error> {
    let mut responses = Vec::with_capacity(ops.len());
    for op in ops {
        let response = match op {
            Op::Range(request) => Some(Response::ResponseRange(draft.range(request)?)),
            Op::Put(request) => Some(Response::ResponsePut(draft.put(request)?)),
            Op::Delete(request) => {
                Some(Response::ResponseDeleteRange(draft.delete_range(request)?))
            }
            Op::Txn(plan) => Some(nested(plan, draft_ops(draft, &plan.ops)?)),
            Op::Nothing => None,
        };
        responses.push(ResponseOp { response });
    }
    Ok(responses)
}

/// The answer of a transaction inside another. Its header is there but empty, as in etcd.
fn nested(plan: &Plan<'_>, responses: Vec<ResponseOp>) -> Response {
    let header = Some(ResponseHeader::default());
    Response::ResponseTxn(TxnResponse { header, succeeded: plan.is_success, responses })
}

/// Stricter than a plain range: in a transaction a negative revision is not the latest one but lies
/// below the compacted one, unless the store was never compacted.
fn check_revision(view: &View, request: &RangeRequest) -> Result<(), Error> {
    let wanted = Revision(request.revision);
    if wanted != Revision(0) && wanted < view.compacted() {
        return Err(Error::Compacted { wanted, compacted: view.compacted() });
    }
    view.resolve(request.revision).map(|_| ())
}

fn header(revision: Revision) -> ResponseHeader {
    ResponseHeader { revision: revision.0, ..Default::default() }
}
