//! Random walks through all transitions, by several nodes that come and go.

use tasks::core::id::TaskId;
use tasks::core::record::{Record, Usage};
use tasks::core::status::Status;
use tasks::core::transition::{
    Claimant, Ending, Plan, Settled, Touch, TransitionError, claim, delete, finish, requeue, touch,
};
use tasks::wire;

use crate::scene::{Scene, exited, flagged, spec};
use chance::Chance;

const SEEDS: std::ops::Range<u64> = 0..60;
const STEPS: usize = 120;

/// Several tasks, several nodes.
struct Walk {
    scene: Scene,
    chance: Chance,
    nodes: Vec<(u32, Claimant)>,
    registered: u32,
    tasks: Vec<TaskId>,
}

#[test]
fn fetch_and_update_keeps_status_keys_in_sync() {
    for seed in SEEDS {
        let mut walk = Walk::new(Chance::new(seed));
        for step in 0..STEPS {
            walk.step();
            let findings = walk.scene.store.fsck();
            assert_eq!(findings, [], "seed {seed}, step {step}");
        }
    }
}

// === impl Walk ===

impl Walk {
    fn new(chance: Chance) -> Self {
        let (scene, nodes, tasks) = (Scene::new(), Vec::new(), Vec::new());
        let mut walk = Self { scene, chance, nodes, registered: 0, tasks };
        walk.join();
        walk
    }

    fn join(&mut self) {
        self.registered += 1;
        self.nodes.push((self.registered, self.scene.register(self.registered)));
    }

    fn step(&mut self) {
        self.scene.pass(20);
        match self.chance.below(12) {
            0 | 1 => self.submit(),
            2 => self.join(),
            3 => self.leave(),
            _ => self.change(),
        }
    }

    fn submit(&mut self) {
        let retries = u32::try_from(self.chance.below(3)).expect("small");
        let asked = if self.chance.once_in(2) { flagged() } else { spec() };
        let record = self.scene.submit(wire::TaskSpec { retries, ..asked });
        self.tasks.push(record.id());
    }

    fn leave(&mut self) {
        if !self.nodes.is_empty() {
            let (number, _) = self.nodes.swap_remove(self.chance.below(self.nodes.len()));
            self.scene.lose(number);
        }
    }

    /// Reads a task and changes it in some way that its status allows. Now and then somebody else is
    /// first, and the change must leave no trace.
    fn change(&mut self) {
        let Some(before) = self.pick() else { return };
        let Ok(Some(plan)) = self.plan(&before) else { return };
        if self.chance.once_in(4)
            && let Ok(Some(first)) = self.plan(&before)
        {
            self.scene.store.settle(&first);
        }
        let revision = self.scene.store.revision();
        if let Settled::Lost(lost) = self.scene.store.settle(&plan) {
            assert_eq!(lost.error.id, before.id());
            assert_eq!(self.scene.store.revision(), revision, "who loses writes nothing");
        }
        if self.scene.store.record(before.id()).is_none() {
            self.tasks.retain(|id| *id != before.id());
        }
    }

    fn pick(&mut self) -> Option<Record> {
        if self.tasks.is_empty() {
            return None;
        }
        let id = *self.chance.pick(&self.tasks);
        self.scene.store.record(id)
    }

    fn plan(&mut self, before: &Record) -> Result<Option<Plan>, TransitionError> {
        let stamp = self.scene.stamp();
        let is_cancel = self.chance.once_in(8) && !before.task.status.is_final();
        if is_cancel {
            return Ok(Some(self.scene.plan_cancel(before)));
        }
        match &before.task.status {
            Status::Queued(_) => {
                let Some((_, by)) = self.nodes.first() else { return Ok(None) };
                claim(before, by, stamp).map(Some)
            }
            Status::Running(_) if self.chance.once_in(4) => requeue(before, stamp).map(Some),
            Status::Running(_) if self.chance.once_in(5) => self.touch(before).map(Some),
            Status::Running(_) => {
                let ending = self.ending();
                finish(before, &self.scene.end(before, ending), stamp).map(Some)
            }
            Status::Canceled(_) if self.chance.once_in(2) => self.touch(before).map(Some),
            _ => delete(before.task.status.key(before.id()), before.modified).map(Some),
        }
    }

    fn touch(&mut self, before: &Record) -> Result<Plan, TransitionError> {
        let id = before.id();
        let host = before.task.last_attempt().ok_or(TransitionError::NotOwner { id })?.host;
        let stopped_at = Some(self.scene.now);
        let added = Touch { host, usage: Usage::default(), stopped_at };
        touch(before, added, self.scene.stamp().write_id)
    }

    fn ending(&mut self) -> Ending {
        match self.chance.below(7) {
            0 => Ending::TimedOut,
            1 => Ending::ScratchExceeded,
            2 => Ending::NeverStarted { message: "no rootfs".to_owned() },
            3 => Ending::HandedBack,
            4 => Ending::Drained,
            5 => exited(1),
            _ => exited(0),
        }
    }
}
