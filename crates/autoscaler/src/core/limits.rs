//! What the whole cluster may have: how many more nodes of a kind, and whether one may go.

use std::collections::BTreeMap;

use fit::quantity::Quantity;
use k8s_openapi::api::core::v1::Node;

use super::config::Limits;

/// Room without a limit.
pub(super) const UNLIMITED: u32 = u32::MAX;

/// Sums over all nodes that are there or will soon be.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    nodes: u32,
    resources: BTreeMap<String, i64>,
}

/// How many more nodes there may be, and what keeps it from being more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) nodes: u32,
    pub(super) short_of: Vec<String>,
}

// === impl Totals ===

impl Totals {
    pub(super) fn add(&mut self, node: &Node, count: u32, limits: &Limits) {
        self.nodes = self.nodes.saturating_add(count);
        for name in limits.resources.keys() {
            let amount = amount(node, name).saturating_mul(i64::from(count));
            let sum = self.resources.entry(name.clone()).or_default();
            *sum = sum.saturating_add(amount);
        }
    }

    /// A node that will not be there.
    pub(super) fn take(&mut self, node: &Node) {
        self.nodes = self.nodes.saturating_sub(1);
        for (name, sum) in &mut self.resources {
            *sum = sum.saturating_sub(amount(node, name));
        }
    }

    /// Of whatever kind.
    pub(super) fn room_for_nodes(&self, limits: &Limits) -> u32 {
        limits.nodes_max.map_or(UNLIMITED, |max| max.saturating_sub(self.nodes))
    }

    /// Of nodes like this one, by their resources.
    pub(super) fn room_for(&self, node: &Node, limits: &Limits) -> Room {
        let mut room = Room { nodes: UNLIMITED, short_of: Vec::new() };
        for (name, range) in &limits.resources {
            let each = amount(node, name);
            if each <= 0 {
                continue;
            }
            let left = range.end().saturating_sub(self.total(name)).max(0);
            let nodes = u32::try_from(left / each).unwrap_or(UNLIMITED);
            room.nodes = room.nodes.min(nodes);
            if nodes == 0 {
                room.short_of.push(name.clone());
            }
        }
        room
    }

    /// The resources of which there would be too little without this node.
    pub(super) fn missed_without(&self, node: &Node, limits: &Limits) -> Vec<String> {
        let is_missed = |name: &String, min: i64| {
            let each = amount(node, name);
            each > 0 && self.total(name) - each < min
        };
        let all = limits.resources.iter();
        all.filter(|(name, range)| is_missed(name, *range.start()))
            .map(|(name, _)| name.clone())
            .collect()
    }

    fn total(&self, name: &str) -> i64 {
        self.resources.get(name).copied().unwrap_or(0)
    }
}

/// In whole units; what cannot be read is nothing.
fn amount(node: &Node, name: &str) -> i64 {
    let capacity = node.status.as_ref().and_then(|status| status.capacity.as_ref());
    let quantity = capacity.and_then(|capacity| capacity.get(name));
    quantity.and_then(|quantity| Quantity::parse(&quantity.0).ok()).map_or(0, Quantity::units)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(cpu: &str, memory: &str) -> Node {
        let words = format!("{{status: {{capacity: {{cpu: {cpu}, memory: {memory}}}}}}}");
        serde_saphyr::from_str(&words).unwrap()
    }

    #[test]
    fn room_is_what_the_scarcest_leaves() {
        let resources = [("cpu".to_owned(), 4..=20), ("memory".to_owned(), 0..=64 << 30)];
        let limits = Limits { nodes_max: Some(5), resources: resources.into() };
        let (small, large) = (node("4", "8Gi"), node("8", "64Gi"));
        let mut totals = Totals::default();
        totals.add(&small, 2, &limits);
        assert_eq!(totals.room_for_nodes(&limits), 3);
        assert_eq!(totals.room_for(&small, &limits), Room { nodes: 3, short_of: vec![] });
        let short_of = vec!["memory".to_owned()];
        assert_eq!(totals.room_for(&large, &limits), Room { nodes: 0, short_of });
        assert!(totals.missed_without(&small, &limits).is_empty());
        totals.take(&small);
        assert_eq!(totals.missed_without(&small, &limits), ["cpu"]);
        assert_eq!(totals.nodes, 1);
        assert_eq!(Totals::default().room_for_nodes(&Limits::default()), UNLIMITED);
    }
}
