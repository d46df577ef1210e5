//! What to do with one object.

use super::{Doing, OVERDUE_EVERY, PARENT_EVERY_MAX, RETRY_AFTER, Work};
use crate::core::handover::{
    Owner, Question, SEEN_MARGIN, Step, Target, Verdict, Wait, judge, judge_child,
    judge_child_outside, judge_orphan,
};
use crate::core::key::{Key, Role};
use crate::core::membership::State;
use crate::core::names::InstanceId;
use crate::core::object::{Object, ObjectName};
use crate::core::partition::Partition;
use crate::core::sharder::Sharder;
use crate::core::sharder::families::Family;
use crate::core::sharder::message::{Command, News};
use crate::core::time::{Now, until};

// === impl Sharder ===

impl Sharder {
    pub(in crate::core::sharder) fn tend_works(&mut self, now: Now) {
        // Without a table nothing can be said about any object.
        if self.membership.table().is_none() {
            return;
        }
        self.works.fill_room(self.options.handover.concurrent_moves, now.mono);
        while self.works.flights.len() < self.writes_max() {
            let Some(name) = self.works.agenda.pop(now.mono) else { return };
            self.judge_work(&name, now);
        }
    }

    fn judge_work(&mut self, name: &ObjectName, now: Now) {
        let Some(work) = self.works.all.get(name) else { return };
        if work.doing.is_some() {
            return;
        }
        if work.must_read {
            return self.reread(name);
        }
        let verdict = match (&work.role, &work.family) {
            (Role::Foreign, _) => judge_orphan(&work.object),
            // Its parent goes by it, and what a list has shown may be from before it was sent elsewhere.
            (_, Family::Following { to }) if work.object.shard.as_ref() == Some(to) => {
                match work.is_confirmed() {
                    true => Verdict::Settled,
                    false => return self.reread(name),
                }
            }
            (_, Family::Following { to }) => Verdict::Write(Step::Follow(to.clone())),
            // It has its owner, and its children are on their way there.
            (_, Family::Listed { .. } | Family::Moving { .. }) if work.object.shard.is_some() => {
                return;
            }
            (Role::Child { .. }, _) if self.options.leaving.contains(&name.kind) => {
                judge_child_outside(&work.object, None)
            }
            (Role::Main { key }, _) => self.verdict(&work.object, key, work.epoch, now),
            (Role::Child { key, parent }, _) => match self.owner_of(&work.object, now) {
                // What is under way may give its parent to that very instance.
                Some(Owner::Gone { .. }) if self.works.is_writing(parent) => {
                    Verdict::Wait(Wait::Parent)
                }
                Some(Owner::Gone { .. }) => self.verdict(&work.object, key, None, now),
                _ => return self.ask_parent(name, now),
            },
        };
        self.carry_out(name, verdict, now);
    }

    /// What is to happen to an object that counts by this key.
    pub(in crate::core::sharder) fn verdict(
        &self,
        object: &Object,
        key: &Key,
        epoch: Option<u64>,
        now: Now,
    ) -> Verdict {
        let is_harmless = self.is_fenced
            || object.shard.as_ref().zip(epoch).is_some_and(|(owner, epoch)| {
                let seen_for = self.roster.seen_for(owner, epoch, now.mono);
                seen_for.is_some_and(|it| it > self.options.handover.grace() + SEEN_MARGIN)
            });
        judge(&Question {
            object,
            target: self.target(&object.name, key, now),
            owner: self.owner_of(object, now),
            force: self.options.handover.force,
            is_harmless,
            now: now.wall,
        })
    }

    pub(in crate::core::sharder) fn target(
        &self,
        name: &ObjectName,
        key: &Key,
        now: Now,
    ) -> Target<'_> {
        if !self.is_selected(name) {
            return Target::Outside;
        }
        match self.table().and_then(|table| table.owner(key)) {
            Some(id) => Target::Instance { id, is_ready: self.is_ready(id, now) },
            None => Target::NoInstance,
        }
    }

    pub(in crate::core::sharder) fn owner_of(&self, object: &Object, now: Now) -> Option<Owner> {
        let id = object.shard.as_ref()?;
        Some(match self.roster.state(id, now) {
            Some(State::Ready) => Owner::Ready,
            Some(State::Unknown | State::Restarting | State::Conflict) => Owner::Silent,
            Some(State::Dead | State::Released | State::Orphan) => {
                let is_free = !self.roster.is_contested(id, now);
                let is_child = !self.options.kinds.main.contains_key(&object.name.kind);
                let object = (&object.name, is_child);
                Owner::Gone { is_held: is_free && self.departures.is_held(id, object, now.mono) }
            }
            // Nobody has heard of it. It is waited for, as if its Lease had vanished.
            None => Owner::Silent,
        })
    }

    pub(super) fn carry_out(&mut self, name: &ObjectName, verdict: Verdict, now: Now) {
        match verdict {
            Verdict::Settled => self.finish(name, now),
            Verdict::Wait(wait) => self.let_wait(name, wait, now),
            Verdict::Write(step) => self.step(name, step, now),
        }
    }

    /// Nothing is left to do with it.
    pub(super) fn finish(&mut self, name: &ObjectName, now: Now) {
        let Some(work) = self.works.remove(name) else { return };
        self.departures.on_done(name);
        self.works.wake_children(name, now.mono);
        match &work.role {
            Role::Child { parent, .. } => self.on_child_done(parent, name, now.mono),
            // What leaves the ring is in no count.
            Role::Main { .. } if self.is_selected(name) => {
                self.census.on_moved((work.origin, work.object.shard), work.is_counted);
            }
            Role::Main { .. } | Role::Foreign => {}
        }
    }

    fn let_wait(&mut self, name: &ObjectName, wait: Wait, now: Now) {
        let is_kept_back = self.is_kept_back(name);
        let Some(work) = self.works.all.get_mut(name) else { return };
        match wait {
            Wait::Acknowledgement { deadline } => {
                let at = now.mono + until(now.wall, deadline);
                self.works.agenda.set(name, at);
            }
            Wait::Overdue => {
                self.works.moving.remove(name);
                work.must_read = true;
                if !work.is_told_overdue
                    && let Some(owner) = work.object.shard.clone()
                {
                    work.is_told_overdue = true;
                    let object = name.clone();
                    self.out.push(Command::Tell(News::Overdue { object, owner }));
                }
                self.works.agenda.set(name, now.mono + OVERDUE_EVERY);
            }
            Wait::Parent => self.wait_for_parent(name, now),
            // A child of it has to go first, and cannot.
            Wait::Hold if is_kept_back => self.stay(name),
            // What stays with its owner need not be remembered: a change of members looks for it.
            Wait::Owner | Wait::Target | Wait::Instance
                if work.object.shard.is_some() && !work.is_draining() =>
            {
                self.passes.add_donors(work.object.shard.clone());
                self.stay(name);
            }
            Wait::Owner | Wait::Target | Wait::Instance | Wait::Hold => {}
        }
    }

    /// It is no longer remembered, and stays with its owner.
    fn stay(&mut self, name: &ObjectName) {
        let Some(work) = self.works.remove(name) else { return };
        self.on_forgotten(&work);
        let owner = work.object.shard;
        if let Some(departed) = owner.and_then(|id| self.departures.get_mut(&id)) {
            departed.on_stayed();
        }
    }

    /// It is still where it was, and no longer on its way.
    pub(super) fn on_forgotten(&mut self, work: &Work) {
        let owner = work.object.shard.clone().filter(|_| work.is_draining());
        if let Some(owner) = owner {
            self.passes.on_overlooked(owner);
        }
    }

    fn is_kept_back(&self, name: &ObjectName) -> bool {
        let owner = self.works.all.get(name).and_then(|work| work.object.shard.as_ref());
        owner.is_some_and(|id| self.departures.is_kept_back(id, name))
    }

    /// What its parent waits for may take long: it is told of the end of that, and asks ever more
    /// rarely besides.
    fn wait_for_parent(&mut self, name: &ObjectName, now: Now) {
        let Some(work) = self.works.all.get_mut(name) else { return };
        let pause = RETRY_AFTER.saturating_mul(1 << work.waits.min(10)).min(PARENT_EVERY_MAX);
        work.waits += 1;
        if let Role::Child { parent, .. } = &work.role {
            let parent = parent.clone();
            self.works.wait_for_parent(parent, name.clone());
        }
        self.works.agenda.set(name, now.mono + pause);
    }

    fn step(&mut self, name: &ObjectName, step: Step, now: Now) {
        self.tell_stray(name, &step);
        match &step {
            Step::Drain if self.works.moving.contains(name) => {}
            Step::Drain if !self.works.may_drain(self.options.handover.concurrent_moves) => {
                self.works.queued.insert(name.clone());
                return;
            }
            Step::Drain => {
                self.works.moving.insert(name.clone());
            }
            Step::Assign(to) if !self.may_assign(name, to, now) => return,
            _ => {}
        }
        self.write(name, step, now);
    }

    /// The server has confirmed that it carries an id it was not given.
    fn tell_stray(&mut self, name: &ObjectName, step: &Step) {
        let Some(work) = self.works.all.get_mut(name) else { return };
        let is_confirmed = std::mem::take(&mut work.is_suspect) && *step == Step::Drain;
        if let Some(carries) = work.object.shard.clone().filter(|_| is_confirmed) {
            self.out.push(Command::Tell(News::Strayed { object: name.clone(), carries }));
        }
    }

    fn write(&mut self, name: &ObjectName, mut step: Step, now: Now) {
        let token = self.token();
        let Some(work) = self.works.all.get_mut(name) else { return };
        // Children may already be with another instance than the table says by now.
        if let (Step::Assign(to), Family::Moved { to: bound }) = (&mut step, &work.family) {
            to.clone_from(bound);
        }
        let change = step.change(now.wall, self.options.handover.drain_timeout());
        if step == Step::Drain {
            self.works.drains.insert(token);
        }
        work.doing = Some((token, Doing::Write(step)));
        let version = work.object.version.clone();
        self.works.flights.insert(token, name.clone());
        self.out.push(Command::WriteObject { token, name: name.clone(), version, change });
    }

    /// A child's owner lives, or it has none: its parent knows, unless that is on its way itself.
    fn ask_parent(&mut self, name: &ObjectName, now: Now) {
        let Some(work) = self.works.all.get(name) else { return };
        let Role::Child { parent, .. } = &work.role else { return };
        let parent = parent.clone();
        if self.works.has(&parent) {
            return self.wait_for_parent(name, now);
        }
        let (token, generation) = (self.token(), self.membership.generation());
        let Some(work) = self.works.all.get_mut(name) else { return };
        work.doing = Some((token, Doing::ReadParent { generation }));
        self.works.flights.insert(token, name.clone());
        self.out.push(Command::ReadObject { token, name: parent });
    }

    pub(super) fn on_parent_read(&mut self, name: &ObjectName, parent: Option<&Object>, now: Now) {
        let Some(work) = self.works.all.get(name) else { return };
        let Role::Child { parent: parent_name, key } = &work.role else { return };
        // While the parent is on its way, or about to be, its children are seen to with it. What was
        // read may be out of date by now, but not if it is what the table wants.
        let target = self.target(parent_name, key, now);
        if target == Target::Outside {
            let verdict = judge_child_outside(&work.object, parent);
            return self.carry_out(name, verdict, now);
        }
        let is_elsewhere = match target {
            // A parent that cannot go where it belongs stays, and a new child is with it.
            Target::Instance { is_ready: false, .. } if work.object.shard.is_none() => false,
            Target::Instance { id, .. } => {
                parent.is_some_and(|parent| parent.shard.as_ref() != Some(id))
            }
            Target::NoInstance | Target::Outside => false,
        };
        let is_on_its_way = is_elsewhere || self.works.all.contains_key(parent_name);
        let verdict = if is_on_its_way {
            Verdict::Wait(Wait::Parent)
        } else {
            judge_child(&work.object, parent, |id: &InstanceId| self.is_ready(id, now))
        };
        self.carry_out(name, verdict, now);
    }

    pub(in crate::core::sharder) fn reread(&mut self, name: &ObjectName) {
        let token = self.token();
        let Some(work) = self.works.all.get_mut(name) else { return };
        work.doing = Some((token, Doing::Read));
        self.works.flights.insert(token, name.clone());
        self.out.push(Command::ReadObject { token, name: name.clone() });
    }
}
