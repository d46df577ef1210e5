//! Whether the cluster is in a shape to work on. A halt forgets what was unneeded: nobody looked.

use super::Round;
use crate::health::is_too_many;
use crate::notice::EventReason;

// === impl Round ===

impl Round<'_> {
    pub(super) fn judge_health(&mut self) {
        let cluster = &mut self.view.cluster;
        cluster.is_unhealthy = is_too_many(cluster.unready, cluster.nodes, self.config);
        let halt = &mut self.state.halt;
        match self.view.cluster.halt(self.config) {
            Some(reason) => {
                self.state.unneeded.clear();
                if halt.since.is_none() {
                    halt.since = Some(self.now);
                    self.notices.tell(EventReason::ClusterUnhealthy, reason.to_string());
                }
            }
            None if halt.since.take().is_some() => halt.ended = Some(self.now),
            None => {}
        }
    }
}
