//! What an earlier process left in the data directory, in the words of the agent.

use sandbox::AttemptId;
use uuid::Uuid;

use super::runs;
use crate::core::agent::{Leftovers, Report};
use crate::core::id::{AttemptNumber, NodeId, TaskId};
use crate::core::record::Usage;
use crate::core::transition::Finished;
use crate::core::txn::LeaseId;

/// What to keep with an attempt: the registration that claimed it.
pub(super) fn note(node: NodeId) -> Vec<u8> {
    node.0.as_bytes().to_vec()
}

/// What to keep for the next start: the lease that is to be given up then.
pub(super) fn remembrance(lease: LeaseId) -> Vec<u8> {
    lease.0.to_be_bytes().to_vec()
}

/// What the agent is to know, and all attempts of which there is a result on disk.
pub(super) fn read(left: sandbox::Leftovers) -> (Leftovers, Vec<AttemptId>) {
    let lease = left.remembered.and_then(|bytes| bytes.try_into().ok());
    let lease = lease.map(|bytes| LeaseId(i64::from_be_bytes(bytes)));
    let results = left.ended.iter().map(|leftover| leftover.id).collect();
    let killed = left.killed.into_iter().map(|id| {
        let (task, attempt) = named(id);
        (task, attempt, Usage::default())
    });
    let mut leftovers = Leftovers { lease, stopped: killed.collect(), ..Leftovers::default() };
    for leftover in left.ended {
        let ((task, attempt), node) = (named(leftover.id), Uuid::from_slice(&leftover.note));
        match (runs::report(leftover.ended), node.map(NodeId)) {
            (Report::Ended(ending, usage), Ok(node)) => {
                leftovers.ended.push((task, Finished { node, attempt, ending, usage }));
            }
            (Report::Stopped(usage), _) => leftovers.stopped.push((task, attempt, usage)),
            (Report::StoppedBeforeStart, _) => {
                leftovers.stopped.push((task, attempt, Usage::default()));
            }
            // Its note is another program's.
            (Report::Ended(..), Err(_)) => {}
        }
    }
    (leftovers, results)
}

fn named(id: AttemptId) -> (TaskId, AttemptNumber) {
    (TaskId(id.task), AttemptNumber(id.number))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sandbox::host::Leftover;
    use sandbox::log::Volume;
    use sandbox::{Ended, Exit, Outcome};

    use super::*;
    use crate::core::transition::Ending;

    fn leftover(number: u32, note: Vec<u8>, outcome: Outcome) -> Leftover {
        let usage = sandbox::Usage { peak_memory_bytes: 5, cpu: Duration::from_millis(7) };
        let id = AttemptId { task: Uuid::from_u128(1), number };
        Leftover { id, note, ended: Ended { outcome, usage, log: Volume::default() } }
    }

    #[test]
    fn results_are_published_for_whom_they_belong_to() {
        let node = NodeId(Uuid::from_u128(9));
        let exited = Outcome::Exited { exit: Exit::Code(3), is_oom_killed: false };
        let left = sandbox::Leftovers {
            ended: vec![
                leftover(1, note(node), exited.clone()),
                leftover(2, note(node), Outcome::Stopped),
                leftover(3, b"what?".to_vec(), exited),
            ],
            killed: vec![AttemptId { task: Uuid::from_u128(1), number: 4 }],
            remembered: Some(remembrance(LeaseId(-77))),
        };
        let (leftovers, results) = read(left);
        assert_eq!(leftovers.lease, Some(LeaseId(-77)));
        assert_eq!(results.len(), 3, "all are forgotten in the end");
        let stopped: Vec<(u32, u64)> =
            leftovers.stopped.iter().map(|(_, attempt, usage)| (attempt.0, usage.cpu_ms)).collect();
        assert_eq!(stopped, [(4, 0), (2, 7)]);
        let [(task, finished)] = leftovers.ended.as_slice() else { panic!("one is published") };
        assert_eq!((task.0.as_u128(), finished.node, finished.attempt.0), (1, node, 1));
        assert!(matches!(finished.ending, Ending::Exited(exit) if exit.code == 3));
        assert_eq!((finished.usage.peak_memory_bytes, finished.usage.cpu_ms), (5, 7));
    }

    #[test]
    fn an_empty_directory_has_nothing_to_tell() {
        let (leftovers, results) = read(sandbox::Leftovers::default());
        assert!(leftovers.ended.is_empty() && leftovers.stopped.is_empty());
        assert!(leftovers.lease.is_none() && results.is_empty());
    }
}
