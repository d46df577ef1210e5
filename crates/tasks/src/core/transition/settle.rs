//! What an answer means for a plan.

use super::{After, Plan};
use crate::core::id::{Revision, TaskId};
use crate::core::record::{Record, RecordError};
use crate::core::txn::{Answer, AnswerError};

/// The transaction answered that a compare did not hold. Nothing else is called so; above all no
/// unknown outcome, after which the same transaction is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{id} was changed by somebody else")]
pub struct ConcurrentTaskModErr {
    pub id: TaskId,
}

/// How a definite answer settles a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The task is as planned; `None` if it was deleted.
    Won(Option<Box<Record>>),
    Lost(Box<Lost>),
}

/// Somebody else was first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub error: ConcurrentTaskModErr,
    /// The task as it is instead; `None` if there is none.
    pub found: Option<Record>,
    /// Whether the claimant's own node key is not what it was: it must fence itself.
    pub is_fenced: bool,
}

/// An answer that settles nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettleError {
    #[error("the answer does not fit the transaction")]
    Answer(#[source] AnswerError),
    #[error("the task that was found instead cannot be read")]
    Found(#[source] RecordError),
}

// === impl Plan ===

impl Plan {
    /// Settles the plan by an answer to its transaction, however often that was sent. On `false` the
    /// answer shows the task as it is: with our own write id, an earlier sending won.
    pub fn settle(&self, answer: &Answer) -> Result<Settled, SettleError> {
        if answer.succeeded {
            return Ok(Settled::Won(self.after_at(answer.revision).map(Box::new)));
        }
        let found = answer.found(0).map_err(SettleError::Answer)?;
        let found = found.map(Record::decode).transpose().map_err(SettleError::Found)?;
        let is_ours = |found: &&Record| Some(found.task.write_id) == self.write_id();
        if let Some(ours) = found.as_ref().filter(is_ours) {
            return Ok(Settled::Won(Some(Box::new(ours.clone()))));
        }
        let is_fenced = self.is_fenced(answer)?;
        let error = ConcurrentTaskModErr { id: self.id };
        Ok(Settled::Lost(Box::new(Lost { error, found, is_fenced })))
    }

    fn after_at(&self, revision: Revision) -> Option<Record> {
        match &self.after {
            After::Deleted => None,
            After::Task(task, created) => {
                Some(Record::new((**task).clone(), revision, created.unwrap_or(revision)))
            }
        }
    }
}
