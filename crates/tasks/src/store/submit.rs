//! Submitting: one task, or many at once with a result each.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::{Error, Store};
use crate::core::id::TaskId;
use crate::core::transition::{
    Batch, BatchOutcome, Plan, Settled, Submission, SubmitError, resubmitted, submit,
};
use crate::wire;

/// A task that is in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    pub id: TaskId,
    /// An earlier submit with the same idempotency key and spec put it there.
    pub is_repeated: bool,
}

/// Why a task is not known to be in the store.
#[derive(Debug, thiserror::Error)]
pub enum SubmitFailed {
    #[error("the task is refused")]
    Refused(#[source] SubmitError),
    #[error("the task could not be stored")]
    Store(#[source] Error),
    /// It is in the store and has ended already, or was deleted, between two sendings.
    #[error("{0} was there and is gone")]
    Gone(TaskId),
    /// Other tasks of the batch went the same way.
    #[error("the tasks could not be stored")]
    Batch(#[source] std::sync::Arc<Error>),
}

/// A task of a batch on its way.
struct Waiting {
    index: usize,
    plan: Plan,
}

// === impl Store ===

impl Store {
    /// Puts a task into the queue. With an idempotency key, repeating it is safe whatever happened;
    /// without one, an unknown outcome may leave a task behind.
    pub async fn submit(
        &self,
        spec: wire::TaskSpec,
        by: &str,
        until: Instant,
    ) -> Result<Submitted, SubmitFailed> {
        let plan = self.plan_submit(spec, by).map_err(SubmitFailed::Refused)?;
        let settled = self.settle(&plan, until).await.map_err(SubmitFailed::Store)?;
        submitted(&plan, settled)
    }

    /// Puts many tasks into the queue, in few requests. One result per spec, in their order; a refusal
    /// of one is nothing to the others.
    pub async fn submit_all(
        &self,
        specs: Vec<wire::TaskSpec>,
        by: &str,
        until: Instant,
    ) -> Vec<Result<Submitted, SubmitFailed>> {
        let mut results: Vec<Option<Result<Submitted, SubmitFailed>>> = Vec::new();
        let mut waiting = Vec::new();
        for (index, spec) in specs.into_iter().enumerate() {
            match self.plan_submit(spec, by) {
                Ok(plan) => {
                    waiting.push(Waiting { index, plan });
                    results.push(None);
                }
                Err(refused) => results.push(Some(Err(SubmitFailed::Refused(refused)))),
            }
        }
        while !waiting.is_empty() {
            let round;
            (round, waiting) = distinct(waiting);
            for (index, result) in self.submit_round(round, until).await {
                results[index] = Some(result);
            }
        }
        results.into_iter().map(|result| result.expect("every round answers all of it")).collect()
    }

    async fn submit_round(
        &self,
        round: Vec<Waiting>,
        until: Instant,
    ) -> Vec<(usize, Result<Submitted, SubmitFailed>)> {
        let (mut indexes, plans): (Vec<usize>, Vec<Plan>) =
            round.into_iter().map(|waiting| (waiting.index, waiting.plan)).unzip();
        let mut results = Vec::new();
        for batch in Batch::split(plans) {
            let rest = indexes.split_off(batch.plans.len());
            let settled = self.submit_batch(&batch, until).await;
            results.extend(std::mem::replace(&mut indexes, rest).into_iter().zip(settled));
        }
        results
    }

    async fn submit_batch(
        &self,
        batch: &Batch,
        until: Instant,
    ) -> Vec<Result<Submitted, SubmitFailed>> {
        let answer = match self.insist(&batch.txn, until).await {
            Ok(answer) => answer,
            Err(error) => {
                let error = std::sync::Arc::new(error);
                return batch
                    .plans
                    .iter()
                    .map(|_| Err(SubmitFailed::Batch(error.clone())))
                    .collect();
            }
        };
        let BatchOutcome::Settled(settled) = batch.settle(&answer) else {
            unreachable!("only claims have a fence")
        };
        let unsettled = |error| SubmitFailed::Store(Error::Settle(error));
        let results = batch.plans.iter().zip(settled);
        results.map(|(plan, each)| submitted(plan, each.map_err(unsettled)?)).collect()
    }

    fn plan_submit(&self, spec: wire::TaskSpec, by: &str) -> Result<Plan, SubmitError> {
        let stamp = self.stamp();
        let fresh_id = TaskId::at(stamp.now, rand::random());
        submit(Submission { spec, fresh_id, by: by.to_owned() }, stamp)
    }
}

/// A key can be put only once per request: those whose task is in the round already come later, and
/// find it.
fn distinct(waiting: Vec<Waiting>) -> (Vec<Waiting>, Vec<Waiting>) {
    let mut seen = BTreeSet::new();
    waiting.into_iter().partition(|waiting| seen.insert(waiting.plan.id))
}

fn submitted(plan: &Plan, settled: Settled) -> Result<Submitted, SubmitFailed> {
    match settled {
        Settled::Won(_) => Ok(Submitted { id: plan.id, is_repeated: false }),
        Settled::Lost(lost) => {
            let found = lost.found.ok_or(SubmitFailed::Gone(plan.id))?;
            let earlier = resubmitted(plan, &found).map_err(SubmitFailed::Refused)?;
            Ok(Submitted { id: earlier.id, is_repeated: true })
        }
    }
}
