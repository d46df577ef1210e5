//! `etcdserverpb.Maintenance`.

use std::{pin::Pin, sync::Arc};

use etcd_api::{
    ApiError,
    etcdserverpb::{
        AlarmMember, AlarmRequest, AlarmResponse, AlarmType, DefragmentRequest, DefragmentResponse,
        DowngradeInfo, DowngradeRequest, DowngradeResponse, HashKvRequest, HashKvResponse,
        HashRequest, HashResponse, MoveLeaderRequest, MoveLeaderResponse, SnapshotRequest,
        SnapshotResponse, StatusRequest, StatusResponse, alarm_request::AlarmAction,
        downgrade_request::DowngradeAction, maintenance_server::Maintenance,
    },
    version,
};
use futures::{Stream, StreamExt};
use journal::{Epoch, Journal, Size};
use tonic::{Request, Response, Status};

use crate::{
    Error,
    alarm::{self, Alarm},
    auth::Caller,
    context::Context,
    hash,
    replica::Relay,
    snapshot,
};

/// The cluster's version as downgrades are told of it.
const CLUSTER_VERSION: &str = "3.7";

/// The leader's id where there is none.
const NOBODY: u64 = 0;

pub(crate) struct MaintenanceService {
    context: Arc<Context>,
    /// The way to other members, where there are any.
    relay: Option<Arc<Relay>>,
}

type SnapshotStream = Pin<Box<dyn Stream<Item = Result<SnapshotResponse, Status>> + Send>>;

// === impl MaintenanceService ===

impl MaintenanceService {
    pub(crate) fn new(context: Arc<Context>, relay: Option<Arc<Relay>>) -> Self {
        Self { context, relay }
    }

    fn caller<T>(&self, request: &Request<T>) -> Result<Caller, Error> {
        self.context.caller(request.metadata().as_ref(), request.extensions())
    }

    fn check_identified<T>(&self, request: &Request<T>) -> Result<(), Error> {
        let caller = self.caller(request)?;
        self.context.gate.state().access(&caller).identified().map_err(Error::Auth)
    }

    fn check_admin<T>(&self, request: &Request<T>) -> Result<(), Error> {
        let caller = self.caller(request)?;
        self.context.gate.state().access(&caller).admin().map_err(Error::Auth)
    }

    async fn alarm(&self, request: Request<AlarmRequest>) -> Result<AlarmResponse, Error> {
        let change = match request.get_ref().action() {
            AlarmAction::Get => {
                self.check_identified(&request)?;
                alarm::Change::Get { kind: request.get_ref().alarm }
            }
            AlarmAction::Activate => {
                self.check_admin(&request)?;
                alarm::Change::Raise(alarm_of(request.get_ref()))
            }
            AlarmAction::Deactivate => {
                self.check_admin(&request)?;
                alarm::Change::Clear(alarm_of(request.get_ref()))
            }
        };
        let alarms = self.context.sequencer.alarm(change).await?;
        let header = Some(self.context.header(self.context.published.revision()));
        Ok(AlarmResponse { header, alarms: alarms.into_iter().map(member_of).collect() })
    }

    fn status(&self, request: &Request<StatusRequest>) -> Result<StatusResponse, Error> {
        self.check_identified(request)?;
        let standing = &self.context.standing;
        let revision = self.context.published.revision();
        let size = self.size()?;
        let index = revision.0.cast_unsigned();
        let alarms = self.context.alarms.load();
        Ok(StatusResponse {
            header: Some(self.context.header(revision)),
            version: version::SERVER.to_owned(),
            // etcdctl divides by it, and a shared journal without content has none.
            db_size: size.total_bytes.max(1).cast_signed(),
            leader: standing.leader().unwrap_or(NOBODY),
            raft_index: index,
            raft_term: standing.term().0,
            raft_applied_index: index,
            errors: alarms
                .iter()
                .map(describe)
                .chain(self.no_leader())
                .chain(self.context.options.notices.iter().cloned())
                .collect(),
            db_size_in_use: size.in_use_bytes.cast_signed(),
            is_learner: false,
            storage_version: version::STORAGE.to_owned(),
            db_size_quota: self.context.options.limits.quota_told(),
            downgrade_info: Some(DowngradeInfo::default()),
        })
    }

    /// What the journal takes. A shared one is asked by a thread that nobody waits for.
    fn size(&self) -> Result<Size, Error> {
        if self.context.standing.is_alone() {
            return self.context.journal.size().map_err(Error::Journal);
        }
        Ok(self.context.quota.size())
    }

    /// What etcd lists beside the alarms.
    fn no_leader(&self) -> Option<String> {
        let is_led = self.context.standing.leader().is_some();
        (!is_led).then(|| ApiError::NoLeader.message().to_owned())
    }

    /// Lets the journal give back all it can. Nothing waits meanwhile.
    async fn defragment(
        &self,
        request: Request<DefragmentRequest>,
    ) -> Result<DefragmentResponse, Error> {
        self.check_admin(&request)?;
        let (journal, epoch) = (self.context.journal.clone(), self.context.standing.term());
        let work = tokio::task::spawn_blocking(move || condense(&*journal, epoch));
        let condensed = work.await.expect("a journal does not panic");
        // Whoever made room writes next, and should not have to wait for housekeeping to see it.
        self.context.quota.look(|| condensed)?;
        // etcd sends no header here either.
        Ok(DefragmentResponse { header: None })
    }

    async fn hash(&self, request: Request<HashRequest>) -> Result<HashResponse, Error> {
        self.check_admin(&request)?;
        let hashed = hash::compute(&self.context, 0).await?;
        let header = Some(self.context.header(hashed.current));
        Ok(HashResponse { header, hash: hashed.hash })
    }

    async fn hash_kv(&self, request: Request<HashKvRequest>) -> Result<HashKvResponse, Error> {
        self.check_admin(&request)?;
        let hashed = hash::compute(&self.context, request.get_ref().revision).await?;
        Ok(HashKvResponse {
            header: Some(self.context.header(hashed.current)),
            hash: hashed.hash,
            compact_revision: hashed.compacted.0,
            hash_revision: hashed.at.0,
        })
    }

    async fn snapshot(&self, request: Request<SnapshotRequest>) -> Result<SnapshotStream, Error> {
        self.check_admin(&request)?;
        let held = self.context.standing.held();
        let point = self.context.sequencer.snapshot().await?;
        let header = self.context.header(point.state.view.revision());
        let size = self.size()?;
        // How long the file will be is known only at its end.
        let mut remaining_bytes = size.in_use_bytes;
        let bytes = snapshot::stream(self.context.journal.clone(), held, point);
        Ok(Box::pin(bytes.map(move |blob| {
            let blob = blob?;
            remaining_bytes = remaining_bytes.saturating_sub(blob.len() as u64);
            Ok(SnapshotResponse {
                header: Some(header),
                remaining_bytes,
                blob,
                version: version::STORAGE.to_owned(),
            })
        })))
    }

    /// The member that is to have the writer's role takes it; the one that has it asks that member.
    /// Followers are asked only by the holder: what clients ask of them is passed on to it.
    async fn move_leader(
        &self,
        request: Request<MoveLeaderRequest>,
    ) -> Result<MoveLeaderResponse, Error> {
        self.check_admin(&request)?;
        let target = request.get_ref().target_id;
        if target == self.context.identity.member_id {
            self.context.confirm.take().await?;
        } else {
            let relay = self.relay.as_ref().ok_or(ApiError::BadLeaderTransferee)?;
            if !self.context.standing.is_holder() {
                return Err(ApiError::NotLeader.into());
            }
            relay.hand_over(target, &self.caller(&request)?).await?;
        }
        let header = Some(self.context.header(self.context.published.revision()));
        Ok(MoveLeaderResponse { header })
    }

    /// Data of this store cannot become data of an older one, so every target is refused.
    fn downgrade(&self, request: &Request<DowngradeRequest>) -> Result<DowngradeResponse, Error> {
        self.check_admin(request)?;
        let action = DowngradeAction::try_from(request.get_ref().action);
        match action.map_err(|_unknown| ApiError::UnknownMethod)? {
            DowngradeAction::Validate | DowngradeAction::Enable => {
                let is_version = is_version(&request.get_ref().version);
                Err(if is_version {
                    ApiError::InvalidDowngradeTargetVersion.into()
                } else {
                    ApiError::WrongDowngradeVersionFormat.into()
                })
            }
            // There is none to cancel, which etcd takes for done.
            DowngradeAction::Cancel => Ok(DowngradeResponse {
                header: Some(self.context.header(self.context.published.revision())),
                version: CLUSTER_VERSION.to_owned(),
            }),
        }
    }
}

#[tonic::async_trait]
impl Maintenance for MaintenanceService {
    type SnapshotStream = SnapshotStream;

    async fn alarm(
        &self,
        request: Request<AlarmRequest>,
    ) -> Result<Response<AlarmResponse>, Status> {
        Ok(Response::new(self.alarm(request).await?))
    }

    async fn status(
        &self,
        request: Request<StatusRequest>,
    ) -> Result<Response<StatusResponse>, Status> {
        Ok(Response::new(self.status(&request)?))
    }

    async fn defragment(
        &self,
        request: Request<DefragmentRequest>,
    ) -> Result<Response<DefragmentResponse>, Status> {
        Ok(Response::new(self.defragment(request).await?))
    }

    async fn hash(&self, request: Request<HashRequest>) -> Result<Response<HashResponse>, Status> {
        Ok(Response::new(self.hash(request).await?))
    }

    async fn hash_kv(
        &self,
        request: Request<HashKvRequest>,
    ) -> Result<Response<HashKvResponse>, Status> {
        Ok(Response::new(self.hash_kv(request).await?))
    }

    async fn snapshot(
        &self,
        request: Request<SnapshotRequest>,
    ) -> Result<Response<SnapshotStream>, Status> {
        Ok(Response::new(self.snapshot(request).await?))
    }

    async fn move_leader(
        &self,
        request: Request<MoveLeaderRequest>,
    ) -> Result<Response<MoveLeaderResponse>, Status> {
        Ok(Response::new(self.move_leader(request).await?))
    }

    async fn downgrade(
        &self,
        request: Request<DowngradeRequest>,
    ) -> Result<Response<DowngradeResponse>, Status> {
        Ok(Response::new(self.downgrade(&request)?))
    }
}

fn condense(journal: &dyn Journal, epoch: Epoch) -> Result<Size, Error> {
    journal.condense(epoch).map_err(Error::Condense)?;
    while journal.maintain().map_err(Error::Journal)? {}
    journal.size().map_err(Error::Journal)
}

fn alarm_of(request: &AlarmRequest) -> Alarm {
    Alarm { kind: request.alarm, member_id: request.member_id }
}

fn member_of(alarm: Alarm) -> AlarmMember {
    AlarmMember { member_id: alarm.member_id, alarm: alarm.kind }
}

/// An alarm as Go prints the message, which is what clients show.
fn describe(alarm: Alarm) -> String {
    let name = AlarmType::try_from(alarm.kind)
        .map_or_else(|_| alarm.kind.to_string(), |kind| kind.as_str_name().to_owned());
    format!("memberID:{} alarm:{name} ", alarm.member_id)
}

/// `MAJOR.MINOR` or `MAJOR.MINOR.PATCH`.
fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    (2..=3).contains(&parts.len()) && parts.iter().all(|part| part.parse::<u32>().is_ok())
}
