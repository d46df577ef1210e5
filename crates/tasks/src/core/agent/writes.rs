//! Transactions under way. Each is sent, the same, until its outcome is known: a new one in its place
//! would not recognise what the first one did.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Agent, Command};
use crate::core::id::{AttemptNumber, NodeId, TaskId};
use crate::core::keys::Key;
use crate::core::record::{Record, Usage};
use crate::core::sweep::Listing;
use crate::core::time::{Boottime, Now};
use crate::core::transition::{Batch, BatchOutcome, Plan, SettleError, Settled};
use crate::core::txn::{Answer, Op, Txn};

/// How long after an unknown outcome the same transaction is sent again.
pub const RESEND_AFTER: Duration = Duration::from_millis(200);

/// Names a transaction between agent and shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(pub u64);

#[derive(Debug, Default)]
pub(super) struct Writes {
    under_way: BTreeMap<Token, Write>,
    /// Tasks that a claim is under way for, and those that are read for one: asked of every task of
    /// the queue at every look.
    claiming: BTreeSet<TaskId>,
    sent: u64,
}

#[derive(Debug)]
struct Write {
    txn: Txn,
    purpose: Purpose,
    /// Set while the outcome is unknown.
    resend_at: Option<Boottime>,
}

/// What an answer is for.
#[derive(Debug)]
pub(super) enum Purpose {
    Claim {
        batch: Batch,
    },
    /// The end of an attempt.
    Finish {
        plan: Box<Plan>,
        attempt: AttemptNumber,
    },
    /// What an owner adds to a canceled task. Nobody waits for it.
    Touch,
    Requeue {
        plan: Box<Plan>,
    },
    /// Of tasks that are old enough. What is left is found again.
    Delete,
    /// The record of a task, read for what is to be done with it.
    Read {
        id: TaskId,
        wanted_for: WantedFor,
    },
    Sweep,
    /// The node's own key, with what is reserved.
    Tell {
        node: NodeId,
    },
}

/// Why a record is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WantedFor {
    Claim,
    Finish(AttemptNumber),
    /// A canceled attempt has stopped, after it used so much.
    Touch(AttemptNumber, Usage),
    Requeue,
    /// It is said to run here, and does not.
    Unknown,
}

// === impl Writes ===

impl Writes {
    pub(super) fn is_claiming(&self, id: TaskId) -> bool {
        self.claiming.contains(&id)
    }

    pub(super) fn has_claims(&self) -> bool {
        self.under_way.values().any(|write| matches!(write.purpose, Purpose::Claim { .. }))
    }

    /// Whether anything at all is under way for a task.
    pub(super) fn concerns(&self, id: TaskId) -> bool {
        self.is_claiming(id)
            || self.under_way.values().any(|write| match &write.purpose {
                Purpose::Finish { plan, .. } | Purpose::Requeue { plan } => plan.id == id,
                Purpose::Read { id: read, .. } => *read == id,
                _ => false,
            })
    }

    pub(super) fn is_recording(&self, id: TaskId, attempt: AttemptNumber) -> bool {
        self.under_way.values().any(|write| match &write.purpose {
            Purpose::Finish { plan, attempt: of } => plan.id == id && *of == attempt,
            Purpose::Read { id: read, wanted_for: WantedFor::Finish(of) } => {
                *read == id && *of == attempt
            }
            _ => false,
        })
    }

    pub(super) fn is_taking(&self, id: TaskId) -> bool {
        self.under_way.values().any(|write| match &write.purpose {
            Purpose::Requeue { plan } => plan.id == id,
            Purpose::Read { id: read, wanted_for: WantedFor::Requeue } => *read == id,
            _ => false,
        })
    }

    /// Gives up all claims; what they concern.
    pub(super) fn drop_claims(&mut self) -> BTreeSet<TaskId> {
        self.under_way.retain(|_, write| write.purpose.claims().is_empty());
        std::mem::take(&mut self.claiming)
    }

    fn insert(&mut self, token: Token, write: Write) {
        self.claiming.extend(write.purpose.claims());
        self.under_way.insert(token, write);
    }

    fn remove(&mut self, token: Token) -> Option<Write> {
        let write = self.under_way.remove(&token)?;
        for task in write.purpose.claims() {
            self.claiming.remove(&task);
        }
        Some(write)
    }

    /// Whether it was the node's own key that was to be told.
    pub(super) fn on_unanswered(&mut self, token: Token, now: Boottime) -> bool {
        let Some(write) = self.under_way.get_mut(&token) else { return false };
        if !write.purpose.is_repeated_anyway() {
            write.resend_at = Some(now + RESEND_AFTER);
            return false;
        }
        let dropped = self.remove(token);
        dropped.is_some_and(|write| matches!(write.purpose, Purpose::Tell { .. }))
    }
}

// === impl Purpose ===

impl Purpose {
    /// The tasks it is to claim.
    fn claims(&self) -> Vec<TaskId> {
        match self {
            Self::Claim { batch } => batch.plans.iter().map(|plan| plan.id).collect(),
            Self::Read { id, wanted_for: WantedFor::Claim } => vec![*id],
            _ => Vec::new(),
        }
    }

    /// What is done again before long needs no second sending.
    fn is_repeated_anyway(&self) -> bool {
        matches!(self, Self::Sweep | Self::Tell { .. } | Self::Delete)
    }
}

// === impl Agent ===

impl Agent {
    pub(super) fn send(&mut self, txn: Txn, purpose: Purpose) {
        self.writes.sent += 1;
        let token = Token(self.writes.sent);
        self.commands.push(Command::Send { token, txn: txn.clone() });
        self.writes.insert(token, Write { txn, purpose, resend_at: None });
    }

    pub(super) fn read(&mut self, id: TaskId, wanted_for: WantedFor) {
        let txn = Txn::read(vec![Op::Get(Key::Task(id))]);
        self.send(txn, Purpose::Read { id, wanted_for });
    }

    pub(super) fn resend(&mut self, now: Now) {
        let mut next = None;
        for (token, write) in &mut self.writes.under_way {
            match write.resend_at {
                Some(at) if at <= now.boot => {
                    write.resend_at = None;
                    let (token, txn) = (*token, write.txn.clone());
                    self.commands.push(Command::Send { token, txn });
                }
                Some(at) => next = Some(next.unwrap_or(at).min(at)),
                None => {}
            }
        }
        if let Some(at) = next {
            self.wake_by(at);
        }
    }

    pub(super) fn on_answered(&mut self, now: Now, token: Token, answer: &Answer) {
        // Claims are given up when the node is fenced; their answers come too late.
        let Some(write) = self.writes.remove(token) else { return };
        match write.purpose {
            Purpose::Claim { batch } => self.on_claimed(now, &batch, answer),
            Purpose::Finish { plan, attempt } => {
                self.on_finished(now, &plan, attempt, plan.settle(answer));
            }
            Purpose::Touch | Purpose::Delete => {}
            Purpose::Requeue { plan } => self.on_requeued(now, plan.id),
            Purpose::Read { id, wanted_for } => self.on_read(now, id, wanted_for, answer),
            Purpose::Sweep => self.on_swept(Listing::new(answer)),
            Purpose::Tell { node } => self.on_told(node, answer),
        }
    }

    fn on_claimed(&mut self, now: Now, batch: &Batch, answer: &Answer) {
        match batch.settle(answer) {
            BatchOutcome::Settled(settled) => {
                for (plan, settled) in batch.plans.iter().zip(settled) {
                    self.on_claim_settled(now, plan.id, settled);
                }
            }
            BatchOutcome::Fenced => {
                batch.plans.iter().for_each(|plan| self.ledger.release(plan.id));
                self.fence();
            }
        }
    }

    fn on_claim_settled(&mut self, now: Now, id: TaskId, settled: Result<Settled, SettleError>) {
        match settled {
            Ok(Settled::Won(Some(record))) => self.on_won(now, *record),
            Ok(Settled::Won(None)) => self.ledger.release(id),
            Ok(Settled::Lost(lost)) => {
                self.ledger.release(id);
                if lost.is_fenced {
                    self.fence();
                }
            }
            // What was found instead is no record of ours. Should the claim hold all the same, the
            // next sweep finds a task that was never started here.
            Err(SettleError::Answer(_) | SettleError::Found(_)) => self.ledger.release(id),
        }
    }

    fn on_read(&mut self, now: Now, id: TaskId, wanted_for: WantedFor, answer: &Answer) {
        let found = answer.found(0).map_err(SettleError::Answer);
        let found =
            found.and_then(|kv| kv.map(Record::decode).transpose().map_err(SettleError::Found));
        if let WantedFor::Finish(attempt) = wanted_for {
            return self.on_read_for_finish(now, id, attempt, found);
        }
        // Nothing is lost for the others: whoever cannot read the task does nothing with it.
        let record = found.unwrap_or(None);
        match wanted_for {
            WantedFor::Finish(_) => unreachable!("it was taken before"),
            WantedFor::Claim => self.on_read_for_claim(now, id, record),
            WantedFor::Touch(attempt, usage) => self.on_read_for_touch(now, record, attempt, usage),
            WantedFor::Requeue => self.on_read_for_requeue(now, id, record),
            WantedFor::Unknown => self.on_read_for_unknown(now, record),
        }
    }
}
