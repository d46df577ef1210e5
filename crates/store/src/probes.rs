//! What the store tells about its own health.

use std::sync::Arc;

use etcd_api::etcdserverpb::{AlarmType, RangeRequest};
use futures::future::BoxFuture;
use tonic::Status;

use crate::{
    Error,
    context::Context,
    http::{Probes, Read},
};

pub(crate) struct StoreProbes {
    pub(crate) context: Arc<Context>,
}

impl Probes for StoreProbes {
    fn alarms(&self) -> Vec<AlarmType> {
        let alarms = self.context.alarms.load();
        alarms.iter().filter_map(|alarm| AlarmType::try_from(alarm.kind).ok()).collect()
    }

    fn has_leader(&self) -> bool {
        self.context.standing.leader().is_some()
    }

    fn is_learner(&self) -> bool {
        false
    }

    fn is_auth_enabled(&self) -> bool {
        self.context.gate.state().is_enabled()
    }

    fn read(&self, read: Read) -> BoxFuture<'_, Result<(), Status>> {
        Box::pin(async move {
            if read == Read::Linearizable {
                self.context.confirm().await?;
                if self.context.standing.is_alone() {
                    // A question through the writer is answered only while the journal takes writes.
                    self.context.sequencer.lease(mvcc::LeaseId::NONE).await?;
                }
            }
            let any = RangeRequest {
                key: "\0".into(),
                range_end: "\0".into(),
                limit: 1,
                ..Default::default()
            };
            let state = self.context.state();
            state.view.range(&any, &*self.context.kept).map_err(Error::Keyspace)?;
            Ok(())
        })
    }
}
