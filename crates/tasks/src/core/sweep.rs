//! What was left behind: tasks of nodes that are gone, and tasks of this node that it does not know.
//! Found in one consistent listing, at the start and now and then, because events get lost.

use std::collections::BTreeSet;
use std::time::Duration;

use etcd_api::mvccpb::KeyValue;

use super::id::{NodeId, TaskId};
use super::keys::{Key, KeyRange, StatusKey};
use super::txn::{Answer, AnswerError, Op, Txn};

pub const SWEEP_EVERY: Duration = Duration::from_secs(30);

/// Which tasks run where, and which nodes there are, at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    pub nodes: BTreeSet<NodeId>,
    pub running: BTreeSet<(NodeId, TaskId)>,
}

/// A task that nobody looks after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftover {
    /// Its node is gone.
    Lost(TaskId),
    /// It is said to run here, and does not.
    Unknown(TaskId),
}

/// Both lists in one transaction: between two, a node could come and claim.
#[must_use]
pub fn request() -> Txn {
    Txn::read(vec![Op::ListKeys(KeyRange::NODES), Op::ListKeys(KeyRange::RUNNING)])
}

// === impl Listing ===

impl Listing {
    /// Reads the answer to [`request`]. Keys that are none of ours are for fsck to find.
    pub fn new(answer: &Answer) -> Result<Self, AnswerError> {
        let keys = |kvs: &[KeyValue]| -> Vec<Key> {
            kvs.iter().filter_map(|kv| Key::parse(kv.key()).ok()).collect()
        };
        let nodes = keys(answer.listed(0)?).into_iter().filter_map(|key| match key {
            Key::Node(id) => Some(id),
            _ => None,
        });
        let running = keys(answer.listed(1)?).into_iter().filter_map(|key| match key {
            Key::Status(StatusKey::Running(node, id)) => Some((node, id)),
            _ => None,
        });
        Ok(Self { nodes: nodes.collect(), running: running.collect() })
    }

    /// `me` is the present registration, `knows` whether it has an attempt, an unrecorded end or a
    /// claim under way for a task.
    #[must_use]
    pub fn leftovers(&self, me: Option<NodeId>, knows: impl Fn(TaskId) -> bool) -> Vec<Leftover> {
        let leftover = |(node, id): &(NodeId, TaskId)| {
            if !self.nodes.contains(node) {
                return Some(Leftover::Lost(*id));
            }
            (Some(*node) == me && !knows(*id)).then_some(Leftover::Unknown(*id))
        };
        self.running.iter().filter_map(leftover).collect()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn only_what_nobody_looks_after_is_left_over() {
        let node = |number| NodeId(Uuid::from_u128(number));
        let task = |number| TaskId(Uuid::from_u128(number));
        let listing = Listing {
            nodes: [node(1), node(2)].into(),
            running: [
                (node(1), task(1)),
                (node(1), task(2)),
                (node(2), task(3)),
                (node(3), task(4)),
            ]
            .into(),
        };
        let found = listing.leftovers(Some(node(1)), |id| id == task(1));
        assert_eq!(found, [Leftover::Unknown(task(2)), Leftover::Lost(task(4))]);
        assert_eq!(listing.leftovers(None, |_| false), [Leftover::Lost(task(4))]);
    }
}
