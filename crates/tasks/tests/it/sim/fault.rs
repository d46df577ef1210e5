//! Mistakes that an implementation could make, made on purpose on the way to the store.

use prost::Message;
use tasks::core::id::TaskId;
use tasks::core::keys::{Key, StatusKey};
use tasks::core::txn::{Compare, Op, Txn};
use tasks::wire;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Claims do not compare when the node's key was created.
    ClaimWithoutFence,
    /// Requeues do not compare that the node's key is absent.
    RequeueFromLiveNode,
    /// Ends are recorded whoever owns the task. Comparing the revision would do as well, so it goes
    /// with the compare of the status key: as if the task had been read again and not looked at.
    CompletionByStaleOwner,
    /// After an unknown outcome another transaction is sent, which does not know the first one's
    /// write id.
    ResendWithNewWriteId,
    /// A task may be started from when it was submitted on, by the clock of whom it was submitted to.
    QueuedByTheClock,
}

// === impl Fault ===

impl Fault {
    /// What reaches the store instead of `txn`.
    pub(crate) fn tamper(self, txn: &Txn, is_first_sending: bool) -> Txn {
        let mut txn = txn.clone();
        match self {
            Self::ClaimWithoutFence if is_claim(&txn) => txn.compares.clear(),
            Self::RequeueFromLiveNode => {
                txn.compares.retain(|compare| !matches!(compare, Compare::Absent(Key::Node(_))));
            }
            Self::CompletionByStaleOwner if is_completion(&txn) => txn.compares.clear(),
            Self::ResendWithNewWriteId if is_first_sending => rename_writes(&mut txn),
            _ => {}
        }
        txn
    }

    /// What reaches the store instead of a client's `txn`.
    pub(crate) fn tamper_with_submit(self, txn: &Txn) -> Txn {
        let mut txn = txn.clone();
        if self == Self::QueuedByTheClock {
            rewrite(&mut txn, |_, task| {
                let not_before_ms = task.submitted_at_ms;
                let queued = wire::Queued { not_before_ms, ..Default::default() };
                task.status =
                    Some(wire::Status { status: Some(wire::status::Status::Queued(queued)) });
            });
        }
        txn
    }
}

fn is_claim(txn: &Txn) -> bool {
    let is_nested = txn.then.iter().any(|op| matches!(op, Op::Txn(_)));
    is_nested && matches!(txn.compares[..], [Compare::CreatedAt(Key::Node(_), _)])
}

fn is_completion(txn: &Txn) -> bool {
    let has = |wanted: fn(&Compare) -> bool| txn.compares.iter().any(wanted);
    has(|compare| matches!(compare, Compare::Exists(Key::Status(StatusKey::Running(..)))))
        && !has(|compare| matches!(compare, Compare::Absent(_)))
}

/// Gives every task that is written another write id, as if an earlier plan had been sent.
fn rename_writes(txn: &mut Txn) {
    rewrite(txn, |id, task| task.write_id = id.to_string());
}

fn rewrite(txn: &mut Txn, change: fn(TaskId, &mut wire::Task)) {
    for op in &mut txn.then {
        match op {
            Op::Txn(nested) => rewrite(nested, change),
            Op::Put(Key::Task(id), value) => {
                let mut task = wire::Task::decode(value.clone()).expect("the core writes tasks");
                change(*id, &mut task);
                *value = task.encode_to_vec().into();
            }
            _ => {}
        }
    }
}
