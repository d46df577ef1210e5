//! What became of a request about an object.

use super::{Doing, FAILURES_MAX, REFUSALS_MAX, REREADS_MAX, RETRY_AFTER, RETRY_MAX, Work};
use crate::core::handover::{Owner, Step};
use crate::core::key::Role;
use crate::core::names::InstanceId;
use crate::core::object::{Object, ObjectName};
use crate::core::sharder::Sharder;
use crate::core::sharder::families::Family;
use crate::core::sharder::message::{Answer, Command, News, Token};
use crate::core::time::Now;

// === impl Sharder ===

impl Sharder {
    pub(in crate::core::sharder) fn on_work_answered(
        &mut self,
        now: Now,
        token: Token,
        answer: Answer,
    ) {
        let Some(name) = self.works.flights.remove(&token) else { return };
        self.works.drains.remove(&token);
        let Some(work) = self.works.all.get_mut(&name) else { return };
        let Some((_, doing)) = work.doing.take_if(|(asked, _)| *asked == token) else { return };
        if matches!(doing, Doing::Write(_)) {
            self.works.wake_children(&name, now.mono);
        }
        let Some(work) = self.works.all.get_mut(&name) else { return };
        match (doing, answer) {
            (Doing::ReadParent { generation }, _) if generation != self.membership.generation() => {
                self.works.look_at(&name, now.mono);
            }
            (Doing::ReadParent { .. }, Answer::Object(parent)) => {
                self.on_parent_read(&name, Some(&parent), now);
            }
            (Doing::ReadParent { .. }, Answer::Gone) => self.on_parent_read(&name, None, now),
            (Doing::Write(step), Answer::Object(object)) => {
                self.on_written(&name, &step, *object, now);
            }
            (Doing::Read, Answer::Object(object)) => {
                let from = work.object.shard.clone();
                self.works.on_told(&name, *object);
                self.note_taken(&name, from);
                let Some(work) = self.works.all.get_mut(&name) else { return };
                // Somebody of the ring may have adopted an orphan meanwhile.
                if work.role == Role::Foreign {
                    work.role = self.options.kinds.role(&work.object);
                }
                // A drain that was thought to have failed was written after all.
                if work.is_draining() {
                    self.works.moving.insert(name.clone());
                }
                self.works.look_at(&name, now.mono);
            }
            (_, Answer::Gone) => self.finish(&name, now),
            (doing, Answer::Conflict) => self.on_conflict(&name, &doing, now),
            (doing, Answer::Refused) => {
                work.refusals += 1;
                self.on_failed(&name, &doing, now);
            }
            (doing, _) => self.on_failed(&name, &doing, now),
        }
    }

    fn on_written(&mut self, name: &ObjectName, step: &Step, object: Object, now: Now) {
        let Some(work) = self.works.all.get_mut(name) else { return };
        (work.rereads, work.failures, work.refusals) = (0, 0, 0);
        let from = work.object.shard.clone();
        let from_before = from.clone();
        self.works.on_told(name, object);
        self.note_taken(name, from.clone());
        let object = name.clone();
        let news = match (step, from) {
            (Step::Assign(_), _) => Some(News::Assigned { object }),
            (Step::Force(_) | Step::TakeOver(_), Some(from)) => Some(News::Moved { object, from }),
            _ => None,
        };
        if let (Step::Force(_), Some(from)) = (step, from_before.clone()) {
            self.out.push(Command::Tell(News::Forced { object: name.clone(), from }));
        }
        self.out.extend(news.map(Command::Tell));
        if let Step::Force(Some(to)) = step {
            let from = self.whose_children(from_before);
            self.works.gather_children(name, to, from);
        }
        if !matches!(step, Step::Drain) && self.works.all[name].object.drain.is_none() {
            self.works.moving.remove(name);
        }
        self.works.look_at(name, now.mono);
    }

    /// It may have been taken from an instance that is gone. Children went where the table of that time
    /// sent them, and it may have turned before their parent went.
    fn note_taken(&mut self, name: &ObjectName, from: Option<InstanceId>) {
        let (Some(work), Some(from)) = (self.works.all.get(name), from) else { return };
        let to = work.object.shard.clone();
        match (&work.role, &work.family) {
            _ if to.as_ref() == Some(&from) => {}
            (_, Family::Following { .. }) => {}
            (Role::Child { .. }, _) => self.passes.on_split(from),
            (Role::Main { .. }, _) if self.passes.is_split(&from) => {
                to.into_iter().for_each(|to| self.passes.on_split(to));
            }
            _ => {}
        }
    }

    /// Read again at once, a few times; then it has to wait.
    fn on_conflict(&mut self, name: &ObjectName, doing: &Doing, now: Now) {
        let Some(work) = self.works.all.get_mut(name) else { return };
        work.rereads += 1;
        if work.rereads <= REREADS_MAX {
            return self.reread(name);
        }
        work.rereads = 0;
        self.on_failed(name, doing, now);
    }

    /// Nobody knows what became of it: what is there is read, when some time has passed.
    fn on_failed(&mut self, name: &ObjectName, doing: &Doing, now: Now) {
        let Some(work) = self.works.all.get_mut(name) else { return };
        let pause = work.pause();
        work.failures += 1;
        work.must_read = true;
        // While it waits, others may be drained.
        if *doing == Doing::Write(Step::Drain) {
            self.works.moving.remove(name);
        }
        if !self.leave_alone(name, now) {
            self.works.look_at(name, now.mono + pause);
        }
    }

    /// Leaves what an instance that is gone has where it is, if it cannot be written for long enough.
    fn leave_alone(&mut self, name: &ObjectName, now: Now) -> bool {
        let Some(work) = self.works.all.get(name).filter(|work| work.role != Role::Foreign) else {
            return false;
        };
        let is_hopeless = work.failures >= FAILURES_MAX || work.refusals >= REFUSALS_MAX;
        let is_gone = matches!(self.owner_of(&work.object, now), Some(Owner::Gone { .. }));
        let owner = work.object.shard.clone().filter(|_| is_hopeless && is_gone);
        let Some(owner) = owner else { return false };
        let parent = match &work.role {
            Role::Child { parent, .. } => Some(parent.clone()),
            Role::Main { .. } | Role::Foreign => None,
        };
        if let Some(work) = self.works.remove(name) {
            self.on_forgotten(&work);
        }
        // One that is nobody's need not be so for as long as its child cannot be written.
        if let Some(parent) = &parent {
            self.on_child_done(parent, name, now.mono);
            self.works.look_at(parent, now.mono);
        }
        self.departures.on_refused(name.clone(), (owner.clone(), parent));
        self.out.push(Command::Tell(News::Stuck { object: name.clone(), owner }));
        // Sooner than everything would be looked for otherwise, but no sooner than it would be tried.
        self.passes.resync_at = self.passes.resync_at.min(now.mono + RETRY_MAX);
        true
    }
}

// === impl Work ===

impl Work {
    fn pause(&self) -> std::time::Duration {
        RETRY_AFTER.saturating_mul(1 << self.failures.min(10)).min(RETRY_MAX)
    }
}
