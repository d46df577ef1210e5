//! From what watches have brought to what the planners go by. Reads; judges nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use fit::Volumes;
use fit::drain::Controllers;
use fit::expand::{Expander, Priorities};
use registry::{GroupId, NodeName};

use crate::cluster::Snapshot;
use crate::core::{GroupSettings, World};

/// All but what the provider says of its groups.
pub(crate) fn world(snapshot: &Snapshot, groups: BTreeMap<GroupId, GroupSettings>) -> World {
    let named = |node: &Arc<k8s_openapi::api::core::v1::Node>| {
        Some((NodeName(node.metadata.name.clone()?), Arc::clone(node)))
    };
    World {
        nodes: snapshot.nodes.iter().filter_map(named).collect(),
        pods: snapshot.pods.clone(),
        namespaces: snapshot.namespace_labels(),
        budgets: snapshot.budgets.iter().map(|budget| (**budget).clone()).collect(),
        daemon_sets: snapshot.daemon_sets.clone(),
        controllers: controllers(snapshot),
        volumes: volumes(snapshot),
        groups,
    }
}

fn controllers(snapshot: &Snapshot) -> Controllers {
    let mut controllers = Controllers::default();
    for each in &snapshot.controllers {
        controllers.add(&each.namespace, each.kind, &each.name, each.replicas);
    }
    controllers
}

fn volumes(snapshot: &Snapshot) -> Volumes {
    let mut volumes = Volumes::default();
    snapshot.claims.iter().for_each(|claim| volumes.add_claim(claim));
    snapshot.volumes.iter().for_each(|volume| volumes.add_volume(volume));
    volumes
}

/// Why the priorities of the expander of that name are not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrioritiesError {
    #[error("the ConfigMap cluster-autoscaler-priority-expander is not as it should be")]
    Syntax(#[source] serde_saphyr::Error),
    #[error("the ConfigMap cluster-autoscaler-priority-expander cannot be used")]
    Patterns(#[source] fit::expand::Error),
}

/// The priorities in a ConfigMap: lists of patterns by number.
pub(crate) fn priorities(text: &str) -> Result<Priorities, PrioritiesError> {
    let patterns: BTreeMap<i64, Vec<String>> =
        serde_saphyr::from_str(text).map_err(PrioritiesError::Syntax)?;
    Priorities::new(&patterns).map_err(PrioritiesError::Patterns)
}

/// The chain of expanders; without priorities, that one is left out.
pub(crate) fn expanders(
    chain: &str,
    priorities: Option<&Priorities>,
) -> Result<Vec<Expander>, fit::expand::Error> {
    let none = Priorities::default();
    let all = Expander::parse_chain(chain, priorities.unwrap_or(&none))?;
    let is_kept =
        |expander: &Expander| priorities.is_some() || !matches!(expander, Expander::Priority(_));
    Ok(all.into_iter().filter(is_kept).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_lists_of_patterns() {
        assert!(priorities("10:\n- .*\n50:\n- spot-.*").is_ok());
        assert!(matches!(priorities("10: ["), Err(PrioritiesError::Syntax(_))));
        assert!(matches!(priorities("10: ['(']"), Err(PrioritiesError::Patterns(_))));
    }

    #[test]
    fn an_expander_without_priorities_is_left_out() {
        let count = |priorities: Option<&Priorities>| {
            expanders("priority,least-waste", priorities).unwrap().len()
        };
        assert_eq!(count(None), 1);
        assert_eq!(count(Some(&priorities("10: ['.*']").unwrap())), 2);
        assert!(expanders("price", None).is_err());
    }
}
