//! Passes requests that only the holder can carry out on to it.
//!
//! A request is passed on as it came, within the client's deadline, but for who sent it: that was
//! found out here, and the holder believes members. Nothing is sent twice: what got no answer may
//! have been carried out, and only the client knows whether that matters.

use std::{fs, io, path::PathBuf, sync::Arc, time::Duration};

use etcd_api::{
    ApiError,
    etcdserverpb::{MoveLeaderRequest, maintenance_client::MaintenanceClient},
};
use futures::future::BoxFuture;
use http::{Request, Response};
use journal::Member;
use parking_lot::Mutex;
use tonic::{
    body::Body,
    codegen::Service,
    transport::{self, Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};

use crate::{
    Error,
    auth::{Caller, Relayed},
    context::Context,
    http::Detour,
    options::PeerTls,
    services::refusal,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// A holder that stands still is noticed by these, and what waits for it ends.
const PING_EVERY: Duration = Duration::from_secs(1);
const PING_TIMEOUT: Duration = Duration::from_secs(2);
/// How long another member may take to take the role: a claim, and the tail it does not know yet.
const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(10);

/// Services of which the holder serves everything.
const SERVICES: [&str; 3] = ["etcdserverpb.Lease", "v3lockpb.Lock", "v3electionpb.Election"];
/// Methods of other services.
const METHODS: [&str; 8] = [
    "/etcdserverpb.KV/Put",
    "/etcdserverpb.KV/DeleteRange",
    "/etcdserverpb.KV/Txn",
    "/etcdserverpb.KV/Compact",
    "/etcdserverpb.Maintenance/Alarm",
    "/etcdserverpb.Maintenance/Defragment",
    "/etcdserverpb.Maintenance/Snapshot",
    "/etcdserverpb.Maintenance/MoveLeader",
];
/// A service whose methods change things, all but one: a login asks this member.
const AUTH: &str = "etcdserverpb.Auth";
const LOGIN: &str = "/etcdserverpb.Auth/Authenticate";

pub(crate) struct Relay {
    context: Arc<Context>,
    tls: Option<ClientTlsConfig>,
    /// To the holder that was asked last; no channel if it has no address that can be used.
    current: Mutex<Option<(u64, Option<Channel>)>>,
}

/// Why this member cannot prove itself to others.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
pub struct TlsError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

// === impl Relay ===

impl Relay {
    pub(crate) fn new(context: Arc<Context>) -> Result<Self, TlsError> {
        let tls = context.options.peer_tls.as_ref().map(client_tls).transpose()?;
        Ok(Self { context, tls, current: Mutex::new(None) })
    }

    /// A connection to the holder, which is made when it is used.
    pub(super) fn channel(&self, holder: &Member) -> Result<Channel, Error> {
        let mut current = self.current.lock();
        if current.as_ref().is_none_or(|(id, _)| *id != holder.id) {
            let channel = self.connect(holder).inspect_err(|error| {
                let error: &dyn std::error::Error = error;
                let (writer, urls) = (&holder.name, &holder.peer_urls);
                tracing::error!(error, %writer, ?urls, "the writer cannot be asked");
            });
            *current = Some((holder.id, channel.ok()));
        }
        let channel = current.as_ref().and_then(|(_, channel)| channel.clone());
        Ok(channel.ok_or(ApiError::NoLeader)?)
    }

    fn connect(&self, holder: &Member) -> Result<Channel, transport::Error> {
        let url = holder.peer_urls.first().cloned().unwrap_or_default();
        let endpoint = Endpoint::from_shared(url)?
            .connect_timeout(CONNECT_TIMEOUT)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .tcp_nodelay(true);
        let endpoint = match &self.tls {
            Some(tls) => endpoint.tls_config(tls.clone())?,
            None => endpoint,
        };
        Ok(endpoint.connect_lazy())
    }

    async fn prepare(&self, request: &mut Request<Body>) -> Result<Channel, Error> {
        let holder = self.context.standing.holder().ok_or(Error::NoWriter)?;
        if self.context.gate.must_be_newest(request.headers()) {
            // The holder believes whom this member names, so it must not name anybody by what it knew
            // before it was cut off from the journal.
            self.context.confirm().await?;
        }
        let known = self.context.gate.state().revision();
        let caller = self.context.caller(request.headers(), request.extensions())?;
        Relayed::write(&caller, known, request.headers_mut());
        request.extensions_mut().clear();
        self.channel(&holder)
    }

    /// Asks another member to take the role that this one has. The claim of the other fences this
    /// one, so nothing has to be given up before.
    pub(crate) async fn hand_over(&self, to: u64, caller: &Caller) -> Result<(), Error> {
        let members = self.context.standing.members();
        let target = members.iter().find(|member| member.id == to);
        let target = target.ok_or(ApiError::BadLeaderTransferee)?;
        let channel = self.connect(target).map_err(|error| {
            let error: &dyn std::error::Error = &error;
            tracing::error!(error, member = %target.name, "the member cannot be asked");
            ApiError::BadLeaderTransferee
        })?;
        let mut request = tonic::Request::new(MoveLeaderRequest { target_id: to });
        let known = self.context.gate.state().revision();
        Relayed::write(caller, known, request.metadata_mut().as_mut());
        let mut client = MaintenanceClient::new(channel);
        let asked = tokio::time::timeout(HAND_OVER_TIMEOUT, client.move_leader(request)).await;
        match asked {
            Ok(Ok(_taken)) => {}
            Ok(Err(status)) => {
                tracing::warn!(%status, member = %target.name, "the role was not taken");
                return Err(ApiError::TimeoutLeaderTransfer.into());
            }
            Err(_elapsed) => return Err(ApiError::TimeoutLeaderTransfer.into()),
        }
        // Makes this member look, so that it knows before the client does. It is told that the role is
        // gone, which is what was wanted.
        drop(self.context.confirm().await);
        Ok(())
    }

    async fn pass_on(&self, mut request: Request<Body>) -> Response<Body> {
        let mut channel = match self.prepare(&mut request).await {
            Ok(channel) => channel,
            Err(error) => return refusal(error).into_http(),
        };
        let answered = match std::future::poll_fn(|task| channel.poll_ready(task)).await {
            Ok(()) => channel.call(request).await,
            Err(error) => Err(error),
        };
        answered.unwrap_or_else(|error| {
            let error: &dyn std::error::Error = &error;
            tracing::debug!(error, "the holder did not answer");
            refusal(ApiError::TimeoutDueToConnectionLost.into()).into_http()
        })
    }
}

impl Detour for Relay {
    fn takes(&self, path: &str) -> bool {
        !self.context.standing.is_holder() && needs_holder(path)
    }

    fn answer(self: Arc<Self>, request: Request<Body>) -> BoxFuture<'static, Response<Body>> {
        Box::pin(async move { self.pass_on(request).await })
    }
}

fn needs_holder(path: &str) -> bool {
    if METHODS.contains(&path) {
        return true;
    }
    let service = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    SERVICES.contains(&service) || (service == AUTH && path != LOGIN)
}

fn client_tls(files: &PeerTls) -> Result<ClientTlsConfig, TlsError> {
    let read =
        |path: &PathBuf| fs::read(path).map_err(|source| TlsError { path: path.clone(), source });
    let identity = Identity::from_pem(read(&files.cert_file)?, read(&files.key_file)?);
    let authority = Certificate::from_pem(read(&files.trusted_ca_file)?);
    Ok(ClientTlsConfig::new().ca_certificate(authority).identity(identity))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_something_needs_the_holder() {
        for path in [
            "/etcdserverpb.KV/Txn",
            "/etcdserverpb.Lease/LeaseKeepAlive",
            "/etcdserverpb.Auth/UserAdd",
            "/v3electionpb.Election/Observe",
        ] {
            assert!(needs_holder(path), "{path}");
        }
        for path in [
            "/etcdserverpb.KV/Range",
            "/etcdserverpb.Watch/Watch",
            "/etcdserverpb.Auth/Authenticate",
            "/etcdserverpb.Maintenance/Status",
            "/grpc.health.v1.Health/Check",
        ] {
            assert!(!needs_holder(path), "{path}");
        }
    }
}
