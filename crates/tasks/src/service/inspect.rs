//! Status, Explain and Nodes: looking at one task, and at all nodes.

use super::error::Error;
use super::{Service, task_id, view};
use crate::core::cache::Summary;
use crate::core::explain::explain;
use crate::core::id::TaskId;
use crate::core::keys::KeyRange;
use crate::core::node::Node;
use crate::core::record::{Record, RecordError};
use crate::store;
use crate::wire;

// === impl Service ===

impl Service {
    pub(super) async fn show(&self, id: &str) -> Result<wire::StatusResponse, Error> {
        let record = self.record(task_id("id", id)?).await?;
        Ok(wire::StatusResponse { task: Some(view::task(&record)) })
    }

    /// From the record as it is now, and from what this node knows of the others.
    pub(super) async fn explain_one(&self, id: &str) -> Result<wire::ExplainResponse, Error> {
        let record = self.record(task_id("id", id)?).await?;
        let (id, schema) = (record.id(), record.task.schema);
        let newer = || Error::Store(store::Error::Record(RecordError::Newer { id, schema }));
        let summary = Summary::new(&record).or(Err(newer()))?;
        self.informed()?;
        let explanation = self.node().look(move |known| {
            let nodes: Vec<&Node> = known.cache.nodes().collect();
            explain(&summary, &nodes, known.now.wall)
        });
        Ok(view::explanation(explanation.await.or(Err(Error::Stopping))?))
    }

    pub(super) async fn list_nodes(&self) -> Result<wire::NodesResponse, Error> {
        let nodes = self.nodes_known().await?;
        Ok(wire::NodesResponse { nodes: nodes.iter().map(Node::to_message).collect() })
    }

    /// As the store has them now: where this node is cut off, what it remembers is past.
    pub(super) async fn nodes_known(&self) -> Result<Vec<Node>, Error> {
        self.informed()?;
        let listed = self.node().store().list(KeyRange::NODES).await.map_err(Error::Store)?;
        // What cannot be read is for fsck to tell.
        Ok(listed.kvs.iter().flat_map(Node::decode).map(|(node, _)| node).collect())
    }

    /// A task as the store has it now.
    pub(super) async fn record(&self, id: TaskId) -> Result<Record, Error> {
        let found = self.node().store().get(id).await.map_err(Error::Store)?;
        found.ok_or(Error::NoTask(id))
    }

    /// Before its first list a node would answer that there is nothing.
    fn informed(&self) -> Result<(), Error> {
        if self.node().standing().is_informed { Ok(()) } else { Err(Error::NotReady) }
    }
}
