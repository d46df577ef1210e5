//! Requeue: the registration that owned a task is gone, so its attempt is over or dies before it
//! could be claimed again.

use super::finish::owned_by;
use super::{Plan, Stamp, TransitionError, ended};
use crate::core::keys::Key;
use crate::core::record::{Cause, Record, Task};
use crate::core::retry::CLUSTER_RESTARTS_MAX;
use crate::core::spec::Spec;
use crate::core::status::{Failed, FailedReason, Queued, QueuedReason, Status};
use crate::core::time::Epoch;
use crate::core::txn::Compare;

/// Takes a task from a node that is gone. Only a task that asked for it runs again: for others the
/// crash may have fallen after the start.
pub fn requeue(before: &Record, stamp: Stamp) -> Result<Plan, TransitionError> {
    let id = before.id();
    let Some(node) = before.task.status.running().map(|running| running.node) else {
        super::leaving(&before.task, "queued")?;
        let from = before.task.status.as_str();
        return Err(TransitionError::NotFrom { id, from, to: "queued" });
    };
    let spec = before.task.decode_spec().map_err(|source| TransitionError::Spec { id, source })?;
    let plan = Plan::rewrite(before, stamp.write_id, |task| {
        let status = status_after(task, &spec, stamp);
        ended(task, status, Cause::NodeLost, stamp.now);
    })?;
    Ok(plan.also(owned_by(node, id)).also(Compare::Absent(Key::Node(node))))
}

fn status_after(task: &mut Task, spec: &Spec, stamp: Stamp) -> Status {
    let failed = |message: &str| {
        Status::Failed(Failed {
            node: task.status.running().map(|running| running.node),
            reason: FailedReason::NodeLost,
            message: message.to_owned(),
            epoch: Epoch::of(stamp.now),
        })
    };
    if !spec.restart_on_cluster_error {
        return failed("its node was lost, and it may have been started");
    }
    if task.counters.cluster_restarts >= CLUSTER_RESTARTS_MAX {
        return failed("its nodes were lost too often");
    }
    task.counters.cluster_restarts += 1;
    Status::Queued(Queued { not_before: None, reason: QueuedReason::NodeLost })
}
