//! Which queued tasks this node could ever run, in the order of the queue: those that are due, and
//! those that a backoff keeps. Whatever else lies in the queue costs no look, however much it is.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::core::cache::{Phase, Place, Summary};
use crate::core::id::TaskId;
use crate::core::node::Node;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    tasks: BTreeMap<TaskId, (Place, Option<Timestamp>)>,
    due: BTreeSet<Place>,
    delayed: BTreeSet<(Timestamp, TaskId)>,
    /// Of the last look.
    looked_at: Timestamp,
}

// === impl Backlog ===

impl Backlog {
    /// A task is new or different; `None`: nothing is known of it any more.
    pub(super) fn on_task(&mut self, me: &Node, id: TaskId, summary: Option<&Summary>) {
        if let Some((place, not_before)) = self.tasks.remove(&id) {
            self.due.remove(&place);
            if let Some(at) = not_before {
                self.delayed.remove(&(at, id));
            }
        }
        let Some(summary) = summary else { return };
        let Phase::Queued { not_before } = summary.phase else { return };
        if me.weight(&summary.requirements) > 0 {
            self.tasks.insert(id, (summary.place(), not_before));
            match not_before {
                Some(at) => drop(self.delayed.insert((at, id))),
                None => drop(self.due.insert(summary.place())),
            }
        }
    }

    /// Time has passed, or a clock was set back.
    pub(super) fn look(&mut self, now: Timestamp) {
        if now < self.looked_at {
            let delayed = self.tasks.iter().filter_map(|(id, (_, at))| Some(((*at)?, *id)));
            self.delayed = delayed.collect();
            let tasks = &self.tasks;
            self.due.retain(|place| tasks[&place.task].1.is_none());
        }
        self.looked_at = now;
        while let Some(&(at, id)) = self.delayed.first().filter(|(at, _)| *at <= now) {
            self.delayed.remove(&(at, id));
            self.due.insert(self.tasks[&id].0);
        }
    }

    /// As of the last look: higher priority first, then older first.
    pub(super) fn due(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.due.iter().map(|place| place.task)
    }

    /// When the next backoff ends.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.delayed.first().map(|(at, _)| *at)
    }
}
