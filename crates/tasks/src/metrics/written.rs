//! Reads off a transaction and its answer what was written: claims won and lost, changes of status.

use bytes::Bytes;
use etcd_api::mvccpb::{KeyValue, KeyValueParts};
use jiff::Timestamp;

use super::{ByCause, ByResult, ByStatus, Metrics};
use crate::core::keys::{Key, StatusKey};
use crate::core::record::{Record, Task};
use crate::core::status::{QueuedReason, Status};
use crate::core::time::until;
use crate::core::txn::{Answer, Compare, Op, Txn};

// === impl Metrics ===

impl Metrics {
    /// A transaction of this node has its answer.
    pub(crate) fn on_answered(&self, txn: &Txn, answer: &Answer) {
        let is_claim = is_claim(txn);
        if is_claim && !answer.succeeded {
            self.count_claims("fenced", txn.then.len());
        }
        if !answer.succeeded {
            return;
        }
        self.count_ops(&txn.then);
        for (index, op) in txn.then.iter().enumerate() {
            let (Op::Txn(nested), Ok(answer)) = (op, answer.nested(index)) else { continue };
            if answer.succeeded {
                self.count_ops(&nested.then);
            }
            if is_claim {
                self.count_claims(if answer.succeeded { "won" } else { "lost" }, 1);
            }
        }
    }

    pub(crate) fn on_unanswered(&self, txn: &Txn) {
        if is_claim(txn) {
            self.count_claims("unknown", txn.then.len());
        }
    }

    fn count_claims(&self, result: &'static str, claims: usize) {
        let claims = u64::try_from(claims).unwrap_or(u64::MAX);
        self.claims.get_or_create(&ByResult { result }).inc_by(claims);
    }

    fn count_ops(&self, ops: &[Op]) {
        let task = ops.iter().find_map(|op| match op {
            Op::Put(key @ Key::Task(_), value) => decode(*key, value),
            _ => None,
        });
        for op in ops {
            match op {
                Op::Put(Key::Status(key), _) => self.count_status(*key, task.as_ref()),
                Op::Delete(Key::Task(_)) => self.on_deleted(1),
                _ => {}
            }
        }
    }

    fn count_status(&self, key: StatusKey, task: Option<&Task>) {
        let to = match key {
            StatusKey::Queued(_) => "queued",
            StatusKey::Running(..) => "running",
            StatusKey::Ended(end, ..) => end.as_str(),
        };
        self.transitions.get_or_create(&ByStatus { to }).inc();
        let Some(task) = task else { return };
        match &task.status {
            Status::Queued(queued) => {
                let cause = cause(queued.reason);
                self.requeued.get_or_create(&ByCause { cause }).inc();
            }
            Status::Running(running) => {
                let waited = until(queued_at(task), running.since);
                self.queue_seconds.observe(waited.as_secs_f64());
            }
            Status::Complete(_) | Status::Canceled(_) | Status::Failed(_) => {}
        }
    }
}

/// Only claims compare the node's own key and write several tasks.
fn is_claim(txn: &Txn) -> bool {
    let is_fenced = matches!(txn.compares.as_slice(), [Compare::CreatedAt(Key::Node(_), _)]);
    is_fenced && txn.then.iter().all(|op| matches!(op, Op::Txn(_)))
}

fn decode(key: Key, value: &Bytes) -> Option<Task> {
    let (key, value) = (&key.to_bytes()[..], &value[..]);
    let kv = KeyValue::new(&KeyValueParts { key, value, ..Default::default() });
    Record::decode(&kv).ok().map(|record| record.task)
}

/// When a task that is claimed came into the queue: when it was submitted, or when the attempt before
/// ended.
fn queued_at(task: &Task) -> Timestamp {
    let before = task.attempts.iter().rev().nth(1);
    before.and_then(|attempt| attempt.end).unwrap_or(task.submitted_at)
}

fn cause(reason: QueuedReason) -> &'static str {
    match reason {
        QueuedReason::Submitted => "submitted",
        QueuedReason::ExitRetry => "exit_retry",
        QueuedReason::StartFailed => "start_failed",
        QueuedReason::HandedBack => "handed_back",
        QueuedReason::NodeLost => "node_lost",
        QueuedReason::Drained => "drained",
    }
}
