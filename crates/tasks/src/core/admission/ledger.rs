//! Who has reserved how much. Reserved before a claim is sent, released when it is lost or when the
//! attempt's last process is gone.

use std::collections::{BTreeMap, BTreeSet};

use super::Refused;
use crate::core::amounts::{Amounts, Resource};
use crate::core::id::TaskId;

#[derive(Clone, Debug, Default)]
pub struct Ledger {
    capacity: Amounts,
    reserved: Amounts,
    by_task: BTreeMap<TaskId, Amounts>,
    /// Of these, what the last measurement of the machine cannot show yet.
    unmeasured: BTreeSet<TaskId>,
    /// What a task that waits too long will need, and that others must not take.
    kept_for: Option<(TaskId, Amounts)>,
}

// === impl Ledger ===

impl Ledger {
    #[must_use]
    pub fn new(capacity: Amounts) -> Self {
        Self { capacity, ..Self::default() }
    }

    #[must_use]
    pub fn capacity(&self) -> Amounts {
        self.capacity
    }

    #[must_use]
    pub fn reserved(&self) -> Amounts {
        self.reserved
    }

    #[must_use]
    pub fn free(&self) -> Amounts {
        self.capacity.minus(&self.reserved)
    }

    #[must_use]
    pub fn load(&self) -> f64 {
        self.reserved.share_of(&self.capacity)
    }

    #[must_use]
    pub fn holds(&self, task: TaskId) -> bool {
        self.by_task.contains_key(&task)
    }

    /// The task for which room is kept, if one waits too long.
    #[must_use]
    pub fn kept_for(&self) -> Option<TaskId> {
        self.kept_for.map(|(task, _)| task)
    }

    pub fn keep_for(&mut self, waiting: Option<(TaskId, Amounts)>) {
        self.kept_for = waiting;
    }

    /// Whether the task could be reserved now. Nothing of what a waiting task needs is given to
    /// others, but what it does not need is.
    pub fn check(&self, task: TaskId, demand: &Amounts) -> Result<(), Refused> {
        let kept = match self.kept_for {
            Some((waiting, kept)) if waiting != task => kept,
            _ => Amounts::default(),
        };
        let is_short = |resource: &Resource| {
            let wanted = demand.of(*resource);
            let taken = self.reserved.of(*resource).saturating_add(kept.of(*resource));
            wanted > 0 && taken.saturating_add(wanted) > self.capacity.of(*resource)
        };
        match Resource::ALL.into_iter().find(is_short) {
            Some(resource) => Err(Refused::Reserved(resource)),
            None => Ok(()),
        }
    }

    pub fn reserve(&mut self, task: TaskId, demand: Amounts) -> Result<(), Refused> {
        debug_assert!(!self.holds(task), "a task is reserved for once");
        self.check(task, &demand)?;
        self.by_task.insert(task, demand);
        self.unmeasured.insert(task);
        self.reserved = self.reserved.plus(&demand);
        if self.kept_for() == Some(task) {
            self.kept_for = None;
        }
        Ok(())
    }

    /// The machine was measured.
    pub fn on_measured(&mut self) {
        self.unmeasured.clear();
    }

    /// Memory that was reserved since the machine was measured.
    #[must_use]
    pub fn unmeasured_bytes(&self) -> u64 {
        self.unmeasured.iter().map(|task| self.by_task[task].memory_bytes).sum()
    }

    pub fn release(&mut self, task: TaskId) {
        self.unmeasured.remove(&task);
        if let Some(demand) = self.by_task.remove(&task) {
            self.reserved = self.reserved.minus(&demand);
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn task(number: u128) -> TaskId {
        TaskId(Uuid::from_u128(number))
    }

    fn cpu(cpu_millis: u64) -> Amounts {
        Amounts { cpu_millis, ..Amounts::default() }
    }

    #[test]
    fn does_not_steal_what_does_not_fit() {
        let mut ledger = Ledger::new(cpu(1000));
        ledger.reserve(task(1), cpu(600)).unwrap();
        assert_eq!(ledger.reserve(task(2), cpu(401)), Err(Refused::Reserved(Resource::Cpu)));
        assert_eq!(ledger.reserved(), cpu(600), "a refused task reserves nothing");
        ledger.reserve(task(2), cpu(400)).unwrap();
        ledger.release(task(1));
        ledger.release(task(1));
        assert_eq!(ledger.free(), cpu(600));
        assert!((ledger.load() - 0.4).abs() < f64::EPSILON);
    }

    #[test]
    fn what_was_reserved_since_the_machine_was_measured_is_known() {
        let memory = |memory_bytes| Amounts { memory_bytes, ..Amounts::default() };
        let mut ledger = Ledger::new(memory(100));
        ledger.reserve(task(1), memory(10)).unwrap();
        ledger.on_measured();
        ledger.reserve(task(2), memory(20)).unwrap();
        ledger.reserve(task(3), memory(30)).unwrap();
        assert_eq!(ledger.unmeasured_bytes(), 50);
        ledger.release(task(3));
        ledger.release(task(1));
        assert_eq!(ledger.unmeasured_bytes(), 20);
    }

    #[test]
    fn what_is_kept_for_one_task_is_not_given_to_others() {
        let capacity = Amounts { memory_bytes: 100, ..cpu(1000) };
        let mut ledger = Ledger::new(capacity);
        ledger.reserve(task(1), cpu(500)).unwrap();
        ledger.keep_for(Some((task(2), cpu(800))));
        assert_eq!(ledger.check(task(3), &cpu(1)), Err(Refused::Reserved(Resource::Cpu)));
        let memory = Amounts { memory_bytes: 100, ..Amounts::default() };
        assert_eq!(ledger.check(task(3), &memory), Ok(()), "it does not delay the waiting one");
        assert_eq!(ledger.reserve(task(2), cpu(800)), Err(Refused::Reserved(Resource::Cpu)));
        ledger.release(task(1));
        ledger.reserve(task(2), cpu(800)).unwrap();
        assert_eq!(ledger.kept_for(), None);
        assert_eq!(ledger.check(task(3), &cpu(200)), Ok(()));
    }
}
