//! Several plans in one request, each with its own result.

use super::claim::Claimant;
use super::{Plan, SettleError, Settled};
use crate::core::keys::Key;
use crate::core::txn::{Answer, Op, Txn};

/// The store counts the operations of a request by its deepest path, 128 at most; each plan has three.
pub const BATCH_PLANS_MAX: usize = 100;
/// The store takes requests of 1.5 MiB.
pub const BATCH_BYTES_MAX: usize = 1 << 20;

/// Plans for different tasks, to be sent at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub plans: Vec<Plan>,
    pub txn: Txn,
}

/// How an answer settles a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchOutcome {
    /// One per plan: an answer that settles nothing for one of them is nothing to the others.
    Settled(Vec<Result<Settled, SettleError>>),
    /// The claimant is not registered any more; nothing was written.
    Fenced,
}

// === impl Batch ===

impl Batch {
    /// Claims of one node. The fence is compared once, for all.
    #[must_use]
    pub fn of_claims(plans: Vec<Plan>, claimant: &Claimant) -> Self {
        let fence = claimant.fence();
        let unfenced = |plan: &Plan| {
            let mut txn = plan.txn.clone();
            txn.compares.retain(|compare| *compare != fence);
            Op::Txn(txn)
        };
        let then = plans.iter().map(unfenced).collect();
        let otherwise = vec![Op::Get(Key::Node(claimant.node))];
        Self { txn: Txn { compares: vec![fence], then, otherwise }, plans }
    }

    /// As many batches as the bounds of a request demand. The plans are of different tasks, because
    /// a key can be put only once per request.
    #[must_use]
    pub fn split(plans: Vec<Plan>) -> Vec<Self> {
        let mut batches = Vec::new();
        let (mut gathered, mut bytes) = (Vec::new(), 0);
        for plan in plans {
            let added = plan.txn.bytes();
            let is_full = gathered.len() == BATCH_PLANS_MAX || bytes + added > BATCH_BYTES_MAX;
            if is_full && !gathered.is_empty() {
                batches.push(Self::of(std::mem::take(&mut gathered)));
                bytes = 0;
            }
            bytes += added;
            gathered.push(plan);
        }
        if !gathered.is_empty() {
            batches.push(Self::of(gathered));
        }
        batches
    }

    fn of(plans: Vec<Plan>) -> Self {
        let then = plans.iter().map(|plan| Op::Txn(plan.txn.clone())).collect();
        Self { txn: Txn::read(then), plans }
    }

    #[must_use]
    pub fn settle(&self, answer: &Answer) -> BatchOutcome {
        if !answer.succeeded {
            return BatchOutcome::Fenced;
        }
        let settle = |(index, plan): (usize, &Plan)| {
            plan.settle(answer.nested(index).map_err(SettleError::Answer)?)
        };
        BatchOutcome::Settled(self.plans.iter().enumerate().map(settle).collect())
    }
}
