//! How much of a node is in use.

use crate::class::ClassId;
use crate::cluster::Cluster;
use crate::node::NodeId;

// === impl Cluster ===

impl Cluster {
    /// The share of a node's cpu or of its memory that its pods ask for, whichever is larger; pods of
    /// the classes `without` are left out, once for each time that a class is named.
    ///
    /// # Panics
    ///
    /// If the node is not there.
    #[must_use]
    pub fn utilization(&self, node: NodeId, without: &[ClassId]) -> f64 {
        let host = self.host(node);
        let (mut cpu_millis, mut memory) = (host.used.cpu_millis, host.used.memory);
        for class in without {
            let requests = &self.class(*class).requests;
            cpu_millis = cpu_millis.saturating_sub(requests.cpu_millis);
            memory = memory.saturating_sub(requests.memory);
        }
        let all = &host.machine.allocatable;
        share(cpu_millis, all.cpu_millis).max(share(memory, all.memory))
    }
}

#[expect(clippy::cast_precision_loss, reason = "shares are compared with a threshold")]
fn share(part: i64, whole: i64) -> f64 {
    if whole > 0 { part as f64 / whole as f64 } else { 0.0 }
}
