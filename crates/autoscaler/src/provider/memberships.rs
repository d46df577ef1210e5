//! Which group a node is in, so that the provider is asked once and not in every iteration. Remembers
//! what it is told; asks nobody.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use registry::{GroupId, NodeName};

use super::NodeRef;

/// A node that was in no group may have been added to one since.
const NEGATIVE_KEPT: SignedDuration = SignedDuration::from_mins(5);

#[derive(Debug, Default)]
pub(super) struct Memberships {
    known: BTreeMap<NodeName, Known>,
    /// Nodes about which the provider said nothing when it was last asked.
    silent: BTreeSet<NodeName>,
}

/// An answer, and which question it answered: a Node that changed is another question.
#[derive(Debug)]
struct Known {
    provider_id: String,
    labels: BTreeMap<String, String>,
    group: Option<GroupId>,
    asked: Timestamp,
}

// === impl Memberships ===

impl Memberships {
    /// `None`: ask.
    pub(super) fn get(&self, node: &NodeRef, now: Timestamp) -> Option<Option<&GroupId>> {
        let known = self.known.get(&node.name)?;
        let is_same = known.provider_id == node.provider_id && known.labels == node.labels;
        let is_fresh = known.group.is_some() || now.duration_since(known.asked) < NEGATIVE_KEPT;
        (is_same && is_fresh).then_some(known.group.as_ref())
    }

    pub(super) fn insert(&mut self, node: &NodeRef, group: Option<GroupId>, now: Timestamp) {
        let known = Known {
            provider_id: node.provider_id.clone(),
            labels: node.labels.clone(),
            group,
            asked: now,
        };
        self.silent.remove(&node.name);
        self.known.insert(node.name.clone(), known);
    }

    /// There was no answer.
    pub(super) fn on_silence(&mut self, node: &NodeRef) {
        self.silent.insert(node.name.clone());
    }

    pub(super) fn was_silent(&self, node: &NodeRef) -> bool {
        self.silent.contains(&node.name)
    }

    /// Forgets nodes that are gone, which keeps this as small as the cluster.
    pub(super) fn retain(&mut self, nodes: &BTreeSet<&NodeName>) {
        self.known.retain(|name, _| nodes.contains(name));
        self.silent.retain(|name| nodes.contains(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    fn node(name: &str, provider_id: &str) -> NodeRef {
        NodeRef {
            name: name.into(),
            provider_id: provider_id.to_owned(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
        }
    }

    #[test]
    fn a_group_is_kept_for_good_and_its_absence_for_five_minutes() {
        let (member, stranger) = (node("a", "p"), node("b", "q"));
        let mut memberships = Memberships::default();
        memberships.insert(&member, Some("pool".into()), at(0));
        memberships.insert(&stranger, None, at(0));
        assert_eq!(memberships.get(&member, at(100_000)), Some(Some(&"pool".into())));
        assert_eq!(memberships.get(&stranger, at(299)), Some(None));
        assert_eq!(memberships.get(&stranger, at(300)), None);
    }

    #[test]
    fn a_node_that_changed_is_another_question() {
        let mut memberships = Memberships::default();
        memberships.insert(&node("a", "p"), Some("pool".into()), at(0));
        assert_eq!(memberships.get(&node("a", "other"), at(1)), None);
        let labels = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
        assert_eq!(memberships.get(&NodeRef { labels, ..node("a", "p") }, at(1)), None);
    }

    #[test]
    fn nodes_that_are_gone_are_forgotten() {
        let mut memberships = Memberships::default();
        memberships.insert(&node("a", "p"), Some("pool".into()), at(0));
        memberships.on_silence(&node("b", "q"));
        memberships.retain(&BTreeSet::new());
        assert_eq!(memberships.get(&node("a", "p"), at(1)), None);
        assert!(!memberships.was_silent(&node("b", "q")));
    }

    #[test]
    fn a_silence_lasts_until_there_is_an_answer() {
        let (node, mut memberships) = (node("a", "p"), Memberships::default());
        memberships.on_silence(&node);
        assert!(memberships.was_silent(&node));
        assert_eq!(memberships.get(&node, at(0)), None);
        memberships.insert(&node, Some("pool".into()), at(1));
        assert!(!memberships.was_silent(&node));
    }
}
