//! Carrying out one action of an iteration.

use registry::NodeName;

use super::Driver;
use super::term::{Term, TermError};
use crate::cluster::{Cluster, Mark};
use crate::core::{Action, Effect, Lift, World};
use crate::options::Mode;
use crate::provider::Provider;

// === impl Term ===

impl Term {
    pub(super) async fn act<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
        action: &Action,
        world: &World,
    ) -> Result<Effect, TermError> {
        let (node, mark) = match action {
            Action::Call(call) => return self.call(driver, call, world).await,
            Action::Lift(Lift { node, why, .. }) => {
                tracing::info!(%node, why, "it stays");
                (node, Mark::Stays)
            }
            Action::Mark { node, value } => (node, Mark::Candidate { since: *value }),
            Action::Unmark { node } => (node, Mark::Needed),
        };
        if driver.options.mode != Mode::Act {
            return Ok(Effect::Done);
        }
        if !driver.is_leading() {
            return Err(TermError::Lost);
        }
        Ok(mark_node(driver, node, mark).await)
    }
}

/// Writes what a Node is to bear. A Node that is gone bears nothing.
pub(super) async fn mark_node<P: Provider, C: Cluster>(
    driver: &Driver<P, C>,
    node: &NodeName,
    mark: Mark,
) -> Effect {
    match driver.cluster.mark(node, &mark).await {
        Ok(_) => Effect::Done,
        Err(error) => {
            let words = super::chain(&error);
            tracing::warn!(%node, ?mark, error = words, "a Node is not marked");
            Effect::Failed(words)
        }
    }
}
