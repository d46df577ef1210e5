//! Claim: a node takes a task. The fence begins here.

use super::{Plan, SettleError, Stamp, TransitionError};
use crate::core::id::{Fence, HostId, NodeId, Revision};
use crate::core::keys::{Key, StatusKey};
use crate::core::record::{ATTEMPTS_KEPT_MAX, AUTHOR_BYTES_MAX, Attempt, Record, Usage, cut};
use crate::core::status::{Running, Status};
use crate::core::txn::{Answer, Compare, Op};

/// The registration that takes tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimant {
    pub node: NodeId,
    pub host: HostId,
    pub name: String,
    /// Of `/node/NODE_ID`. Another one means that the lease ended in between.
    pub registered: Revision,
}

pub fn claim(before: &Record, claimant: &Claimant, stamp: Stamp) -> Result<Plan, TransitionError> {
    let id = before.id();
    let not_before = match &before.task.status {
        Status::Queued(queued) => queued.not_before,
        other => {
            super::leaving(&before.task, "running")?;
            return Err(TransitionError::NotFrom { id, from: other.as_str(), to: "running" });
        }
    };
    if let Some(not_before) = not_before.filter(|at| stamp.now < *at) {
        return Err(TransitionError::TooEarly { id, not_before });
    }
    let attempt = claimant.attempt(before, stamp);
    let plan = Plan::rewrite(before, stamp.write_id, |task| {
        task.status = Status::Running(Running {
            node: claimant.node,
            attempt: attempt.number,
            since: stamp.now,
        });
        task.attempts.push(attempt);
        let forgotten = task.attempts.len().saturating_sub(ATTEMPTS_KEPT_MAX);
        task.attempts.drain(..forgotten);
    })?;
    Ok(plan.also(Compare::Exists(Key::Status(StatusKey::Queued(id)))).fenced(claimant))
}

// === impl Claimant ===

impl Claimant {
    pub(super) fn fence(&self) -> Compare {
        Compare::CreatedAt(Key::Node(self.node), self.registered)
    }

    fn attempt(&self, before: &Record, stamp: Stamp) -> Attempt {
        Attempt {
            number: before.task.next_attempt(),
            node: self.node,
            host: self.host,
            node_name: cut(&self.name, AUTHOR_BYTES_MAX),
            fence: Fence(0),
            start: stamp.now,
            end: None,
            cause: None,
            usage: Usage::default(),
        }
    }
}

// === impl Plan ===

impl Plan {
    /// If it fails, the answer also tells whether the claimant is registered as it believes.
    fn fenced(mut self, claimant: &Claimant) -> Self {
        self.txn.otherwise.push(Op::Get(Key::Node(claimant.node)));
        self.also(claimant.fence())
    }

    /// Whether a lost claim was lost because its claimant is not registered any more.
    pub(super) fn is_fenced(&self, answer: &Answer) -> Result<bool, SettleError> {
        let fences = self.txn.compares.iter().find_map(|compare| match compare {
            Compare::CreatedAt(Key::Node(_), registered) => Some(registered),
            _ => None,
        });
        let Some(Revision(registered)) = fences else { return Ok(false) };
        let found = answer.found(1).map_err(SettleError::Answer)?;
        Ok(found.is_none_or(|node| node.create_revision() != *registered))
    }
}
