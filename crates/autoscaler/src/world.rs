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
        controllers.add(&each.namespace, &each.kind, &each.name, each.replicas);
    }
    controllers
}

fn volumes(snapshot: &Snapshot) -> Volumes {
    let mut volumes = Volumes::default();
    snapshot.claims.iter().for_each(|claim| volumes.add_claim(claim));
    snapshot.volumes.iter().for_each(|volume| volumes.add_volume(volume));
    snapshot.limited_drivers.iter().for_each(|driver| volumes.limit_driver(driver));
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

/// How one of several groups is chosen: a chain of names, and the priorities as they were last good.
#[derive(Clone, Debug)]
pub(crate) struct Preferences {
    chain: String,
    known: Option<Priorities>,
    /// What they were read from, or what could not be read.
    text: Option<Arc<str>>,
}

// === impl Preferences ===

impl Preferences {
    pub(crate) fn new(chain: String) -> Self {
        Self { chain, known: None, text: None }
    }

    /// Takes in the text of the priorities as it is now.
    ///
    /// # Errors
    ///
    /// If it is another than before and cannot be read: then the last good ones count.
    pub(crate) fn follow(&mut self, text: Option<&Arc<str>>) -> Result<(), PrioritiesError> {
        if text == self.text.as_ref() {
            return Ok(());
        }
        self.text = text.cloned();
        self.known = text.map(|text| priorities(text)).transpose()?;
        Ok(())
    }

    pub(crate) fn expanders(&self) -> Result<Vec<Expander>, fit::expand::Error> {
        expanders(&self.chain, self.known.as_ref())
    }
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
    fn volumes_of_a_driver_with_a_limit_are_not_guessed_at() {
        let mut snapshot = Snapshot {
            volumes: vec![Arc::new(
                serde_saphyr::from_str(
                    "{metadata: {name: disk}, spec: {csi: {driver: few, volumeHandle: x}}}",
                )
                .unwrap(),
            )],
            claims: vec![Arc::new(
                serde_saphyr::from_str(
                    "{metadata: {name: data, annotations: {pv.kubernetes.io/bind-completed: 'yes'}},
                      spec: {volumeName: disk}}",
                )
                .unwrap(),
            )],
            ..Snapshot::default()
        };
        let pod: k8s_openapi::api::core::v1::Pod = serde_saphyr::from_str(
            "{spec: {containers: [], volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}}",
        )
        .unwrap();
        let compiled = |snapshot: &Snapshot| {
            let mut cluster = fit::Cluster::new(&BTreeMap::new());
            cluster.compile(&pod, &volumes(snapshot)).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(compiled(&snapshot), Ok(()));
        snapshot.limited_drivers.insert("few".to_owned());
        let words = "unsupported constraint volume limit of driver few";
        assert_eq!(compiled(&snapshot), Err(words.to_owned()));
    }

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

    #[test]
    fn priorities_that_cannot_be_read_leave_the_last_good_ones() {
        let mut preferences = Preferences::new("priority,least-waste".to_owned());
        let mut follow = |text: Option<&str>| {
            let is_taken = preferences.follow(text.map(Arc::from).as_ref()).is_ok();
            (is_taken, preferences.expanders().unwrap().len())
        };
        assert_eq!(follow(Some("10: [")), (false, 1), "none were ever good");
        assert_eq!(follow(Some("10: ['.*']")), (true, 2));
        assert_eq!(follow(Some("10: [")), (false, 2));
        assert_eq!(follow(Some("10: [")), (true, 2), "told once");
        assert_eq!(follow(None), (true, 1));
    }
}
