//! A log that lies on another host: asked for there, and passed on as it comes.

use futures::stream::{StreamExt, TryStreamExt};
use tonic::Status;

use super::Chunks;
use super::find::Attempt;
use crate::core::id::TaskId;
use crate::service::Service;
use crate::service::error::Error;
use crate::wire;

// === impl Service ===

impl Service {
    /// Asks the live node of the attempt's host, whose node id is another after each restart. The
    /// attempt is named, since the other node may know of a later one.
    pub(super) async fn pass_on(
        &self,
        attempt: &Attempt,
        id: TaskId,
        request: wire::LogsRequest,
    ) -> Result<Chunks, Error> {
        let nodes = self.nodes_known().await?;
        let owner = nodes.iter().find(|node| Some(node.host) == attempt.host);
        let owner = owner.ok_or_else(|| attempt.away(id))?;
        let peer = self.peer(owner).await.or(Err(attempt.away(id)))?;
        let request = wire::LogsRequest { attempt: attempt.number, proxied: true, ..request };
        let chunks = peer.pass_logs(request).await.map_err(Error::Passed)?;
        let passed_on = chunks.map_err(|status| Status::new(status.code(), status.message()));
        Ok(passed_on.boxed())
    }
}
