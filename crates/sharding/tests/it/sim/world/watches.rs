//! What the server accepted reaches everybody, in order and late.

use std::time::Duration;

use sharding::core::history::Violation;
use sharding::core::key::Role;
use sharding::core::object::Object;
use sharding::core::sharder::Event;

use super::{Happening, News, Party, World};
use crate::sim::Fault;
use crate::sim::server::Change;

// === impl World ===

impl World {
    /// Sends what is new to all watches.
    pub(super) fn spread(&mut self) {
        for change in std::mem::take(&mut self.server.changes) {
            for number in 0..self.sharders.len() {
                if self.sharders[number].is_up
                    && let Some(news) = self.shown_to_sharder(&change)
                {
                    self.show(Party::Sharder(number), news);
                }
            }
            for number in 0..self.processes.len() {
                if self.processes[number].is_up()
                    && let Some(news) = self.shown_to_instance(number, &change)
                {
                    self.show(Party::Instance(number), news);
                }
            }
        }
    }

    fn shown_to_sharder(&self, change: &Change) -> Option<News> {
        let event = match change {
            Change::Lease { after: Some(lease), .. } => Event::LeaseSeen(Box::new(lease.clone())),
            Change::Lease { before, after: None } => Event::LeaseDeleted(Box::new(before.clone()?)),
            Change::Object { after: Some(object), .. } if object.shard.is_none() => {
                if self.server.kinds.role(object) == Role::Foreign {
                    return None;
                }
                Event::Unassigned { object: Box::new(object.clone()), is_listed: false }
            }
            Change::Object { before: Some(before), .. } if before.shard.is_none() => {
                Event::NotUnassigned(before.name.clone())
            }
            Change::Object { .. } => return None,
        };
        Some(News::Sharder(event))
    }

    fn shown_to_instance(&self, number: usize, change: &Change) -> Option<News> {
        let Change::Object { before, after } = change else { return None };
        let (id, watch) = (&self.processes[number].id, self.processes[number].watch);
        let is_own = |object: &&Object| object.shard.as_ref() == Some(id);
        if let Some(object) = after.as_ref().filter(is_own) {
            let (name, object) = (object.name.clone(), Some(Box::new(object.clone())));
            return Some(News::Cache { watch, name, object });
        }
        let name = before.as_ref().filter(is_own)?.name.clone();
        Some(News::Cache { watch, name, object: None })
    }

    fn show(&mut self, to: Party, news: News) {
        let lag = if self.is_rough() && self.chance.once_in(40) {
            self.chance.millis(100..8_000)
        } else {
            self.chance.millis(1..60)
        };
        let until = match to {
            Party::Sharder(number) => &mut self.sharders[number].watched_until,
            Party::Instance(number) => &mut self.processes[number].watched_until,
        };
        *until = (*until).max(self.now + lag);
        let wait = *until - self.now;
        let life = self.life(to);
        self.after(wait, Happening::Tell { to, life, news });
    }

    pub(super) fn start(&mut self, party: Party) -> Result<(), Violation> {
        match party {
            Party::Instance(number) => self.start_instance(number),
            Party::Sharder(number) => {
                self.start_sharder(number);
                Ok(())
            }
        }
    }

    /// Everything is listed, and watched from then on.
    fn start_sharder(&mut self, number: usize) {
        if self.sharders[number].is_up {
            return;
        }
        self.sharders[number].start();
        let leases = self.server.leases.values().cloned().collect();
        let mut events = vec![Event::LeasesListed(leases)];
        let is_fenced = self.plot.is_fenced || self.plot.fault == Some(Fault::ForceBeforeDeadline);
        events.push(Event::Fenced(is_fenced));
        let unassigned = self.server.objects.values().filter(|object| object.shard.is_none());
        events.extend(
            unassigned.map(|object| Event::Unassigned {
                object: Box::new(object.clone()),
                is_listed: true,
            }),
        );
        for event in events {
            self.tell_sharder(number, News::Sharder(event));
        }
    }

    pub(super) fn resume(&mut self, party: Party) -> Result<(), Violation> {
        loop {
            let (paused_until, waiting) = match party {
                Party::Sharder(number) => {
                    let process = &mut self.sharders[number];
                    (process.paused_until, &mut process.waiting)
                }
                Party::Instance(number) => {
                    let process = &mut self.processes[number];
                    (process.paused_until, &mut process.waiting)
                }
            };
            if paused_until > self.now {
                return Ok(());
            }
            let Some(news) = waiting.pop_front() else { return self.wake_up(party) };
            let life = self.life(party);
            self.tell(party, life, news)?;
        }
    }

    fn wake_up(&mut self, party: Party) -> Result<(), Violation> {
        match party {
            Party::Sharder(number) => {
                self.tell_sharder(number, News::Sharder(Event::Tick));
                Ok(())
            }
            Party::Instance(number) => {
                self.tell_instance(number, News::Instance(sharding::core::instance::Event::Tick))
            }
        }
    }

    pub(super) fn pause(&mut self, party: Party, pause: Duration) {
        let until = self.now + pause;
        match party {
            Party::Sharder(number) => self.sharders[number].paused_until = until,
            Party::Instance(number) => self.processes[number].paused_until = until,
        }
        self.after(pause, Happening::Resume(party));
    }
}
