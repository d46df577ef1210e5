//! `etcdserverpb.Lease`.

use std::{pin::Pin, sync::Arc};

use etcd_api::{
    ApiError,
    etcdserverpb::{
        LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
        LeaseLeasesRequest, LeaseLeasesResponse, LeaseRevokeRequest, LeaseRevokeResponse,
        LeaseStatus, LeaseTimeToLiveRequest, LeaseTimeToLiveResponse, lease_server::Lease,
    },
};
use futures::{Stream, StreamExt};
use mvcc::LeaseId;
use tokio::time::Instant;
use tonic::{Request, Response, Status, Streaming};

use crate::{
    Error,
    auth::{self, Access, Caller},
    context::Context,
    lease::{Deadlines, TTL_MAX_S, TTL_MIN_S},
    quota,
};

#[derive(Clone)]
pub(crate) struct LeaseService {
    context: Arc<Context>,
}

// === impl LeaseService ===

impl LeaseService {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }

    fn caller<T>(&self, request: &Request<T>) -> Result<Caller, Error> {
        self.context.caller(request.metadata().as_ref(), request.extensions())
    }

    fn permit(
        &self,
        caller: &Caller,
        check: impl FnOnce(Access<'_>) -> Result<(), auth::Error>,
    ) -> Result<(), Error> {
        check(self.context.gate.state().access(caller)).map_err(Error::Auth)
    }

    /// What the deadlines tell. Only who has the role knows them: one that lost it has none, and would
    /// call every lease dead. So the role must be here before and after, all the time.
    async fn deadlines<T>(
        context: &Context,
        ask: impl FnOnce(&mut Deadlines) -> T,
    ) -> Result<T, Error> {
        let held = context.standing.held().ok_or(Error::Deposed)?;
        let told = ask(&mut context.deadlines.lock());
        context.confirm().await?;
        if context.standing.held() == Some(held) { Ok(told) } else { Err(Error::Deposed) }
    }

    pub(super) async fn grant(
        &self,
        request: LeaseGrantRequest,
        caller: &Caller,
    ) -> Result<LeaseGrantResponse, Error> {
        self.context.gate.state().access(caller).identified().map_err(Error::Auth)?;
        self.context.check_sound()?;
        let LeaseGrantRequest { id, ttl } = request;
        if ttl > TTL_MAX_S {
            return Err(ApiError::LeaseTtlTooLarge.into());
        }
        let room = self.context.promise_room(quota::LEASE_BYTES).await?;
        let ttl = ttl.max(TTL_MIN_S);
        let id = if id == 0 { random_id() } else { LeaseId(id) };
        let revision = self.context.sequencer.grant(id, ttl, room).await?;
        let header = Some(self.context.header(revision));
        Ok(LeaseGrantResponse { header, id: id.0, ttl, error: String::new() })
    }

    async fn revoke(
        &self,
        request: Request<LeaseRevokeRequest>,
    ) -> Result<LeaseRevokeResponse, Error> {
        let caller = self.caller(&request)?;
        self.permit(&caller, |access| access.identified())?;
        self.context.check_sound()?;
        let id = LeaseId(request.into_inner().id);
        let revision = self.context.sequencer.revoke(id, Some(caller)).await?;
        Ok(LeaseRevokeResponse { header: Some(self.context.header(revision)) })
    }

    async fn time_to_live(
        &self,
        request: Request<LeaseTimeToLiveRequest>,
    ) -> Result<LeaseTimeToLiveResponse, Error> {
        let caller = self.caller(&request)?;
        self.permit(&caller, |access| access.identified())?;
        let LeaseTimeToLiveRequest { id, keys: wants_keys } = request.into_inner();
        let content = self.context.sequencer.lease(LeaseId(id)).await?;
        let remaining = Self::deadlines(&self.context, |deadlines| {
            deadlines.remaining(LeaseId(id), Instant::now())
        });
        let remaining = remaining.await?;
        let header = Some(self.context.header(self.context.published.revision()));
        let (Some(content), Some(remaining)) = (content, remaining) else {
            return Ok(LeaseTimeToLiveResponse { header, id, ttl: -1, ..Default::default() });
        };
        if wants_keys {
            self.permit(&caller, |access| access.lease_read(&content.keys))?;
            self.permit(&caller, |access| access.unchanged())?;
        }
        Ok(LeaseTimeToLiveResponse {
            header,
            id,
            ttl: remaining.remaining_s,
            granted_ttl: remaining.granted_s,
            keys: if wants_keys { content.keys } else { Vec::new() },
        })
    }

    async fn leases(
        &self,
        request: Request<LeaseLeasesRequest>,
    ) -> Result<LeaseLeasesResponse, Error> {
        let caller = self.caller(&request)?;
        if self.context.gate.state().is_enabled() {
            // Whoever lists leases learns which keys have one.
            let keys = self.context.sequencer.leased_keys().await?;
            self.permit(&caller, |access| access.lease_read(&keys))?;
        }
        let leases = Self::deadlines(&self.context, |deadlines| deadlines.by_end()).await?;
        Ok(LeaseLeasesResponse {
            header: Some(self.context.header(self.context.published.revision())),
            leases: leases.into_iter().map(|id| LeaseStatus { id: id.0 }).collect(),
        })
    }

    /// The answer has the revision from before the lease was kept alive, so that nobody takes a lease
    /// for living at a revision at which it was revoked.
    async fn keep_alive(
        context: &Context,
        caller: &Caller,
        id: LeaseId,
    ) -> Result<LeaseKeepAliveResponse, Error> {
        let header = Some(context.header(context.published.revision()));
        let auth = context.gate.state();
        if auth.is_enabled() {
            let content = context.sequencer.lease(id).await?;
            let keys = content.map(|content| content.keys).unwrap_or_default();
            auth.access(caller).lease_write(&keys).map_err(Error::Auth)?;
        }
        // What was kept alive before the role was lost does no harm: every lease has its full time
        // again then.
        let kept =
            Self::deadlines(context, |deadlines| deadlines.keep_alive(id, Instant::now())).await?;
        if kept.is_some() {
            context.metrics.lease_renewed();
        }
        let ttl = kept.map_or(0, |ttl| ttl.as_secs().cast_signed());
        Ok(LeaseKeepAliveResponse { header, id: id.0, ttl })
    }
}

type KeepAliveStream = Pin<Box<dyn Stream<Item = Result<LeaseKeepAliveResponse, Status>> + Send>>;

#[tonic::async_trait]
impl Lease for LeaseService {
    type LeaseKeepAliveStream = KeepAliveStream;

    async fn lease_grant(
        &self,
        request: Request<LeaseGrantRequest>,
    ) -> Result<Response<LeaseGrantResponse>, Status> {
        let caller = self.caller(&request)?;
        Ok(Response::new(self.grant(request.into_inner(), &caller).await?))
    }

    async fn lease_revoke(
        &self,
        request: Request<LeaseRevokeRequest>,
    ) -> Result<Response<LeaseRevokeResponse>, Status> {
        Ok(Response::new(self.revoke(request).await?))
    }

    async fn lease_keep_alive(
        &self,
        request: Request<Streaming<LeaseKeepAliveRequest>>,
    ) -> Result<Response<KeepAliveStream>, Status> {
        let caller = self.caller(&request)?;
        let context = self.context.clone();
        let answers = request.into_inner().then(move |request| {
            let (context, caller) = (context.clone(), caller.clone());
            async move {
                let id = LeaseId(request?.id);
                Ok(Self::keep_alive(&context, &caller, id).await?)
            }
        });
        let stopping = self.context.stopping.clone().cancelled_owned();
        Ok(Response::new(Box::pin(answers.take_until(stopping))))
    }

    async fn lease_time_to_live(
        &self,
        request: Request<LeaseTimeToLiveRequest>,
    ) -> Result<Response<LeaseTimeToLiveResponse>, Status> {
        Ok(Response::new(self.time_to_live(request).await?))
    }

    async fn lease_leases(
        &self,
        request: Request<LeaseLeasesRequest>,
    ) -> Result<Response<LeaseLeasesResponse>, Status> {
        Ok(Response::new(self.leases(request).await?))
    }
}

/// Positive, because clients print it as an unsigned number.
fn random_id() -> LeaseId {
    LeaseId(rand::random_range(1..=i64::MAX))
}
