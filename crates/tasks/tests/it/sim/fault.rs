//! Mistakes that an implementation could make, made on purpose on the way to the store.

use prost::Message;
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
    for op in &mut txn.then {
        match op {
            Op::Txn(nested) => rename_writes(nested),
            Op::Put(Key::Task(id), value) => {
                let task = wire::Task::decode(value.clone()).expect("the core writes tasks");
                let renamed = wire::Task { write_id: id.to_string(), ..task };
                *value = renamed.encode_to_vec().into();
            }
            _ => {}
        }
    }
}
