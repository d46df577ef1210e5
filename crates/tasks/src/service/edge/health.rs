//! Whether a node is well: `/livez`, `/readyz` and `/health` on its port.

use ::store::http::{Probes, Read};
use etcd_api::etcdserverpb::AlarmType;
use futures::future::BoxFuture;
use tonic::Status;

use crate::core::txn::Txn;
use crate::node::Handle;
use crate::service::error::Error;

/// See the module.
pub(super) struct Health {
    node: Handle,
}

// === impl Health ===

impl Health {
    pub(super) fn new(node: Handle) -> Self {
        Self { node }
    }

    async fn check(&self, read: Read) -> Result<(), Error> {
        match read {
            Read::Serializable => {
                self.node.look(|_| ()).await.or(Err(Error::Stopping))?;
            }
            Read::Linearizable => {
                self.node.store().txn(&Txn::read(Vec::new())).await.map_err(Error::Store)?;
                if !self.node.standing().is_informed {
                    return Err(Error::NotReady);
                }
            }
        }
        Ok(())
    }
}

/// What is asked of a store is answered for a node: it lives while it decides, and is ready while the
/// store answers and its list of tasks is complete.
impl Probes for Health {
    fn alarms(&self) -> Vec<AlarmType> {
        Vec::new()
    }

    fn has_leader(&self) -> bool {
        true
    }

    fn is_learner(&self) -> bool {
        false
    }

    fn is_auth_enabled(&self) -> bool {
        false
    }

    fn read(&self, read: Read) -> BoxFuture<'_, Result<(), Status>> {
        Box::pin(async move { self.check(read).await.map_err(Status::from) })
    }
}
