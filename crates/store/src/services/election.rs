//! `v3electionpb.Election`: whoever is first in the line behind a name leads.

use std::{pin::Pin, sync::Arc};

use bytes::Bytes;
use etcd_api::{
    ApiError,
    etcdserverpb::{PutRequest, request_op::Request as Op},
    v3electionpb::{
        CampaignRequest, CampaignResponse, LeaderKey, LeaderRequest, LeaderResponse,
        ProclaimRequest, ProclaimResponse, ResignRequest, ResignResponse,
        election_server::Election,
    },
};
use futures::Stream;
use mvcc::{LeaseId, Revision};
use tonic::{Request, Response, Status};

use super::{
    agent::Agent,
    line::{self, Entered, Line},
    observer, status,
};
use crate::{Error, context::Context};

pub(crate) struct ElectionService {
    context: Arc<Context>,
}

/// What a leader says: under which key, as long as that is the one created then.
struct Proclamation {
    key: Bytes,
    created: Revision,
    lease: LeaseId,
    value: Bytes,
}

// === impl ElectionService ===

impl ElectionService {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }

    /// The header is of the moment at which the campaign began, however long it took.
    async fn campaign(&self, request: Request<CampaignRequest>) -> Result<CampaignResponse, Error> {
        let (agent, CampaignRequest { name, lease, value }) = Agent::new(&self.context, request);
        let lease = agent.session(lease).await?;
        let entered = Line::new(agent.clone(), &name).enter(lease, value.clone()).await?;
        let Entered { place, header, is_first, found_value } = entered;
        let (key, created) = (place.key.clone(), place.created);
        if found_value.is_some_and(|found| found != value) {
            proclaim(&agent, Proclamation { key, created, lease, value }).await?;
        }
        if !is_first {
            place.wait_for_turn().await?;
            // A lease that ended while waiting left nothing to lead with.
            if place.look().await?.kvs.is_empty() {
                return Err(ApiError::ElectionNotLeader.into());
            }
        }
        let leader = LeaderKey { name, key: place.keep(), rev: created.0, lease: lease.0 };
        Ok(CampaignResponse { header, leader: Some(leader) })
    }

    async fn proclaim(&self, request: Request<ProclaimRequest>) -> Result<ProclaimResponse, Error> {
        let (agent, ProclaimRequest { leader, value }) = Agent::new(&self.context, request);
        let LeaderKey { key, rev, lease, .. } = leader.ok_or(ApiError::ElectionLeaderKeyMissing)?;
        let lease = agent.session(lease).await?;
        let proclamation = Proclamation { key, created: Revision(rev), lease, value };
        proclaim(&agent, proclamation).await
    }

    async fn leader(&self, request: Request<LeaderRequest>) -> Result<LeaderResponse, Error> {
        let (agent, LeaderRequest { name }) = Agent::new(&self.context, request);
        let mut found = Line::new(agent, &name).first().await?;
        let kv = found.kvs.pop().ok_or(ApiError::ElectionNoLeader)?;
        Ok(LeaderResponse { header: found.header, kv: Some(kv) })
    }

    /// Whoever does not lead any more has resigned already.
    async fn resign(&self, request: Request<ResignRequest>) -> Result<ResignResponse, Error> {
        let (agent, ResignRequest { leader }) = Agent::new(&self.context, request);
        let LeaderKey { key, rev, .. } = leader.ok_or(ApiError::ElectionLeaderKeyMissing)?;
        let request = line::if_still(&key, Revision(rev), line::deletion(&key));
        Ok(ResignResponse { header: agent.txn(request).await?.header })
    }
}

async fn proclaim(agent: &Agent, proclamation: Proclamation) -> Result<ProclaimResponse, Error> {
    let Proclamation { key, created, lease, value } = proclamation;
    let put = PutRequest { key: key.clone(), value, lease: lease.0, ..Default::default() };
    let response = agent.txn(line::if_still(&key, created, Op::RequestPut(put))).await?;
    if !response.succeeded {
        return Err(ApiError::ElectionNotLeader.into());
    }
    Ok(ProclaimResponse { header: response.header })
}

#[tonic::async_trait]
impl Election for ElectionService {
    type ObserveStream = Pin<Box<dyn Stream<Item = Result<LeaderResponse, Status>> + Send>>;

    async fn campaign(
        &self,
        request: Request<CampaignRequest>,
    ) -> Result<Response<CampaignResponse>, Status> {
        self.campaign(request).await.map(Response::new).map_err(status::without_code)
    }

    async fn proclaim(
        &self,
        request: Request<ProclaimRequest>,
    ) -> Result<Response<ProclaimResponse>, Status> {
        self.proclaim(request).await.map(Response::new).map_err(status::without_code)
    }

    async fn leader(
        &self,
        request: Request<LeaderRequest>,
    ) -> Result<Response<LeaderResponse>, Status> {
        self.leader(request).await.map(Response::new).map_err(status::without_code)
    }

    async fn observe(
        &self,
        request: Request<LeaderRequest>,
    ) -> Result<Response<Self::ObserveStream>, Status> {
        let (agent, LeaderRequest { name }) = Agent::new(&self.context, request);
        Ok(Response::new(Box::pin(observer::observe(agent, &name))))
    }

    async fn resign(
        &self,
        request: Request<ResignRequest>,
    ) -> Result<Response<ResignResponse>, Status> {
        self.resign(request).await.map(Response::new).map_err(status::without_code)
    }
}
