//! Why a task waits: what each node thinks of it. The answer to a person; nothing is decided by it.

use std::time::Duration;

use jiff::Timestamp;

use super::amounts::Amounts;
use super::cache::{Phase, Summary};
use super::id::NodeId;
use super::node::{Node, Obstacle};
use super::rank::{Candidate, rank};
use super::time::until;

/// Empty of a task that waits for no node: it runs or has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    pub nodes: Vec<Opinion>,
    /// No live node could run it, however empty. It stays queued: one may come.
    pub is_unsatisfiable: bool,
    /// Set while a backoff keeps it queued.
    pub not_before: Option<Timestamp>,
}

/// What is known of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opinion {
    pub node: NodeId,
    pub name: String,
    /// None: the task fits now.
    pub obstacles: Vec<Obstacle>,
    /// None: the node could never run it.
    pub rank: Option<usize>,
    pub free: Amounts,
    /// How old the knowledge of what is free is.
    pub free_age: Duration,
}

#[must_use]
pub fn explain(task: &Summary, nodes: &[&Node], now: Timestamp) -> Explanation {
    let Phase::Queued { not_before } = task.phase else { return Explanation::default() };
    let candidates = nodes
        .iter()
        .filter_map(|node| Candidate::new(node, &task.requirements, &task.failed_hosts));
    let candidates: Vec<Candidate> = candidates.collect();
    let opinion = |node: &&Node| Opinion {
        node: node.id,
        name: node.name.clone(),
        obstacles: obstacles(task, node),
        rank: rank(task.id, node.id, candidates.iter().copied()),
        free: node.capacity.minus(&node.reserved),
        free_age: until(node.reserved_at, now),
    };
    Explanation {
        nodes: nodes.iter().map(opinion).collect(),
        is_unsatisfiable: candidates.is_empty(),
        not_before,
    }
}

/// A node that could run the task may still be too full now.
fn obstacles(task: &Summary, node: &Node) -> Vec<Obstacle> {
    let mut obstacles = node.obstacles(&task.requirements);
    if !obstacles.is_empty() {
        return obstacles;
    }
    let (free, demand) = (node.capacity.minus(&node.reserved), &task.requirements.demand);
    if let Some(resource) = demand.exceeds(&free) {
        let (free, needs) = (free.of(resource), demand.of(resource));
        obstacles.push(Obstacle::Full { resource, free, needs });
    }
    let hindrance = node.hindrance.filter(|hindrance| hindrance.hinders(demand));
    obstacles.extend(hindrance.map(Obstacle::Machine));
    obstacles
}
