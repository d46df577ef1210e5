//! The check of every kind of request against one state of users and roles. Pure; never looks at
//! keys' values, only at what the request names.
//!
//! | request | needs |
//! |---|---|
//! | range, compare, watch | read on the whole range |
//! | put | write on the key, write on every key of its lease; read for `prev_kv` |
//! | delete | write on the whole range; read for `prev_kv` |
//! | transaction | all of the above for both branches at every depth, taken or not |
//! | lease revoke, keep-alive | write on every key of the lease |
//! | lease keys, list of leases | read on every key of them |
//! | grant, lease without keys, status, list of members or alarms | any user |
//! | everything else | the role root |

use etcd_api::etcdserverpb::{
    DeleteRangeRequest, PutRequest, RequestOp, TxnRequest, request_op::Request,
};
use mvcc::{Lease, LeaseId, Leases};

use super::{Caller, Error, State, model::User, permission::Right};

/// The rights of one caller in one state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access<'a> {
    state: &'a State,
    caller: &'a Caller,
}

// === impl Access ===

impl<'a> Access<'a> {
    pub(super) fn new(state: &'a State, caller: &'a Caller) -> Self {
        Self { state, caller }
    }

    /// May anybody with a name do this?
    pub(crate) fn identified(self) -> Result<(), Error> {
        let is_known = matches!(self.caller, Caller::User { .. });
        if !self.state.is_enabled() || is_known { Ok(()) } else { Err(Error::NoCaller) }
    }

    /// May only an administrator do this? Rights of administrators do not age with the revision.
    pub(crate) fn admin(self) -> Result<(), Error> {
        if !self.state.is_enabled() {
            return Ok(());
        }
        let name = self.name().filter(|name| !name.is_empty()).ok_or(Error::NoCaller)?;
        let user = self.state.users.get(name).ok_or(Error::UserNotFound)?;
        if user.is_root() { Ok(()) } else { Err(Error::PermissionDenied) }
    }

    /// Reading a range, or watching it. `range_end` is the client's, so `\0` still means open-ended.
    pub(crate) fn range(self, key: &[u8], range_end: &[u8]) -> Result<(), Error> {
        self.need(Right::Read, key, range_end)
    }

    pub(crate) fn put(self, request: &PutRequest, leases: &Leases) -> Result<(), Error> {
        if !self.state.is_enabled() {
            return Ok(());
        }
        self.need(Right::Write, &request.key, b"")?;
        // Whoever hangs a key on a lease can delete the lease's other keys by letting it expire.
        self.lease_write(leases.get(LeaseId(request.lease)).into_iter().flat_map(Lease::keys))?;
        if request.prev_kv { self.need(Right::Read, &request.key, b"") } else { Ok(()) }
    }

    pub(crate) fn delete_range(self, request: &DeleteRangeRequest) -> Result<(), Error> {
        self.need(Right::Write, &request.key, &request.range_end)?;
        if request.prev_kv { self.range(&request.key, &request.range_end) } else { Ok(()) }
    }

    pub(crate) fn txn(self, request: &TxnRequest, leases: &Leases) -> Result<(), Error> {
        if !self.state.is_enabled() {
            return Ok(());
        }
        for compare in &request.compare {
            self.range(&compare.key, &compare.range_end)?;
        }
        let ops = request.success.iter().chain(&request.failure);
        ops.into_iter().try_for_each(|op| self.op(op, leases))
    }

    /// Revoking a lease or keeping it alive, given the keys attached to it.
    pub(crate) fn lease_write<K: AsRef<[u8]>>(
        self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<(), Error> {
        self.lease(Right::Write, keys)
    }

    /// Telling which keys hang on a lease, or listing leases, given those keys.
    pub(crate) fn lease_read<K: AsRef<[u8]>>(
        self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<(), Error> {
        self.lease(Right::Read, keys)
    }

    /// Asking for the roles of a user: administrators, and users about themselves. To etcd nobody is
    /// the user without a name, who may ask about that user and hears that there is none.
    pub(crate) fn user_get(self, name: &str) -> Result<(), Error> {
        let is_own = self.name().unwrap_or_default() == name;
        self.admin().or_else(|refusal| if is_own { Ok(()) } else { Err(refusal) })
    }

    /// Asking for the permissions of a role: administrators, and whoever has the role.
    pub(crate) fn role_get(self, role: &str) -> Result<(), Error> {
        self.admin().or_else(|refusal| {
            let user = self.name().and_then(|name| self.state.users.get(name));
            let has_role = user.is_some_and(|user| user.roles.contains(role));
            if has_role { Ok(()) } else { Err(refusal) }
        })
    }

    /// Whether what the caller was allowed to read may still be handed out: called on the newest
    /// state after the read, since rights may have changed between check and read.
    pub(crate) fn unchanged(self) -> Result<(), Error> {
        match self.caller {
            Caller::User { revision, .. } if *revision != self.state.revision() => {
                Err(Error::OldRevision)
            }
            Caller::User { .. } | Caller::Anonymous => Ok(()),
        }
    }

    fn op(self, op: &RequestOp, leases: &Leases) -> Result<(), Error> {
        match &op.request {
            Some(Request::RequestRange(range)) => self.range(&range.key, &range.range_end),
            Some(Request::RequestPut(put)) => self.put(put, leases),
            Some(Request::RequestDeleteRange(delete)) => self.delete_range(delete),
            Some(Request::RequestTxn(txn)) => self.txn(txn, leases),
            None => Ok(()),
        }
    }

    fn lease<K: AsRef<[u8]>>(
        self,
        right: Right,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<(), Error> {
        if self.admin().is_ok() {
            return Ok(());
        }
        self.identified()?;
        keys.into_iter().try_for_each(|key| self.need(right, key.as_ref(), b""))
    }

    fn need(self, right: Right, key: &[u8], range_end: &[u8]) -> Result<(), Error> {
        if !self.state.is_enabled() {
            return Ok(());
        }
        let user = self.current_user()?;
        let is_permitted = user.is_root() || self.state.permits(user, right, key, range_end);
        if is_permitted { Ok(()) } else { Err(Error::PermissionDenied) }
    }

    fn current_user(self) -> Result<&'a User, Error> {
        let Caller::User { name, revision } = self.caller else {
            return Err(Error::NoCaller);
        };
        if *revision < self.state.revision() {
            return Err(Error::OldRevision);
        }
        self.state.users.get(&**name).map(|user| &**user).ok_or(Error::PermissionDenied)
    }

    fn name(self) -> Option<&'a str> {
        match self.caller {
            Caller::User { name, .. } => Some(name),
            Caller::Anonymous => None,
        }
    }
}
