//! What every service holds: the way to the writer, the durable state, and who is who.

use std::{sync::Arc, time::SystemTime};

use arc_swap::ArcSwap;
use etcd_api::{ApiError, etcdserverpb::ResponseHeader};
use http::{Extensions, HeaderMap};
use journal::Journal;
use mvcc::Revision;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    Error, Options,
    alarm::Alarms,
    auth::{self, Caller, Gate},
    lease::Deadlines,
    metrics::Metrics,
    published::{Published, State},
    quota::{Promise, Quota},
    replica::{Confirm, Standing},
    sequencer::Sequencer,
    services::Departures,
    values::KeptValues,
    watch::SessionContext,
};

/// Shared by all services of one store.
pub(crate) struct Context {
    pub(crate) options: Options,
    pub(crate) identity: Identity,
    pub(crate) standing: Arc<Standing>,
    pub(crate) confirm: Confirm,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) sequencer: Sequencer,
    pub(crate) published: Arc<Published>,
    pub(crate) kept: Arc<KeptValues>,
    pub(crate) deadlines: Mutex<Deadlines>,
    pub(crate) alarms: ArcSwap<Alarms>,
    pub(crate) gate: Gate,
    pub(crate) quota: Arc<Quota>,
    pub(crate) watch: Arc<SessionContext>,
    pub(crate) departures: Departures,
    pub(crate) metrics: Metrics,
    /// Cancelled when the store begins to stop, so that streams without an end find one.
    pub(crate) stopping: CancellationToken,
    /// The wall clock, which belongs to the binary.
    pub(crate) clock: fn() -> SystemTime,
}

/// Who this member is. Stable for the life of the data; where several members share it, each is
/// somebody new at every start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) cluster_id: u64,
    pub(crate) member_id: u64,
}

// === impl Context ===

impl Context {
    /// The newest durable state: what a linearizable read sees, since every write is published
    /// before it is answered.
    pub(crate) fn state(&self) -> Arc<State> {
        self.published.load()
    }

    /// Waits until what is shown here is all that was acknowledged anywhere before. A linearizable
    /// read takes the state after it.
    pub(crate) async fn confirm(&self) -> Result<(), Error> {
        self.confirm.confirm().await
    }

    pub(crate) fn header(&self, revision: Revision) -> ResponseHeader {
        ResponseHeader {
            cluster_id: self.identity.cluster_id,
            member_id: self.identity.member_id,
            revision: revision.0,
            // How often the writer's role was taken, which is what a term of etcd's counts.
            raft_term: self.standing.term().0,
        }
    }

    /// Completes a header that has its revision already.
    pub(crate) fn complete(&self, header: &mut Option<ResponseHeader>) {
        let revision = header.as_ref().map_or(0, |header| header.revision);
        *header = Some(self.header(Revision(revision)));
    }

    pub(crate) fn caller(
        &self,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Caller, Error> {
        self.gate.caller(headers, extensions, self.now()).map_err(Error::Auth)
    }

    pub(crate) fn now(&self) -> auth::Now {
        auth::Now { monotonic: Instant::now(), wall: (self.clock)() }
    }

    /// Room for a write that needs some, or a refusal; where there is none, the alarm is raised.
    pub(crate) async fn promise_room(&self, cost_bytes: usize) -> Result<Promise, Error> {
        if self.alarms.load().is_out_of_space() {
            return Err(ApiError::NoSpace.into());
        }
        if let Some(room) = self.quota.promise(cost_bytes) {
            return Ok(room);
        }
        self.sequencer.alarm(crate::alarm::Change::Raise(self.no_space_alarm())).await?;
        tracing::error!(
            quota_bytes = self.options.limits.quota_bytes,
            "writes are refused: the quota is used up or the disk is nearly full"
        );
        Err(ApiError::NoSpace.into())
    }

    /// Refuses writes while the alarm for damaged data is raised. Reads go on, as in etcd.
    pub(crate) fn check_sound(&self) -> Result<(), Error> {
        if self.alarms.load().is_corrupt() { Err(ApiError::Corrupt.into()) } else { Ok(()) }
    }

    fn no_space_alarm(&self) -> crate::alarm::Alarm {
        crate::alarm::Alarm {
            kind: etcd_api::etcdserverpb::AlarmType::Nospace as i32,
            member_id: self.identity.member_id,
        }
    }
}
