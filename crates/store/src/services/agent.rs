//! Acts on keys and leases for one caller, as if the caller had asked itself: the services that are
//! made of keys have no rights of their own.

use std::sync::Arc;

use bytes::Bytes;
use etcd_api::etcdserverpb::{
    DeleteRangeRequest, DeleteRangeResponse, LeaseGrantRequest, RangeRequest, RangeResponse,
    TxnRequest, TxnResponse, WatchCreateRequest,
};
use http::{Extensions, HeaderMap};
use mvcc::LeaseId;
use tonic::Request;

use super::{KvService, LeaseService};
use crate::{Error, auth::Caller, context::Context, watch::Follower};

/// What a lease that nobody asked for lasts, in seconds. Nobody keeps it alive but the caller.
const SESSION_TTL_S: i64 = 60;

pub(super) struct Agent {
    context: Arc<Context>,
    kv: KvService,
    leases: LeaseService,
    headers: HeaderMap,
    extensions: Extensions,
}

// === impl Agent ===

impl Agent {
    /// The agent of whoever sent `request`, and what was sent.
    pub(super) fn new<T>(context: &Arc<Context>, request: Request<T>) -> (Arc<Self>, T) {
        let (metadata, extensions, message) = request.into_parts();
        let agent = Self {
            context: context.clone(),
            kv: KvService::new(context.clone()),
            leases: LeaseService::new(context.clone()),
            headers: metadata.into_headers(),
            extensions,
        };
        (Arc::new(agent), message)
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    pub(super) async fn range(&self, request: &RangeRequest) -> Result<RangeResponse, Error> {
        self.context.confirm().await?;
        self.kv.range(request, self.caller())
    }

    pub(super) async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, Error> {
        self.kv.txn(request, self.caller()).await
    }

    pub(super) async fn delete(&self, key: Bytes) -> Result<DeleteRangeResponse, Error> {
        let request = DeleteRangeRequest { key, ..Default::default() };
        self.kv.delete_range(request, self.caller()).await
    }

    /// The lease the caller named, or a new one if it named none.
    pub(super) async fn session(&self, lease: i64) -> Result<LeaseId, Error> {
        if lease != 0 {
            return Ok(LeaseId(lease));
        }
        let request = LeaseGrantRequest { ttl: SESSION_TTL_S, id: 0 };
        Ok(LeaseId(self.leases.grant(request, &self.caller()?).await?.id))
    }

    /// Follows what the caller may read.
    pub(super) fn follow(&self, watch: WatchCreateRequest) -> Result<Follower, Error> {
        let caller = self.caller()?;
        let auth = self.context.gate.state();
        auth.access(&caller).range(&watch.key, &watch.range_end).map_err(Error::Auth)?;
        let stopping = self.context.stopping.clone();
        Ok(Follower::new(self.context.watch.clone(), watch, stopping))
    }

    /// Looked up for each step anew: a call may wait for long.
    fn caller(&self) -> Result<Caller, Error> {
        self.context.caller(&self.headers, &self.extensions)
    }
}
