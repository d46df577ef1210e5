//! Drain, Fsck and Gc: looking after the cluster by hand.

use jiff::Timestamp;

use super::error::{Error, Field};
use super::{Service, deadline};
use crate::client::{Client, Options};
use crate::core::node::Node;
use crate::core::time::Epoch;
use crate::store::Checked;
use crate::wire;
use crate::wire::fsck_response;

// === impl Service ===

impl Service {
    /// The node that is meant drains itself. Another one is asked to, once: a call that was passed on
    /// is never passed on again.
    pub(super) async fn drain_node(
        &self,
        request: wire::DrainRequest,
    ) -> Result<wire::DrainResponse, Error> {
        let nodes = self.nodes_known().await?;
        let node = find(&nodes, &request.node)?;
        if node.host == self.node().host_id() {
            self.node().drain().await.or(Err(Error::Stopping))?;
        } else if request.proxied {
            return Err(Error::NoNode(node.name.clone()));
        } else {
            self.peer(node).await?.pass_drain(&node.id.to_string()).await?;
        }
        Ok(wire::DrainResponse {})
    }

    /// A connection to another node.
    pub(super) async fn peer(&self, node: &Node) -> Result<Client, Error> {
        let tls = self.shared.options.identity.clone();
        let options = Options { address: node.address.clone(), tls };
        Client::connect(&options).await.map_err(|error| {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(node = node.name, error, "another node cannot be reached");
            Error::PeerAway { name: node.name.clone(), address: node.address.clone() }
        })
    }

    pub(super) async fn check_store(&self, repair: bool) -> Result<wire::FsckResponse, Error> {
        let absences = self.node().look(|known| known.absences.clone()).await;
        let absences = absences.or(Err(Error::Stopping))?;
        let Checked { findings, revision } =
            self.node().store().fsck(&absences).await.map_err(Error::Fsck)?;
        self.node().metrics().on_fsck(findings.len());
        let mut told = Vec::with_capacity(findings.len());
        for finding in findings {
            let repaired = repair
                && self.node().store().repair(&finding, deadline()).await.map_err(Error::Fsck)?;
            let (key, problem) = (finding.key(), finding.to_string());
            told.push(fsck_response::Finding { key, problem, repaired });
        }
        Ok(wire::FsckResponse { findings: told, revision: revision.0 })
    }

    pub(super) async fn collect(&self, before_ms: i64) -> Result<wire::GcResponse, Error> {
        let not_a_time = || Error::field("before_ms", Field::NotATime(before_ms));
        let before = Timestamp::from_millisecond(before_ms).ok().ok_or_else(not_a_time)?;
        let deleted = self.node().store().gc(Epoch::of(before), deadline()).await;
        let deleted = deleted.map_err(Error::Gc)?;
        self.node().metrics().on_deleted(deleted);
        Ok(wire::GcResponse { deleted })
    }
}

/// By id, else by name. Nodes of one machine are called alike unless somebody names them.
fn find<'a>(nodes: &'a [Node], wanted: &str) -> Result<&'a Node, Error> {
    if let Some(node) = nodes.iter().find(|node| node.id.to_string() == wanted) {
        return Ok(node);
    }
    let called: Vec<&Node> = nodes.iter().filter(|node| node.name == wanted).collect();
    match called.as_slice() {
        [] => Err(Error::NoNode(wanted.to_owned())),
        [only] => Ok(only),
        several => {
            let (name, count) = (wanted.to_owned(), several.len());
            Err(Error::field("node", Field::Ambiguous { name, count }))
        }
    }
}
