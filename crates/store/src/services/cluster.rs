//! `etcdserverpb.Cluster`.
//!
//! The list of members is true. Changing it is refused: what etcd would refuse with one member gets
//! etcd's refusal, and what etcd would begin gets `not capable`. A cluster of one never has a second
//! member, and members that share a journal come and go by being started and stopped.

use std::sync::Arc;

use etcd_api::{
    ApiError,
    etcdserverpb::{
        Member, MemberAddRequest, MemberAddResponse, MemberListRequest, MemberListResponse,
        MemberPromoteRequest, MemberPromoteResponse, MemberRemoveRequest, MemberRemoveResponse,
        MemberUpdateRequest, MemberUpdateResponse, ResponseHeader, cluster_server::Cluster,
    },
};
use mvcc::{LeaseId, Revision};
use tonic::{Request, Response, Status};

use crate::{Error, auth::Caller, context::Context};

pub(crate) struct ClusterService {
    context: Arc<Context>,
}

// === impl ClusterService ===

impl ClusterService {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }

    fn caller<T>(&self, request: &Request<T>) -> Result<Caller, Error> {
        self.context.caller(request.metadata().as_ref(), request.extensions())
    }

    fn check_administrator<T>(&self, request: &Request<T>) -> Result<(), Error> {
        let caller = self.caller(request)?;
        self.context.gate.state().access(&caller).admin().map_err(Error::Auth)
    }

    /// Members are no keys, so the header has no revision.
    fn header(&self) -> Option<ResponseHeader> {
        Some(self.context.header(Revision(0)))
    }

    fn members(&self) -> Vec<Member> {
        let options = &self.context.options;
        if !self.context.standing.is_alone() {
            return self.context.standing.members().into_iter().map(listed).collect();
        }
        vec![Member {
            id: self.context.identity.member_id,
            name: options.name.clone(),
            peer_ur_ls: options.advertise_peer_urls.clone(),
            client_ur_ls: options.advertise_client_urls.clone(),
            is_learner: false,
        }]
    }

    fn check_is_member(&self, id: u64) -> Result<(), Error> {
        let is_member = self.members().iter().any(|member| member.id == id);
        if is_member { Ok(()) } else { Err(ApiError::MemberNotFound.into()) }
    }

    async fn list(&self, request: Request<MemberListRequest>) -> Result<MemberListResponse, Error> {
        if request.get_ref().linearizable {
            self.context.confirm().await?;
        }
        if request.get_ref().linearizable && self.context.standing.is_alone() {
            // Answered only while the journal takes writes, which is while this member leads.
            self.context.sequencer.lease(LeaseId::NONE).await?;
        }
        let caller = self.caller(&request)?;
        self.context.gate.state().access(&caller).identified().map_err(Error::Auth)?;
        Ok(MemberListResponse { header: self.header(), members: self.members() })
    }

    /// Always refused.
    fn add(&self, request: &Request<MemberAddRequest>) -> Result<MemberAddResponse, Error> {
        let urls = &request.get_ref().peer_ur_ls;
        if urls.is_empty() || !urls.iter().all(|url| is_peer_url(url.trim())) {
            return Err(ApiError::MemberBadUrls.into());
        }
        self.check_administrator(request)?;
        let own = &self.context.options.advertise_peer_urls;
        let is_own = urls.iter().any(|url| own.iter().any(|own| own == url.trim()));
        Err(if is_own { ApiError::PeerUrlExists } else { ApiError::NotCapable }.into())
    }

    /// Always refused: without its only member nothing is left.
    fn remove(
        &self,
        request: &Request<MemberRemoveRequest>,
    ) -> Result<MemberRemoveResponse, Error> {
        self.check_administrator(request)?;
        self.check_is_member(request.get_ref().id)?;
        Err(ApiError::MemberNotEnoughStarted.into())
    }

    /// Says yes to the addresses the member has. Others would have to be kept, and they are told at
    /// start.
    fn update(
        &self,
        request: &Request<MemberUpdateRequest>,
    ) -> Result<MemberUpdateResponse, Error> {
        self.check_administrator(request)?;
        self.check_is_member(request.get_ref().id)?;
        if request.get_ref().peer_ur_ls != self.context.options.advertise_peer_urls {
            return Err(ApiError::NotCapable.into());
        }
        Ok(MemberUpdateResponse { header: self.header(), members: self.members() })
    }

    /// Always refused: the only member is no learner.
    fn promote(
        &self,
        request: &Request<MemberPromoteRequest>,
    ) -> Result<MemberPromoteResponse, Error> {
        self.check_administrator(request)?;
        self.check_is_member(request.get_ref().id)?;
        Err(ApiError::MemberNotLearner.into())
    }
}

#[tonic::async_trait]
impl Cluster for ClusterService {
    async fn member_add(
        &self,
        request: Request<MemberAddRequest>,
    ) -> Result<Response<MemberAddResponse>, Status> {
        Ok(Response::new(self.add(&request)?))
    }

    async fn member_remove(
        &self,
        request: Request<MemberRemoveRequest>,
    ) -> Result<Response<MemberRemoveResponse>, Status> {
        Ok(Response::new(self.remove(&request)?))
    }

    async fn member_update(
        &self,
        request: Request<MemberUpdateRequest>,
    ) -> Result<Response<MemberUpdateResponse>, Status> {
        Ok(Response::new(self.update(&request)?))
    }

    async fn member_list(
        &self,
        request: Request<MemberListRequest>,
    ) -> Result<Response<MemberListResponse>, Status> {
        Ok(Response::new(self.list(request).await?))
    }

    async fn member_promote(
        &self,
        request: Request<MemberPromoteRequest>,
    ) -> Result<Response<MemberPromoteResponse>, Status> {
        Ok(Response::new(self.promote(&request)?))
    }
}

fn listed(member: journal::Member) -> Member {
    Member {
        id: member.id,
        name: member.name,
        peer_ur_ls: member.peer_urls,
        client_ur_ls: member.client_urls,
        is_learner: false,
    }
}

/// Whether etcd would take this as the address of a peer: a unix socket, or host and port without a
/// path.
fn is_peer_url(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else { return false };
    match scheme.to_ascii_lowercase().as_str() {
        "unix" | "unixs" => true,
        "http" | "https" => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, after) = rest.split_at(end);
            !after.starts_with('/') && has_port(authority)
        }
        _ => false,
    }
}

fn has_port(authority: &str) -> bool {
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let Some((host, port)) = host_and_port.rsplit_once(':') else { return false };
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    (is_bracketed || !host.contains(':')) && port.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What etcd 3.7 says to the same addresses.
    #[test]
    fn addresses_of_peers() {
        for good in [
            "http://a:1",
            "https://10.0.0.1:2380",
            "HTTP://a:1",
            "http://[::1]:2380",
            "http://user@a:1?x=y",
            "unix://anything/at/all",
        ] {
            assert!(is_peer_url(good), "{good}");
        }
        for bad in [
            "",
            "nonsense",
            "http://a",
            "http://a:1/",
            "http://a:1/path",
            "http://a:one",
            "http://::1:2380",
            "ftp://a:1",
        ] {
            assert!(!is_peer_url(bad), "{bad}");
        }
    }
}
