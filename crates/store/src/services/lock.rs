//! `v3lockpb.Lock`: whoever is first in the line behind a name holds its lock.

use std::sync::Arc;

use bytes::Bytes;
use etcd_api::{
    ApiError,
    v3lockpb::{LockRequest, LockResponse, UnlockRequest, UnlockResponse, lock_server::Lock},
};
use tonic::{Request, Response, Status};

use super::{
    agent::Agent,
    line::{Entered, Line},
    status,
};
use crate::{Error, context::Context};

pub(crate) struct LockService {
    context: Arc<Context>,
}

// === impl LockService ===

impl LockService {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }

    /// The header is of the moment at which the lock was seen to be held.
    async fn lock(&self, request: Request<LockRequest>) -> Result<LockResponse, Error> {
        let (agent, LockRequest { name, lease }) = Agent::new(&self.context, request);
        let lease = agent.session(lease).await?;
        let entered = Line::new(agent, &name).enter(lease, Bytes::new()).await?;
        let Entered { place, header, is_first, .. } = entered;
        if is_first {
            return Ok(LockResponse { header, key: place.keep() });
        }
        place.wait_for_turn().await?;
        let found = place.look().await?;
        if found.kvs.is_empty() {
            return Err(ApiError::SessionExpired.into());
        }
        Ok(LockResponse { header: found.header, key: place.keep() })
    }

    async fn unlock(&self, request: Request<UnlockRequest>) -> Result<UnlockResponse, Error> {
        let (agent, UnlockRequest { key }) = Agent::new(&self.context, request);
        Ok(UnlockResponse { header: agent.delete(key).await?.header })
    }
}

#[tonic::async_trait]
impl Lock for LockService {
    async fn lock(&self, request: Request<LockRequest>) -> Result<Response<LockResponse>, Status> {
        self.lock(request).await.map(Response::new).map_err(status::without_code)
    }

    async fn unlock(
        &self,
        request: Request<UnlockRequest>,
    ) -> Result<Response<UnlockResponse>, Status> {
        self.unlock(request).await.map(Response::new).map_err(status::without_code)
    }
}
