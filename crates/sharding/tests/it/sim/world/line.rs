//! Between processes and the server: requests and answers are delayed and lost, but nothing that was
//! given up arrives later.

use std::time::Duration;

use sharding::core::history::Violation;
use sharding::core::instance;
use sharding::core::object::LabelChange;
use sharding::core::sharder;
use sharding::core::sharder::{Answer, Command, Token};

use super::{DURATION, Happening, News, Party, Request, World};
use crate::sim::Fault;
use crate::sim::server::{Asker, Refused};

/// What a page has at most: small, so that passes have many.
const PAGE: usize = 4;

// === impl World ===

impl World {
    pub(crate) fn send(&mut self, from: Party, request: Request) {
        let wait = self.travel();
        self.send_for(wait, from, request);
    }

    /// Sends what is under way for this long.
    pub(crate) fn send_for(&mut self, wait: Duration, from: Party, request: Request) {
        let timeout = DURATION / 5;
        let life = self.life(from);
        let number = self.request();
        let failed = match unanswered(&request) {
            Some(news) => Happening::Answer { to: from, life, number, news },
            None => Happening::Resend { from, life, number, request: request.clone() },
        };
        self.after(timeout, failed);
        if wait < timeout && !self.is_lost(from) {
            self.after(wait, Happening::Arrive { from, life, number, request });
        }
    }

    /// Nobody has answered. Who has to know asks again.
    pub(super) fn resend(&mut self, from: Party, (life, number): (u32, u64), request: Request) {
        let is_open = self.open.remove(&number);
        if is_open
            && life == self.life(from)
            && matches!(request, Request::Sharder(Command::ReadTable))
        {
            self.send(from, request);
        }
    }

    /// The first answer counts, and so does that there is none.
    pub(super) fn on_answer(
        &mut self,
        to: Party,
        (life, number): (u32, u64),
        news: News,
    ) -> Result<(), Violation> {
        if self.open.remove(&number) { self.tell(to, life, news) } else { Ok(()) }
    }

    fn request(&mut self) -> u64 {
        self.requests += 1;
        self.open.insert(self.requests);
        self.requests
    }

    fn travel(&mut self) -> Duration {
        if self.is_rough() && self.chance.once_in(15) {
            return self.chance.millis(100..4_000);
        }
        self.chance.millis(1..20)
    }

    pub(crate) fn is_rough(&self) -> bool {
        self.plot.is_rough && self.now < super::ROUGH_UNTIL
    }

    fn is_lost(&mut self, party: Party) -> bool {
        self.is_cut(party) || (self.is_rough() && self.chance.once_in(30))
    }

    fn is_cut(&self, party: Party) -> bool {
        let until = match party {
            Party::Sharder(number) => self.sharders[number].cut_until,
            Party::Instance(number) => self.processes[number].cut_until,
        };
        until > self.now
    }

    pub(super) fn arrive(&mut self, from: Party, (life, number): (u32, u64), request: Request) {
        let reply_to = number;
        let news = match (from, request) {
            (Party::Sharder(number), Request::Sharder(command)) => self.serve(number, command),
            (Party::Instance(number), Request::Instance { sent, command }) => {
                self.serve_instance(number, sent, command)
            }
            (Party::Instance(number), Request::Touch(name)) => {
                let asker = Asker::Instance(self.processes[number].id.clone());
                // A refusal is what the fence is for; nobody waits for the answer.
                if self.server.touch(&asker, &name).is_err() {
                    self.processes[number].refused += 1;
                }
                None
            }
            _ => None,
        };
        if let Some(news) = news
            && !self.is_lost(from)
        {
            let wait = self.travel();
            self.after(wait, Happening::Answer { to: from, life, number: reply_to, news });
        }
    }

    fn serve(&mut self, number: usize, command: Command) -> Option<News> {
        let now = self.wall();
        let (token, answer) = match command {
            Command::WriteObject { token, name, version, change } => {
                let written = self.server.label(&Asker::Sharder, (&name, Some(&version)), &change);
                (token, told(written, |object| Answer::Object(Box::new(object))))
            }
            Command::ReadObject { token, name } => {
                let found = self.server.objects.get(&name).cloned();
                (token, found.map_or(Answer::Gone, |object| Answer::Object(Box::new(object))))
            }
            Command::WriteLease { token, lease, is_new } => {
                let is_acquired = lease.holder.as_deref() == Some("windlass-sharder");
                let is_guarded = !(is_acquired && self.plot.fault == Some(Fault::UnguardedAcquire));
                let written = self.server.put_lease(*lease, is_new, is_guarded, now);
                (token, told(written, |lease| Answer::Lease(Box::new(lease))))
            }
            Command::ReadLease { token, id, namespace } => {
                let found = self.server.leases.get(&(id, namespace)).cloned();
                (token, found.map_or(Answer::Gone, |lease| Answer::Lease(Box::new(lease))))
            }
            Command::DeleteLease { token, lease } => {
                let deleted =
                    self.server.delete_lease(&lease.id, &lease.namespace, Some(&lease.version));
                (token, told(deleted, |()| Answer::Gone))
            }
            Command::WriteTable { token, kept, version } => {
                (token, told(self.server.put_table(kept, &version), Answer::Table))
            }
            Command::ListPage { token, kinds, selector, is_first } => {
                if is_first {
                    self.sharders[number].listed = self.server.list(kinds, &selector);
                }
                let listed = &mut self.sharders[number].listed;
                let objects = listed.drain(..listed.len().min(PAGE)).collect();
                (token, Answer::Page { objects, is_last: listed.is_empty() })
            }
            Command::ListChildren { token, from, parents } => {
                (token, Answer::Children(self.server.children(from.as_ref(), &parents)))
            }
            Command::ReadTable => {
                let (kept, version) = self.server.table();
                return Some(News::Sharder(sharder::Event::TableRead { kept, version }));
            }
            Command::ShowState { id, namespace, word } => {
                self.server.show_state(&id, &namespace, word);
                return None;
            }
            Command::Tell(_) => return None,
        };
        let answer = self.tampered(answer);
        Some(News::Sharder(sharder::Event::Answered { token, answer }))
    }

    fn serve_instance(
        &mut self,
        number: usize,
        sent: sharding::core::time::Moment,
        command: instance::Command,
    ) -> Option<News> {
        use instance::{Command, Event, Outcome};
        let now = self.wall();
        let (id, namespace) = (self.processes[number].id.clone(), "shop".to_owned());
        let event = match command {
            Command::ReadLease => {
                let lease = self.server.leases.get(&(id, namespace)).cloned();
                Event::LeaseRead { lease: lease.map(Box::new), ring: None }
            }
            Command::WriteLease { lease, is_new } => {
                let outcome = match self.server.put_lease(*lease, is_new, true, now) {
                    Ok(lease) => Outcome::Done(Box::new(lease)),
                    Err(_) => Outcome::Conflict,
                };
                Event::LeaseWritten { sent, outcome }
            }
            Command::AskCarried => {
                let mut objects = self.server.objects.values();
                Event::Carried(objects.any(|object| object.shard.as_ref() == Some(&id)))
            }
            Command::ListDrains { epoch } => {
                let own =
                    self.server.objects.values().filter(|object| {
                        object.shard.as_ref() == Some(&id) && object.drain.is_some()
                    });
                Event::DrainsListed { epoch, objects: own.cloned().collect() }
            }
            Command::ReadObject(name) => match self.server.objects.get(&name) {
                Some(object) => Event::Seen(Box::new(object.clone())),
                None => Event::Left(name),
            },
            Command::Acknowledge { name, version } => {
                let is_guarded = self.plot.fault != Some(Fault::UnguardedAck);
                let asker = Asker::Instance(id);
                let guard = Some(&version).filter(|_| is_guarded);
                let written = self.server.label(&asker, (&name, guard), &LabelChange::Clear);
                let outcome = match written {
                    Ok(_) => Outcome::Done(()),
                    Err(_) => Outcome::Conflict,
                };
                Event::Acknowledged(name, outcome)
            }
            Command::Work | Command::Cancel(_) | Command::Lost(_) | Command::Left => return None,
        };
        Some(News::Instance(event))
    }
}

/// What a process is told if no answer comes in time. An answer that comes later is news of something
/// that is given up.
fn unanswered(request: &Request) -> Option<News> {
    match request {
        Request::Sharder(Command::ReadTable | Command::ShowState { .. } | Command::Tell(_))
        | Request::Touch(_) => None,
        Request::Sharder(command) => {
            let answer = Answer::Failed;
            Some(News::Sharder(sharder::Event::Answered { token: token(command)?, answer }))
        }
        Request::Instance { sent, command } => {
            use instance::{Command, Event, Outcome};
            let event = match command {
                Command::ReadLease => Event::LeaseUnread,
                Command::WriteLease { .. } => {
                    Event::LeaseWritten { sent: *sent, outcome: Outcome::Failed }
                }
                Command::ListDrains { .. } => Event::DrainsNotListed,
                Command::Acknowledge { name, .. } => {
                    Event::Acknowledged(name.clone(), Outcome::Failed)
                }
                Command::AskCarried => Event::Carried(true),
                _ => return None,
            };
            Some(News::Instance(event))
        }
    }
}

fn token(command: &Command) -> Option<Token> {
    match command {
        Command::WriteObject { token, .. }
        | Command::ReadObject { token, .. }
        | Command::WriteLease { token, .. }
        | Command::ReadLease { token, .. }
        | Command::DeleteLease { token, .. }
        | Command::WriteTable { token, .. }
        | Command::ListPage { token, .. }
        | Command::ListChildren { token, .. } => Some(*token),
        Command::ReadTable | Command::ShowState { .. } | Command::Tell(_) => None,
    }
}

fn told<T>(written: Result<T, Refused>, done: impl Fn(T) -> Answer) -> Answer {
    match written {
        Ok(value) => done(value),
        Err(Refused::Conflict) => Answer::Conflict,
        Err(Refused::Gone) => Answer::Gone,
        Err(Refused::Forbidden) => Answer::Failed,
    }
}
