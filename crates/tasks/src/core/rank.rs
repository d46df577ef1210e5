//! Who is nearest to a task: weighted rendezvous hashing over the live nodes. Every node computes the
//! same order from the same view, so nobody has to be asked.

use xxhash_rust::xxh3::xxh3_64;

use super::id::{HostId, NodeId, TaskId};
use super::node::{Node, Requirements};

/// A node that could run the task.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub node: NodeId,
    /// How many such tasks it could run at once; the larger, the oftener it comes first.
    pub weight: u64,
    /// The task could not be started there. Such nodes come after all others.
    pub has_failed: bool,
}

/// How well a candidate fits; more is better.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Score {
    is_fresh: bool,
    value: f64,
    /// So that no two nodes have the same place.
    node: NodeId,
}

// === impl Candidate ===

impl Candidate {
    /// `None` for a node that can never run it.
    #[must_use]
    pub fn new(node: &Node, needs: &Requirements, failed_hosts: &[HostId]) -> Option<Self> {
        let weight = node.weight(needs);
        let has_failed = failed_hosts.contains(&node.host);
        (weight > 0).then_some(Self { node: node.id, weight, has_failed })
    }

    /// The logarithm makes the share of tasks for which a node comes first its share of all weight.
    #[expect(clippy::cast_precision_loss, reason = "a weight need not be exact")]
    fn score(&self, name: &[u8; 16]) -> Score {
        let value = -(self.weight as f64) / unit_hash(name, self.node).ln();
        Score { is_fresh: !self.has_failed, value, node: self.node }
    }
}

/// The place of `me` among the candidates, from 0; `None` if it is none of them.
#[must_use]
pub fn rank(
    task: TaskId,
    me: NodeId,
    candidates: impl IntoIterator<Item = Candidate> + Clone,
) -> Option<usize> {
    let name = task.0.as_bytes();
    let mine = candidates.clone().into_iter().find(|candidate| candidate.node == me)?.score(name);
    Some(candidates.into_iter().filter(|candidate| candidate.score(name) > mine).count())
}

/// Which node does a chore that one node is enough for.
#[must_use]
pub fn chosen(chore: &str, nodes: impl IntoIterator<Item = NodeId>) -> Option<NodeId> {
    let score = |node: &NodeId| hash(chore.as_bytes(), *node);
    nodes.into_iter().max_by_key(|node| (score(node), *node))
}

/// A number in (0, 1) that only task and node decide.
#[must_use]
pub fn unit_hash(name: &[u8; 16], node: NodeId) -> f64 {
    /// As many bits as a float holds exactly.
    const BITS: u32 = 52;
    #[expect(clippy::cast_precision_loss, reason = "52 bits fit")]
    let numerator = (hash(name, node) >> (64 - BITS)) as f64 + 0.5;
    numerator / 2_f64.powi(BITS.cast_signed())
}

/// The same on every machine and in every version, unlike the hash of the standard library.
fn hash(name: &[u8], node: NodeId) -> u64 {
    let mut joined = [0; 64];
    let length = name.len().min(joined.len() - 16);
    joined[..length].copy_from_slice(&name[..length]);
    joined[length..length + 16].copy_from_slice(node.0.as_bytes());
    xxh3_64(&joined[..length + 16])
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use uuid::Uuid;

    use super::*;

    fn node(number: u128) -> NodeId {
        NodeId(Uuid::from_u128(number))
    }

    fn task(number: u128) -> TaskId {
        TaskId(Uuid::from_u128(number))
    }

    fn candidates(weights: &[u64]) -> Vec<Candidate> {
        let numbered = (0..).zip(weights);
        let candidate = |(number, weight): (u128, &u64)| Candidate {
            node: node(number),
            weight: *weight,
            has_failed: false,
        };
        numbered.map(candidate).collect()
    }

    #[test]
    fn every_node_has_its_own_place_and_all_agree() {
        let all = candidates(&[1, 2, 3, 4]);
        let mut ranks: Vec<usize> =
            all.iter().map(|each| rank(task(7), each.node, all.clone()).unwrap()).collect();
        ranks.sort_unstable();
        assert_eq!(ranks, [0, 1, 2, 3]);
        assert_eq!(rank(task(7), node(9), all), None);
    }

    #[test]
    fn nodes_where_it_failed_come_last() {
        let mut all = candidates(&[100, 1, 1]);
        all[0].has_failed = true;
        for number in 0..50 {
            assert_eq!(rank(task(number), node(0), all.clone()), Some(2));
        }
    }

    #[test]
    fn first_places_follow_the_weights() {
        let all = candidates(&[1, 2, 4, 8, 1]);
        let mut firsts = [0_u32; 5];
        for number in 0..3200 {
            let first =
                all.iter().position(|each| rank(task(number), each.node, all.clone()) == Some(0));
            firsts[first.unwrap()] += 1;
        }
        // 200, 400, 800, 1600 and 200 would be exact.
        expect![[r#"
            [
                207,
                395,
                844,
                1565,
                189,
            ]
        "#]]
        .assert_debug_eq(&firsts);
    }

    #[test]
    fn a_node_that_leaves_moves_only_its_own_tasks() {
        let all = candidates(&[1; 5]);
        let without = candidates(&[1; 4]);
        let first = |number, among: &[Candidate]| {
            among.iter().position(|each| rank(task(number), each.node, among.to_vec()) == Some(0))
        };
        for number in 0..200 {
            let before = first(number, &all);
            assert!(before == Some(4) || before == first(number, &without), "task {number}");
        }
    }

    #[test]
    fn one_node_is_chosen_for_a_chore() {
        let nodes: Vec<NodeId> = (0..5).map(node).collect();
        let chosen_one = chosen("gc", nodes.clone());
        assert!(chosen_one.is_some());
        assert_eq!(chosen_one, chosen("gc", nodes.into_iter().rev()));
        assert_eq!(chosen("gc", []), None);
    }
}
