//! Which nodes are worked on: those with a transaction that waits on the server. A queue may be longer
//! than what is remembered of it; who is not remembered counts as worked off.

use std::collections::{BTreeMap, BTreeSet};

use crate::core::{
    names::{NodeHash, TransactionName},
    rv::ResourceVersion,
};

/// Transactions remembered: four for each of 5,000 nodes.
const QUEUED_MAX: usize = 20_000;

/// The transactions that wait, by node.
#[derive(Debug, Default)]
pub struct Queued {
    nodes: BTreeMap<NodeHash, BTreeSet<ResourceVersion>>,
    count: usize,
}

// === impl Queued ===

impl Queued {
    /// A transaction waits.
    pub fn insert(&mut self, name: &TransactionName) {
        if self.count < QUEUED_MAX {
            let of_node = self.nodes.entry(name.node().clone()).or_default();
            self.count += usize::from(of_node.insert(name.rv().clone()));
        }
    }

    /// A transaction is gone, or nobody works it off.
    pub fn remove(&mut self, name: &TransactionName) {
        let Some(of_node) = self.nodes.get_mut(name.node()) else { return };
        self.count -= usize::from(of_node.remove(name.rv()));
        if of_node.is_empty() {
            self.nodes.remove(name.node());
        }
    }

    #[must_use]
    pub fn has(&self, node: &NodeHash) -> bool {
        self.nodes.contains_key(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::watch::notation::rv;

    fn name(node: &str, version: u64) -> TransactionName {
        TransactionName::new(NodeHash::of(node), rv(&version.to_string()))
    }

    #[test]
    fn a_node_is_worked_on_until_its_last_transaction_is_gone() {
        let (mut queued, a) = (Queued::default(), NodeHash::of("a"));
        for version in [5, 6, 6] {
            queued.insert(&name("a", version));
        }
        queued.remove(&name("a", 5));
        queued.remove(&name("b", 6));
        assert!(queued.has(&a));
        queued.remove(&name("a", 6));
        queued.remove(&name("a", 6));
        assert!(!queued.has(&a));
        assert_eq!(queued.count, 0);
    }

    #[test]
    fn what_is_beyond_the_bound_counts_as_worked_off() {
        let mut queued = Queued::default();
        let bound = u64::try_from(QUEUED_MAX).unwrap();
        (1..=bound).for_each(|version| queued.insert(&name("a", version)));
        queued.insert(&name("b", 1));
        assert!(!queued.has(&NodeHash::of("b")));
        queued.remove(&name("a", 1));
        queued.insert(&name("b", 1));
        assert!(queued.has(&NodeHash::of("b")));
    }
}
