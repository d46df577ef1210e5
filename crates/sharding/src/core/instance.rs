//! One instance of a sharded controller: told what happened, it answers what to do. It joins by taking
//! its Lease, works while it is sure to hold it, gives objects up when asked, and stops at once when
//! the Lease may be another's.
//!
//! | module | owns |
//! |---|---|
//! | `message` | events and commands |
//! | `join` | when a Lease that is found may be taken |
//! | `tenure` | how long the instance may believe that it holds it |
//! | `drains` | objects that are to be given up |

mod drains;
mod join;
mod leasing;
mod message;
mod tenure;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use self::drains::Drains;
use self::leasing::Asking;
use super::lease::Lease;
use super::names::{InstanceId, Names};
use super::object::{Object, ObjectName};
use super::time::{Moment, Now};

pub use join::{Found, JoinError, Start, start};
pub use message::{Command, Event, Loss, Outcome, Stop};
pub use tenure::Tenure;

/// It looks around at least this often, whatever it expects.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Who the instance is.
#[derive(Clone, Debug)]
pub struct Identity {
    pub names: Names,
    pub id: InstanceId,
    /// Where its Lease is.
    pub namespace: String,
    /// Random for each start of a process.
    pub incarnation: String,
    /// `<pod uid>/<container>`, where there is one.
    pub pod: Option<String>,
    pub weight: Option<u32>,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub identity: Identity,
    /// D of its Lease.
    pub duration: Duration,
    /// How long a reconcile may go on when its object is to be given up.
    pub grace: Duration,
}

#[derive(Clone, Debug)]
pub struct Instance {
    options: Options,
    phase: Phase,
    lease: Option<Lease>,
    asking: Option<Asking>,
    tenure: Tenure,
    next_look: Moment,
    /// Nobody knows how the Lease stands.
    must_read: bool,
    /// The last write of an orderly end has left, and may have arrived.
    is_let_go: bool,
    running: BTreeSet<ObjectName>,
    drains: Drains,
    out: Vec<Command>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Waits for a Lease that it may take. `first` is the Lease as first found, and since when it has
    /// been as it is.
    Joining {
        first: Option<(Box<Lease>, Moment)>,
    },
    /// Holds its Lease, and waits to hear whether objects carry its id already.
    Asking {
        held_since: Moment,
    },
    /// Objects carry its id and its Lease was gone: whoever had it before has to have stopped.
    Waiting {
        until: Moment,
    },
    Working,
    /// Starts nothing more. When nothing runs, it gives the Lease back or leaves its mark.
    Stopping(Stop),
    /// The process ends. Nothing leads out of here.
    Ended,
}

// === impl Instance ===

impl Instance {
    #[must_use]
    pub fn new(options: Options, now: Moment) -> Self {
        Self {
            tenure: Tenure::none(options.duration),
            phase: Phase::Joining { first: None },
            lease: None,
            asking: None,
            next_look: now,
            must_read: true,
            is_let_go: false,
            running: BTreeSet::new(),
            drains: Drains::default(),
            out: Vec::new(),
            options,
        }
    }

    #[must_use]
    pub fn on(&mut self, now: Now, event: Event) -> Vec<Command> {
        if self.phase != Phase::Ended {
            self.note(now, event);
            self.act(now);
        }
        std::mem::take(&mut self.out)
    }

    #[must_use]
    pub fn wake_at(&self, now: Moment) -> Moment {
        let edges = [
            Some(self.next_look).filter(|_| self.asking.is_none()),
            self.tenure.deadline(),
            self.drains.next_due(now, self.options.grace),
            match self.phase {
                Phase::Waiting { until } => Some(until),
                _ => None,
            },
        ];
        let soonest = edges.into_iter().flatten().min();
        soonest.map_or(now + LOOK_EVERY, |at| at.min(now + LOOK_EVERY))
    }

    /// Whether the object carries our id.
    #[must_use]
    pub fn is_mine(&self, object: &Object) -> bool {
        object.shard.as_ref() == Some(&self.options.identity.id)
    }

    /// Whether the object is to be given up and no answer about it is on its way: whoever sees it change
    /// hands has to read it.
    #[must_use]
    pub fn awaits_news_of(&self, name: &ObjectName) -> bool {
        self.drains.awaits_news_of(name)
    }

    /// Whether a reconcile of the object may begin. If so, [`Event::Ended`] has to follow.
    #[must_use]
    pub fn begin(&mut self, object: &Object, now: Moment) -> bool {
        let may = self.phase == Phase::Working
            && self.tenure.is_valid(now)
            && self.is_mine(object)
            && object.drain.is_none()
            && self.drains.allow(object);
        if may {
            self.running.insert(object.name.clone());
        }
        may
    }

    /// Whether a reconcile may take another step. To be asked before every poll: a process that wakes
    /// from a pause finds its Lease lost before it does anything else.
    #[must_use]
    pub fn may_go_on(&self, now: Moment) -> bool {
        let is_held = matches!(self.phase, Phase::Working | Phase::Stopping(_));
        is_held && self.tenure.is_valid(now)
    }

    /// How often the Lease changed hands: grows with each owner, for those who fence by a number.
    #[must_use]
    pub fn term(&self) -> Option<i32> {
        self.lease.as_ref().map(|lease| lease.transitions)
    }

    /// The last moment at which a reconcile may take a step, unless the Lease is renewed.
    #[must_use]
    pub fn deadline(&self) -> Option<Moment> {
        self.tenure.deadline()
    }

    #[must_use]
    pub fn is_working(&self) -> bool {
        self.phase == Phase::Working
    }

    fn note(&mut self, now: Now, event: Event) {
        match event {
            Event::Tick => {}
            Event::LeaseRead { lease, ring } => self.on_lease_read(lease.map(|it| *it), ring, now),
            Event::LeaseUnread => self.on_lease_unread(now.mono),
            Event::LeaseWritten { sent, outcome } => self.on_lease_written(sent, outcome, now),
            Event::Carried(is_carried) => self.on_carried(is_carried),
            Event::Seen(object) => self.on_seen(&object, now.mono),
            Event::Left(name) => self.on_left(&name, now.mono),
            Event::DrainsListed { epoch, objects } => {
                for object in &objects {
                    self.on_seen(object, now.mono);
                }
                self.drains.on_listed(epoch);
            }
            Event::DrainsNotListed => self.drains.on_not_listed(),
            Event::Ended(name) => {
                self.running.remove(&name);
            }
            Event::Acknowledged(name, outcome) => self.drains.on_answered(&name, outcome, now.mono),
            Event::Stop(stop) => self.on_stop(stop),
        }
    }

    fn act(&mut self, now: Now) {
        if self.tenure.deadline().is_some_and(|deadline| now.mono >= deadline) {
            return self.lose(Loss::Deadline);
        }
        self.tend_lease(now);
        if let Phase::Waiting { until } = self.phase
            && now.mono >= until
        {
            self.phase = Phase::Working;
            self.out.push(Command::Work);
        }
        if matches!(self.phase, Phase::Working | Phase::Stopping(_)) {
            self.tend_drains(now.mono);
        }
    }

    fn on_stop(&mut self, stop: Stop) {
        match self.phase {
            Phase::Joining { .. } => self.leave(),
            Phase::Stopping(_) | Phase::Ended => {}
            Phase::Asking { .. } | Phase::Waiting { .. } | Phase::Working => {
                self.phase = Phase::Stopping(stop);
            }
        }
    }

    fn on_carried(&mut self, is_carried: bool) {
        let Phase::Asking { held_since } = self.phase else { return };
        if is_carried {
            // A sharder whose hold was deleted under its hands may believe in it for twice the duration.
            self.phase = Phase::Waiting { until: held_since + self.options.duration * 2 };
        } else {
            self.phase = Phase::Working;
            self.out.push(Command::Work);
        }
    }

    fn on_seen(&mut self, object: &Object, now: Moment) {
        if !self.is_mine(object) {
            return self.on_left(&object.name, now);
        }
        self.drains.on_seen(object, now);
    }

    /// It is another's, or nobody's, or no more. What runs is of no use.
    fn on_left(&mut self, name: &ObjectName, now: Moment) {
        self.drains.on_left(name, now);
        if self.running.contains(name) {
            self.out.push(Command::Cancel(name.clone()));
        }
    }

    fn tend_drains(&mut self, now: Moment) {
        let commands = self.drains.tend(now, self.options.grace, &self.running);
        self.out.extend(commands);
        if let Some(epoch) = self.lease.as_ref().map(|lease| lease.marks.drain_epoch)
            && self.drains.wants_list(epoch)
        {
            self.out.push(Command::ListDrains { epoch });
        }
    }

    fn leave(&mut self) {
        self.phase = Phase::Ended;
        self.out.push(Command::Left);
    }

    fn lose(&mut self, loss: Loss) {
        self.phase = Phase::Ended;
        self.out.push(Command::Lost(loss));
    }
}
