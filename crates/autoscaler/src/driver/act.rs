//! Carrying out one action of an iteration.

use registry::NodeName;
use tokio::time::Instant;

use super::term::{Term, TermError};
use super::{Driver, tell};
use crate::cluster::{Cluster, Event, Mark};
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
        self.may_begin(driver)?;
        let (node, mark) = match action {
            Action::Call(call) => return self.call(driver, call, world).await,
            Action::Lift(lift) => return self.lift(driver, lift, world).await,
            Action::Mark { node, value } => (node, Mark::Candidate { since: *value }),
            Action::Unmark { node } => (node, Mark::Needed),
        };
        if driver.options.mode != Mode::Act {
            return Ok(Effect::Done);
        }
        let began = *self.marking_since.get_or_insert_with(Instant::now);
        if began.elapsed() >= driver.options.soft_taint_duration_max {
            // The next iteration goes on with it.
            return Ok(Effect::Stale);
        }
        Ok(mark_node(driver, node, mark).await)
    }

    /// Somebody before us was about to remove it.
    async fn lift<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
        lift: &Lift,
        world: &World,
    ) -> Result<Effect, TermError> {
        let Lift { node, why, .. } = lift;
        if driver.options.mode != Mode::Act {
            self.foresee(&format!("lift the taint of node {node}: {why}"));
            return Ok(Effect::Done);
        }
        let effect = mark_node(driver, node, Mark::Stays).await;
        if effect == Effect::Done {
            tracing::info!(%node, why, "it stays");
            driver.cluster.tell(Event {
                about: tell::about_node(node, world),
                reason: "ClusterAutoscalerCleanup",
                is_warning: false,
                note: format!("lifted the taint of a removal: {why}"),
            });
        }
        Ok(effect)
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
