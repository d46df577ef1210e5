//! The Lease service of a ceiling: hands out numbers and echoes them.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

use etcd_api::etcdserverpb::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
    LeaseLeasesRequest, LeaseLeasesResponse, LeaseRevokeRequest, LeaseRevokeResponse,
    LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, lease_server,
};
use futures::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

use super::{State, kv::unimplemented};

/// What every keep-alive answers, in seconds.
const TTL_SECONDS: i64 = 60;

pub(super) struct Lease {
    state: Arc<State>,
    last_id: AtomicI64,
}

// === impl Lease ===

impl Lease {
    pub(super) fn new(state: Arc<State>) -> Self {
        Self { state, last_id: AtomicI64::new(0) }
    }
}

type KeepAlives = Pin<Box<dyn Stream<Item = Result<LeaseKeepAliveResponse, Status>> + Send>>;

#[tonic::async_trait]
impl lease_server::Lease for Lease {
    type LeaseKeepAliveStream = KeepAlives;

    async fn lease_grant(
        &self,
        request: Request<LeaseGrantRequest>,
    ) -> Result<Response<LeaseGrantResponse>, Status> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(Response::new(LeaseGrantResponse {
            header: self.state.header(),
            id,
            ttl: request.get_ref().ttl,
            error: String::new(),
        }))
    }

    async fn lease_keep_alive(
        &self,
        request: Request<Streaming<LeaseKeepAliveRequest>>,
    ) -> Result<Response<KeepAlives>, Status> {
        let state = Arc::clone(&self.state);
        let answers = request.into_inner().map(move |request| {
            let id = request?.id;
            Ok(LeaseKeepAliveResponse { header: state.header(), id, ttl: TTL_SECONDS })
        });
        Ok(Response::new(answers.boxed()))
    }

    async fn lease_revoke(
        &self,
        _request: Request<LeaseRevokeRequest>,
    ) -> Result<Response<LeaseRevokeResponse>, Status> {
        Err(unimplemented())
    }

    async fn lease_time_to_live(
        &self,
        _request: Request<LeaseTimeToLiveRequest>,
    ) -> Result<Response<LeaseTimeToLiveResponse>, Status> {
        Err(unimplemented())
    }

    async fn lease_leases(
        &self,
        _request: Request<LeaseLeasesRequest>,
    ) -> Result<Response<LeaseLeasesResponse>, Status> {
        Err(unimplemented())
    }
}
