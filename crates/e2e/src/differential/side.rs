//! One of the two stores: executes steps and gives comparable answers.

use std::time::Duration;

use anyhow::{Context, Result};
use etcd_api::etcdserverpb as pb;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::time::timeout;
use tonic::Status;

use super::normal::{self, Names};
use super::step::{AuthStep, CHOSEN_LEASE, Step, Stream};
use super::watching::{Log, Watching};
use crate::client::Client;
use crate::wait::Patience;

/// No step waits for anything, so one that takes this long hangs.
const STEP_WAIT: Duration = Duration::from_secs(20);

/// What etcd calls the storage of a new data folder, and how long it may go on doing so.
const FIRST_STORAGE_VERSION: &str = "3.5.0";
const RAISE_WAIT: Duration = Duration::from_secs(15);

pub struct Side {
    anonymous: Client,
    /// Whoever logged in last.
    client: Client,
    names: Names,
    main: Option<Watching>,
    stray: Option<Watching>,
}

/// Sends one message to one method and gives the comparable answer.
macro_rules! call {
    ($side:ident, $service:ident.$method:ident, $request:expr) => {{
        let request = $side.client.request($request);
        let response = $side.client.$service().$method(request).await?.into_inner();
        Ok($side.names.answer(&response))
    }};
}

// === impl Side ===

impl Side {
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client: client.clone(),
            anonymous: client,
            names: Names::default(),
            main: None,
            stray: None,
        }
    }

    /// The comparable answer to a step.
    pub async fn execute(&mut self, step: &Step) -> Result<Value> {
        let outcome = timeout(STEP_WAIT, self.perform(step)).await;
        match outcome.with_context(|| format!("no answer within {STEP_WAIT:?} to {step:?}"))? {
            Ok(value) => Ok(value),
            Err(Failure::Status(status)) => Ok(normal::error(&status)),
            Err(Failure::Harness(error)) => Err(error),
        }
    }

    async fn perform(&mut self, step: &Step) -> Outcome {
        match step.clone() {
            Step::Range(request) => call!(self, kv.range, request),
            Step::RangeStream(request) => self.range_stream(request).await,
            Step::Put(request) => call!(self, kv.put, request),
            Step::Delete(request) => call!(self, kv.delete_range, request),
            Step::Txn(request) => call!(self, kv.txn, request),
            Step::Compact(request) => call!(self, kv.compact, request),
            Step::Watch(stream, request) => self.watch(stream, request).await,
            Step::Unwatch(request) => self.unwatch(request).await,
            Step::Settle => Ok(Value::Null),
            Step::Lock(request) => call!(self, lock.lock, request),
            Step::Unlock(request) => call!(self, lock.unlock, request),
            Step::Campaign(request) => call!(self, election.campaign, request),
            Step::Proclaim(request) => call!(self, election.proclaim, request),
            Step::Leader(request) => call!(self, election.leader, request),
            Step::Resign(request) => call!(self, election.resign, request),
            Step::Observe(request) => {
                let request = self.client.request(request);
                let mut stream = self.client.election().observe(request).await?.into_inner();
                Ok(stream.message().await?.map_or(Value::Null, |first| self.names.answer(&first)))
            }
            Step::Auth(step) => self.auth(step).await,
            step => self.perform_other(step).await,
        }
    }

    async fn perform_other(&mut self, step: Step) -> Outcome {
        match step {
            Step::Grant(request) => self.grant(request).await,
            Step::Revoke(request) => {
                let id = self.actual(request.id);
                call!(self, lease.lease_revoke, pb::LeaseRevokeRequest { id })
            }
            Step::KeepAlive(request) => self.keep_alive(request).await,
            Step::TimeToLive(request) => self.time_to_live(request).await,
            Step::Leases => self.leases().await,
            Step::Status => self.status().await,
            Step::Hash => {
                let request = self.client.request(pb::HashRequest {});
                let mut response = self.client.maintenance().hash(request).await?.into_inner();
                // Over the backend's own pages: no two stores agree on those.
                response.hash = 0;
                Ok(self.names.answer(&response))
            }
            Step::HashKv(request) => call!(self, maintenance.hash_kv, request),
            Step::Alarm(request) => call!(self, maintenance.alarm, request),
            Step::Defragment => call!(self, maintenance.defragment, pb::DefragmentRequest {}),
            Step::Snapshot => self.snapshot().await,
            Step::MoveLeader(request) => call!(self, maintenance.move_leader, request),
            Step::Downgrade(request) => call!(self, maintenance.downgrade, request),
            Step::MemberList(request) => self.member_list(request).await,
            Step::MemberAdd(request) => call!(self, cluster.member_add, request),
            Step::MemberRemove(request) => call!(self, cluster.member_remove, request),
            Step::MemberUpdate(request) => call!(self, cluster.member_update, request),
            Step::MemberPromote(request) => call!(self, cluster.member_promote, request),
            step => unreachable!("performed before: {step:?}"),
        }
    }

    /// All chunks as one answer: where a store cuts is its own affair.
    async fn range_stream(&mut self, request: pb::RangeRequest) -> Outcome {
        let request = self.client.request(request);
        let mut stream = self.client.kv().range_stream(request).await?.into_inner();
        let mut merged = pb::RangeResponse::default();
        while let Some(chunk) = stream.message().await? {
            let chunk = chunk.range_response.context("a chunk holds a response")?;
            merged.kvs.extend(chunk.kvs);
            merged.header = chunk.header.or(merged.header);
            merged.more |= chunk.more;
            merged.count = merged.count.max(chunk.count);
        }
        Ok(self.names.answer(&merged))
    }

    async fn grant(&mut self, request: pb::LeaseGrantRequest) -> Outcome {
        let is_chosen = request.id == 0;
        let request = self.client.request(request);
        let response = self.client.lease().lease_grant(request).await?.into_inner();
        if is_chosen {
            self.names.chosen_leases.push(response.id);
        }
        Ok(self.names.answer(&response))
    }

    /// The number that a lease has on this side.
    fn actual(&self, id: i64) -> i64 {
        let chosen = usize::try_from(CHOSEN_LEASE - id).ok();
        let found = chosen.and_then(|at| self.names.chosen_leases.get(at));
        found.copied().unwrap_or(id)
    }

    async fn keep_alive(&mut self, request: pb::LeaseKeepAliveRequest) -> Outcome {
        let request = pb::LeaseKeepAliveRequest { id: self.actual(request.id) };
        // Pending behind the request: a stream that ends at once might not be answered.
        let requests = futures::stream::iter([request]).chain(futures::stream::pending());
        let requests = self.client.request(requests);
        let mut stream = self.client.lease().lease_keep_alive(requests).await?.into_inner();
        Ok(stream.message().await?.map_or(Value::Null, |answer| self.names.answer(&answer)))
    }

    async fn time_to_live(&mut self, request: pb::LeaseTimeToLiveRequest) -> Outcome {
        let request = pb::LeaseTimeToLiveRequest { id: self.actual(request.id), ..request };
        let request = self.client.request(request);
        let mut response = self.client.lease().lease_time_to_live(request).await?.into_inner();
        let is_plausible = response.ttl <= response.granted_ttl;
        if response.ttl > 0 && is_plausible {
            response.ttl = 1;
        }
        response.keys.sort_unstable();
        Ok(self.names.answer(&response))
    }

    /// In the order of their numbers: the stores' own order is by when leases end.
    async fn leases(&mut self) -> Outcome {
        let request = self.client.request(pb::LeaseLeasesRequest {});
        let mut response = self.client.lease().lease_leases(request).await?.into_inner();
        let chosen = |id: i64| self.names.chosen_leases.iter().position(|each| *each == id);
        response.leases.sort_by_key(|lease| match chosen(lease.id) {
            Some(at) => (1, i64::try_from(at).unwrap_or(i64::MAX)),
            None => (0, lease.id),
        });
        Ok(self.names.answer(&response))
    }

    /// etcd begins with an old version of its storage and raises it seconds after its start; which
    /// of the two it tells would depend on the time.
    async fn status(&mut self) -> Outcome {
        let mut patience = Patience::new("the storage's version to be raised", RAISE_WAIT);
        loop {
            let request = self.client.request(pb::StatusRequest {});
            let response = self.client.maintenance().status(request).await?.into_inner();
            if response.storage_version != FIRST_STORAGE_VERSION {
                return Ok(self.names.answer(&response));
            }
            patience.wait(&response.storage_version).await?;
        }
    }

    async fn snapshot(&mut self) -> Outcome {
        let request = self.client.request(pb::SnapshotRequest {});
        let mut stream = self.client.maintenance().snapshot(request).await?.into_inner();
        let mut bytes = 0;
        while let Some(part) = stream.message().await? {
            bytes += part.blob.len();
        }
        Ok(json!({"has_bytes": bytes > 0}))
    }

    /// Members without the ports they were started on.
    async fn member_list(&mut self, request: pb::MemberListRequest) -> Outcome {
        let request = self.client.request(request);
        let mut response = self.client.cluster().member_list(request).await?.into_inner();
        for member in &mut response.members {
            member.name.clear();
            let urls = member.peer_ur_ls.iter_mut().chain(&mut member.client_ur_ls);
            urls.for_each(|url| "url".clone_into(url));
        }
        Ok(self.names.answer(&response))
    }

    /// Of the strays, those that begin in the past begin below the compaction.
    async fn watch(&mut self, stream: Stream, request: pb::WatchCreateRequest) -> Outcome {
        let start_revision = request.start_revision;
        let watching = match stream {
            Stream::Main => &mut self.main,
            Stream::Stray => &mut self.stray,
        };
        match watching {
            Some(watching) => watching.create(request).await?,
            None => *watching = Some(Watching::open(&self.client, request).await?),
        }
        let watching = watching.as_mut().context("the stream was just opened")?;
        let created = watching.created(&mut self.names).await?;
        if stream == Stream::Stray && start_revision <= number(&created["header"]["revision"]) {
            watching.cancelled(number(&created["watch_id"]), &mut self.names).await?;
        }
        Ok(created)
    }

    async fn unwatch(&mut self, request: pb::WatchCancelRequest) -> Outcome {
        if let Some(watching) = &mut self.main {
            watching.cancel(request).await?;
        }
        Ok(Value::Null)
    }

    /// Waits until the main stream has caught up.
    pub async fn settle(&mut self, revision: i64) -> Result<()> {
        match &mut self.main {
            Some(watching) => watching.settle(revision, &mut self.names).await,
            None => Ok(()),
        }
    }

    /// What all watches were told so far: main stream, strays.
    pub async fn logs(&mut self) -> Result<[Log; 2]> {
        let mut logs = [Log::new(), Log::new()];
        for (log, stream) in logs.iter_mut().zip([&mut self.main, &mut self.stray]) {
            if let Some(watching) = stream {
                *log = watching.drain(&mut self.names).await?.clone();
            }
        }
        Ok(logs)
    }

    async fn auth(&mut self, step: AuthStep) -> Outcome {
        match step {
            AuthStep::Enable => call!(self, auth.auth_enable, pb::AuthEnableRequest {}),
            AuthStep::Disable => call!(self, auth.auth_disable, pb::AuthDisableRequest {}),
            AuthStep::Status => call!(self, auth.auth_status, pb::AuthStatusRequest {}),
            AuthStep::LogIn(request) => self.log_in(request).await,
            AuthStep::LogOut => {
                self.client = self.anonymous.clone();
                Ok(Value::Null)
            }
            AuthStep::Forge => {
                self.client = self.anonymous.with_token("nobody.1")?;
                Ok(Value::Null)
            }
            AuthStep::UserAdd(request) => call!(self, auth.user_add, request),
            AuthStep::UserGet(request) => call!(self, auth.user_get, request),
            AuthStep::UserList => call!(self, auth.user_list, pb::AuthUserListRequest {}),
            AuthStep::UserDelete(request) => call!(self, auth.user_delete, request),
            AuthStep::UserChangePassword(request) => {
                call!(self, auth.user_change_password, request)
            }
            AuthStep::UserGrantRole(request) => call!(self, auth.user_grant_role, request),
            AuthStep::UserRevokeRole(request) => call!(self, auth.user_revoke_role, request),
            AuthStep::RoleAdd(request) => call!(self, auth.role_add, request),
            AuthStep::RoleGet(request) => call!(self, auth.role_get, request),
            AuthStep::RoleList => call!(self, auth.role_list, pb::AuthRoleListRequest {}),
            AuthStep::RoleDelete(request) => call!(self, auth.role_delete, request),
            AuthStep::RoleGrantPermission(request) => {
                call!(self, auth.role_grant_permission, request)
            }
            AuthStep::RoleRevokePermission(request) => {
                call!(self, auth.role_revoke_permission, request)
            }
        }
    }

    async fn log_in(&mut self, request: pb::AuthenticateRequest) -> Outcome {
        let response = self.anonymous.auth().authenticate(request).await?.into_inner();
        self.client = self.anonymous.with_token(&response.token)?;
        let has_token = !response.token.is_empty();
        let answer = pb::AuthenticateResponse { token: String::new(), ..response };
        Ok(json!({"answer": self.names.answer(&answer), "has_token": has_token}))
    }
}

type Outcome = Result<Value, Failure>;

/// Why a step gave no answer: the server said so, or the harness broke.
enum Failure {
    Status(Box<Status>),
    Harness(anyhow::Error),
}

// === impl Failure ===

impl From<Status> for Failure {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Harness(error)
    }
}

/// A number as answers have it; none is 0.
fn number(text: &Value) -> i64 {
    text.as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}
