//! Clients submit and cancel, through any of the hosts: its clock is the one that counts. Their own
//! connections are good: what they meet is in other tests.

use tasks::core::id::TaskId;
use tasks::core::transition::{CancelStep, Stamp, Submission, cancel, submit};
use tasks::wire;

use super::World;
use crate::scene;

// === impl World ===

impl World {
    pub(super) fn submit(&mut self) {
        let restart_on_cluster_error = self.chance.once_in(2);
        let cpu_millis = Some(100 * (1 + self.chance.number() % 6));
        let resources = Some(wire::Resources { cpu_millis, ..Default::default() });
        let spec = wire::TaskSpec { restart_on_cluster_error, resources, ..scene::spec() };
        let stamp = self.stamp();
        let fresh_id = TaskId(stamp.write_id.0);
        let submission = Submission { spec, fresh_id, by: "tests".to_owned() };
        let mut plan = submit(submission, stamp).expect("a valid spec");
        if let Some(fault) = self.plot.fault {
            plan.txn = fault.tamper_with_submit(&plan.txn);
        }
        self.store.win(&plan);
        self.tasks.push(plan.id);
        if restart_on_cluster_error {
            self.promises.flagged.insert(plan.id);
        }
        self.publish();
    }

    pub(super) fn cancel(&mut self) {
        if self.tasks.is_empty() {
            return;
        }
        let id = *self.chance.pick(&self.tasks);
        let stamp = self.stamp();
        let Some(record) = self.store.record(id) else { return };
        if let Ok(CancelStep::Write(plan)) = cancel(&record, "tests", stamp) {
            self.store.win(&plan);
            self.promises.canceled.insert(id);
            self.publish();
        }
    }

    fn stamp(&mut self) -> Stamp {
        let host = self.chance.below(self.hosts.len());
        Stamp { now: self.hosts[host].now(self.now).wall, write_id: self.ids.write() }
    }
}
