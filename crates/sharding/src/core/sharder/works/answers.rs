//! What became of a request about an object.

use super::{Doing, REREADS_MAX, RETRY_AFTER, RETRY_MAX, Work};
use crate::core::handover::Step;
use crate::core::key::Role;
use crate::core::object::{Object, ObjectName};
use crate::core::sharder::Sharder;
use crate::core::sharder::message::{Answer, Command, News, Token};
use crate::core::time::{Moment, Now};

// === impl Sharder ===

impl Sharder {
    pub(in crate::core::sharder) fn on_work_answered(
        &mut self,
        now: Now,
        token: Token,
        answer: Answer,
    ) {
        let Some(name) = self.works.flights.remove(&token) else { return };
        let Some(work) = self.works.all.get_mut(&name) else { return };
        let Some((_, doing)) = work.doing.take_if(|(asked, _)| *asked == token) else { return };
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
                work.on_told(*object);
                // Somebody of the ring may have adopted an orphan meanwhile.
                if work.role == Role::Foreign {
                    work.role = self.options.kinds.role(&work.object);
                }
                self.works.look_at(&name, now.mono);
            }
            (_, Answer::Gone) => self.finish(&name, now),
            (_, Answer::Conflict) => self.on_conflict(&name, now.mono),
            _ => self.on_failed(&name, now.mono),
        }
    }

    fn on_written(&mut self, name: &ObjectName, step: &Step, object: Object, now: Now) {
        let Some(work) = self.works.all.get_mut(name) else { return };
        (work.rereads, work.failures) = (0, 0);
        let from = work.object.shard.clone();
        let from_before = from.clone();
        work.on_told(object);
        let object = name.clone();
        let news = match (step, from) {
            (Step::Assign(_), _) => Some(News::Assigned { object }),
            (Step::Force(_) | Step::TakeOver(_), Some(from)) => Some(News::Moved { object, from }),
            _ => None,
        };
        self.out.extend(news.map(Command::Tell));
        if let Step::Force(Some(to)) = step {
            self.works.gather_children(name, to, from_before);
        }
        if !matches!(step, Step::Drain) && self.works.all[name].object.drain.is_none() {
            self.works.moving.remove(name);
        }
        self.works.look_at(name, now.mono);
    }

    /// Read again at once, a few times; then it has to wait.
    fn on_conflict(&mut self, name: &ObjectName, now: Moment) {
        let Some(work) = self.works.all.get_mut(name) else { return };
        work.rereads += 1;
        if work.rereads <= REREADS_MAX {
            return self.reread(name);
        }
        work.rereads = 0;
        self.on_failed(name, now);
    }

    /// Nobody knows what became of it: what is there is read, when some time has passed.
    fn on_failed(&mut self, name: &ObjectName, now: Moment) {
        let Some(work) = self.works.all.get_mut(name) else { return };
        let pause = work.pause();
        work.failures += 1;
        work.must_read = true;
        self.works.look_at(name, now + pause);
    }
}

// === impl Work ===

impl Work {
    fn pause(&self) -> std::time::Duration {
        RETRY_AFTER.saturating_mul(1 << self.failures.min(10)).min(RETRY_MAX)
    }
}
