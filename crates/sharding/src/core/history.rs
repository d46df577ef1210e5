//! What must hold of everything that happened: told one fact after the other, in the order of one
//! clock, it says what was broken. For simulations and for tests with real processes, whose logs,
//! audit log and watch are independent witnesses.

#[cfg(test)]
mod tests;
mod track;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;

use self::track::Track;
use super::names::InstanceId;
use super::object::{Drain, Uid};
use super::time::{later, until};

/// One process: an instance's id is the same after a restart, its incarnation is not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Worker {
    pub id: InstanceId,
    pub incarnation: String,
}

/// The labels that an object has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    pub shard: Option<InstanceId>,
    pub drain: Option<Drain>,
}

/// Who holds an instance's Lease, and for how long it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    Instance {
        lasts: Duration,
    },
    /// The instance, which has ended in order and said that it would be back.
    Restarting,
    Sharder {
        lasts: Duration,
    },
    Nobody,
    /// There is no Lease.
    Absent,
}

/// One thing that happened.
#[derive(Clone, Debug)]
pub enum Fact {
    Created {
        object: Uid,
        parent: Option<Uid>,
    },
    Deleted(Uid),
    /// A reconcile of the object begins.
    Began(Uid, Worker),
    /// It takes a step.
    Stepped(Uid, Worker),
    /// No step of it will follow.
    Ended(Uid, Worker),
    /// The process was stopped from outside: what it was doing hangs, and may never go on.
    Stopped(Worker),
    /// The server accepted what an instance wrote to an object with this shard label.
    Wrote {
        object: Uid,
        by: InstanceId,
        shard: Option<InstanceId>,
    },
    Labelled(Uid, Labels),
    /// The Lease of an instance has another holder, or its holder has renewed it.
    Held(InstanceId, Holding),
}

/// What was broken, and of which object or instance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{subject}: {breach}")]
pub struct Violation {
    pub subject: String,
    pub breach: Box<Breach>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    #[error("it is worked on by {one} and by {other}")]
    Overlap { one: Worker, other: Worker },
    #[error("it is worked on by {0}, after another had begun")]
    Revenant(Worker),
    #[error("{by} wrote to it, and it is labelled {shard:?}")]
    ForeignWrite { by: InstanceId, shard: Option<InstanceId> },
    #[error("it was given up by {0}, who worked on it")]
    GivenUpWhileBusy(Worker),
    #[error("it {0}, and its owner was neither dead nor overdue")]
    Label(Passage),
    #[error(
        "it was taken by force from {0}, who worked on it, and no fence refuses what he writes"
    )]
    ForcedWhileBusy(Worker),
    #[error("it was given to {to}, who had not been ready for {for_ms} ms")]
    NotReady { to: InstanceId, for_ms: u128 },
    #[error("it has another owner, and its child {child} is with {with}")]
    ParentFirst { child: String, with: InstanceId },
    #[error("it {0}, before its parent was given up")]
    ChildFirst(Passage),
    #[error("its Lease was taken {silent_ms} ms after it had spoken")]
    TakenTooEarly { silent_ms: u128 },
    #[error("it is nobody's, for {for_ms} ms")]
    Unassigned { for_ms: u128 },
    #[error("it was nobody's for {for_ms} ms while somebody was ready")]
    Waited { for_ms: u128 },
    #[error("it is labelled {label:?}, its parent {parent:?}")]
    Apart { label: Option<InstanceId>, parent: Option<InstanceId> },
}

/// A change of labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    pub before: Labels,
    pub after: Labels,
}

/// What is expected of the setting.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Whether the server has the fence: then no write of a former owner may have passed.
    pub is_fenced: bool,
    /// How much the clocks of sharders may differ.
    pub skew: Duration,
    /// How long an object may be nobody's while an instance is ready: until somebody leads, and until
    /// whoever is to have it speaks or is declared dead.
    pub unassigned_max: Duration,
    /// How long a sharder may not know that an instance is ready no more, and give it something.
    pub sight_max: Duration,
}

#[derive(Clone, Debug)]
pub struct History {
    terms: Terms,
    objects: BTreeMap<Uid, Track>,
    children: BTreeMap<Uid, BTreeSet<Uid>>,
    holdings: BTreeMap<InstanceId, Hold>,
    ready: Option<Stretch>,
}

/// A time in which there was always somebody who could take an object.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    since: Timestamp,
    /// It ends then if no Lease is renewed.
    until: Timestamp,
}

/// Who holds a Lease, and until when a sharder may believe that it does: one that somebody deletes
/// under its hands is not known to be gone, and whoever creates it anew waits for that long.
#[derive(Clone, Copy, Debug)]
struct Hold {
    holding: Holding,
    /// When it was last written.
    at: Timestamp,
    believed_until: Timestamp,
    /// Until when the instance was ready last, or is if it says nothing more.
    ready_until: Timestamp,
}

// === impl History ===

impl History {
    #[must_use]
    pub fn new(terms: Terms) -> Self {
        let (objects, children, holdings) = Default::default();
        Self { terms, objects, children, holdings, ready: None }
    }

    /// Takes in one fact. `now` is the true time, if there is such a thing.
    pub fn on(&mut self, now: Timestamp, fact: Fact) -> Result<(), Violation> {
        if let Some(stretch) = self.ready.take_if(|stretch| stretch.until <= now) {
            self.check_waits(stretch, stretch.until)?;
        }
        match fact {
            Fact::Created { object, parent } => {
                if let Some(parent) = parent.clone() {
                    self.children.entry(parent).or_default().insert(object.clone());
                }
                self.objects.insert(object, Track::new(parent, now));
                Ok(())
            }
            Fact::Deleted(object) => {
                let track = self.objects.remove(&object);
                let parent = track.as_ref().and_then(Track::parent);
                if let Some(siblings) = parent.and_then(|parent| self.children.get_mut(parent)) {
                    siblings.remove(&object);
                }
                Ok(())
            }
            Fact::Began(object, worker) => self.track(&object).on_began(&object, &worker),
            Fact::Stepped(object, worker) => self.track(&object).on_stepped(&object, &worker),
            Fact::Ended(object, worker) => {
                self.track(&object).on_ended(&worker);
                Ok(())
            }
            Fact::Stopped(worker) => {
                self.objects.values_mut().for_each(|track| track.on_stopped(&worker));
                Ok(())
            }
            Fact::Wrote { object, by, shard } => self.on_wrote(object, by, shard),
            Fact::Labelled(object, labels) => self.on_labelled(&object, labels, now),
            Fact::Held(id, holding) => {
                self.on_held(id, holding, now)?;
                self.on_readiness(now)
            }
        }
    }

    /// When everything has come to rest: every object has an owner, and children their parent's.
    pub fn check_settled(&self, now: Timestamp, patience: Duration) -> Result<(), Violation> {
        if let Some(stretch) = self.ready {
            self.check_waits(stretch, now)?;
        }
        for (object, track) in &self.objects {
            track.check_assigned(object, now, patience)?;
            let parent = track.parent().and_then(|parent| self.objects.get(parent));
            if let Some(parent) = parent
                && parent.labels().shard != track.labels().shard
            {
                let (label, parent) = (track.labels().shard.clone(), parent.labels().shard.clone());
                return Err(Violation::new(object, Breach::Apart { label, parent }));
            }
        }
        Ok(())
    }

    /// How often objects went from one instance to another.
    #[must_use]
    pub fn moves(&self) -> usize {
        self.objects.values().map(Track::moves).sum()
    }

    /// How far from even the shares of main objects are: the largest by the mean, among these.
    #[must_use]
    pub fn imbalance(&self, instances: &[InstanceId]) -> f64 {
        let main = self.objects.values().filter(|track| track.parent().is_none());
        let owners: Vec<&InstanceId> = main.filter_map(|it| it.labels().shard.as_ref()).collect();
        let share = |id: &InstanceId| owners.iter().filter(|owner| **owner == id).count();
        let largest = instances.iter().map(share).max().unwrap_or_default();
        let exact = |count: usize| u32::try_from(count).map_or(f64::INFINITY, f64::from);
        exact(largest) * exact(instances.len()) / exact(owners.len().max(1))
    }

    /// Who has how many objects.
    #[must_use]
    pub fn owners(&self) -> BTreeMap<Option<InstanceId>, usize> {
        let mut owners = BTreeMap::new();
        for track in self.objects.values() {
            *owners.entry(track.labels().shard.clone()).or_default() += 1;
        }
        owners
    }

    fn track(&mut self, object: &Uid) -> &mut Track {
        let fresh = || Track::new(None, Timestamp::UNIX_EPOCH);
        self.objects.entry(object.clone()).or_insert_with(fresh)
    }

    fn on_held(
        &mut self,
        id: InstanceId,
        holding: Holding,
        now: Timestamp,
    ) -> Result<(), Violation> {
        let before = self.holdings.get(&id).copied();
        let believed_until = match (holding, before.map(|it| (it.holding, it.believed_until))) {
            (Holding::Sharder { lasts }, _) => later(now, lasts),
            (Holding::Absent, Some((Holding::Sharder { .. }, until))) => until,
            (
                Holding::Instance { .. },
                Some((Holding::Absent | Holding::Instance { .. }, until)),
            ) => until,
            _ => Timestamp::UNIX_EPOCH,
        };
        let breach = match (before.map(|it| (it.holding, until(it.at, now))), holding) {
            (Some((Holding::Instance { lasts }, silent)), Holding::Sharder { .. }) => {
                Some(silent).filter(|silent| *silent < lasts * 2)
            }
            _ => None,
        };
        let ready_until = match (holding, before) {
            (Holding::Instance { lasts }, _) => later(now, lasts),
            (_, Some(before)) => before.ready_until.min(now),
            (_, None) => Timestamp::UNIX_EPOCH,
        };
        let subject = id.to_string();
        self.holdings.insert(id, Hold { holding, at: now, believed_until, ready_until });
        match breach.map(|silent| Breach::TakenTooEarly { silent_ms: silent.as_millis() }) {
            Some(breach) => Err(Violation { subject, breach: Box::new(breach) }),
            None => Ok(()),
        }
    }

    /// A Lease has changed: somebody is ready until the last of those that instances hold ends.
    fn on_readiness(&mut self, now: Timestamp) -> Result<(), Violation> {
        let ends = self.holdings.values().filter_map(|hold| match hold.holding {
            Holding::Instance { lasts } => Some(later(hold.at, lasts)),
            _ => None,
        });
        let until = ends.max().filter(|until| *until > now);
        let before = self.ready.take();
        match (before, until) {
            (before, Some(until)) => {
                let since = before.map_or(now, |stretch| stretch.since);
                self.ready = Some(Stretch { since, until });
                Ok(())
            }
            (Some(stretch), None) => self.check_waits(stretch, now),
            (None, None) => Ok(()),
        }
    }

    /// Nothing has waited for too long in this stretch, which lasts until `end`.
    fn check_waits(&self, stretch: Stretch, end: Timestamp) -> Result<(), Violation> {
        let mut all = self.objects.iter();
        all.try_for_each(|(object, track)| self.check_wait(object, track, stretch, end))
    }

    fn check_wait(
        &self,
        object: &Uid,
        track: &Track,
        stretch: Stretch,
        end: Timestamp,
    ) -> Result<(), Violation> {
        let waited = track.unassigned_since().map(|since| until(since.max(stretch.since), end));
        match waited.filter(|waited| *waited > self.terms.unassigned_max) {
            Some(waited) => {
                let for_ms = waited.as_millis();
                Err(Violation::new(object, Breach::Waited { for_ms }))
            }
            None => Ok(()),
        }
    }

    /// Whether the sharder holds its Lease, or cannot know that it does not.
    fn is_held(&self, id: &InstanceId, now: Timestamp) -> bool {
        let hold = self.holdings.get(id);
        hold.is_some_and(|it| {
            matches!(it.holding, Holding::Sharder { .. }) || now < it.believed_until
        })
    }

    fn is_surely_held(&self, id: &InstanceId) -> bool {
        let hold = self.holdings.get(id);
        hold.is_some_and(|it| matches!(it.holding, Holding::Sharder { .. }))
    }

    fn on_wrote(
        &mut self,
        object: Uid,
        by: InstanceId,
        shard: Option<InstanceId>,
    ) -> Result<(), Violation> {
        let is_child = self.track(&object).parent().is_some();
        let is_owner = shard.as_ref() == Some(&by) || (is_child && shard.is_none());
        if self.terms.is_fenced && !is_owner {
            return Err(Violation::new(&object, Breach::ForeignWrite { by, shard }));
        }
        Ok(())
    }

    fn on_labelled(
        &mut self,
        object: &Uid,
        after: Labels,
        now: Timestamp,
    ) -> Result<(), Violation> {
        let waited = match (self.ready, self.objects.get(object)) {
            (Some(stretch), Some(track)) => self.check_wait(object, track, stretch, now),
            _ => Ok(()),
        };
        let track = self.track(object);
        let before = track.labels().clone();
        track.note(after.clone(), now);
        waited?;
        let passage = Passage { before, after };
        self.check_passage(object, passage, now).map_err(|breach| Violation::new(object, breach))
    }

    fn check_passage(
        &mut self,
        object: &Uid,
        passage: Passage,
        now: Timestamp,
    ) -> Result<(), Breach> {
        let parent = self.track(object).parent().cloned();
        let Passage { before, after } = &passage;
        let from = before.shard.clone().filter(|from| after.shard.as_ref() != Some(from));
        let is_held = from.as_ref().is_some_and(|from| self.is_held(from, now));
        match (from, parent) {
            (None, None) if before.shard.is_none() => self.check_given(object, &passage, now),
            // What it gave up itself may be known only after its Lease was taken.
            (Some(_), None) if is_held && after.shard.is_none() => Ok(()),
            (Some(from), None) if is_held => {
                let taken = self.check_children(object, |with| *with == from);
                let may_be_forced = is_overdue(before.drain, now, self.terms.skew);
                // A Lease that was deleted under the sharder's hands: whether it believed to hold it, or
                // knew that the instance has a new one, nobody can tell.
                match taken {
                    Err(_) if may_be_forced && !self.is_surely_held(&from) => {
                        self.check_moved(object, &from, passage, now)
                    }
                    taken => taken,
                }
            }
            (Some(from), None) => self.check_moved(object, &from, passage, now),
            (Some(_), Some(parent)) if !is_held => self.check_child(&parent, passage),
            _ => Ok(()),
        }
    }

    /// Somebody gets what was nobody's, and has its children.
    fn check_given(&self, object: &Uid, passage: &Passage, now: Timestamp) -> Result<(), Breach> {
        let Some(to) = &passage.after.shard else { return Ok(()) };
        let silent = self.holdings.get(to).map(|hold| until(hold.ready_until, now));
        if let Some(silent) = silent.filter(|silent| *silent > self.terms.sight_max) {
            return Err(Breach::NotReady { to: to.clone(), for_ms: silent.as_millis() });
        }
        self.check_children(object, |with| with != to)
    }

    /// No child is where it should not be while its parent goes.
    fn check_children(
        &self,
        object: &Uid,
        is_late: impl Fn(&InstanceId) -> bool,
    ) -> Result<(), Breach> {
        for child in self.children.get(object).into_iter().flatten() {
            let shard = self.objects.get(child).and_then(|track| track.labels().shard.as_ref());
            if let Some(with) = shard.filter(|with| is_late(with)) {
                let with = with.clone();
                return Err(Breach::ParentFirst { child: child.0.clone(), with });
            }
        }
        Ok(())
    }

    /// Its owner may be alive.
    fn check_moved(
        &mut self,
        object: &Uid,
        from: &InstanceId,
        passage: Passage,
        now: Timestamp,
    ) -> Result<(), Breach> {
        let Passage { before, after } = &passage;
        let is_overdue = is_overdue(before.drain, now, self.terms.skew);
        let is_given_up = before.drain.is_some() && *after == Labels::default();
        let is_fenced = self.terms.is_fenced;
        let track = self.track(object);
        if is_overdue && is_fenced {
            // By the fence alone nobody knows what its owner does; the server refuses its writes.
            track.excuse(from);
            return Ok(());
        }
        match track.busy(from) {
            // Without a fence its owner was known to have seen that it had to stop.
            Some(worker) if is_overdue => Err(Breach::ForcedWhileBusy(worker)),
            None if is_overdue => Ok(()),
            Some(worker) if is_given_up => Err(Breach::GivenUpWhileBusy(worker)),
            None if is_given_up => Ok(()),
            _ => Err(Breach::Label(passage)),
        }
    }

    fn check_child(&mut self, parent: &Uid, passage: Passage) -> Result<(), Breach> {
        let of_parent = &self.track(parent).labels().shard;
        let is_free = of_parent.is_none() || *of_parent == passage.after.shard;
        if is_free { Ok(()) } else { Err(Breach::ChildFirst(passage)) }
    }
}

// === impl Violation ===

impl Violation {
    fn new(object: &Uid, breach: Breach) -> Self {
        Self { subject: object.0.clone(), breach: Box::new(breach) }
    }
}

// === impl Worker ===

impl fmt::Display for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.incarnation)
    }
}

// === impl Passage ===

impl fmt::Display for Passage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "went from {} to {}", self.before, self.after)
    }
}

// === impl Labels ===

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shard.as_ref().map_or("nobody", InstanceId::as_str))?;
        if self.drain.is_some() { f.write_str(" (draining)") } else { Ok(()) }
    }
}

fn is_overdue(drain: Option<Drain>, now: Timestamp, skew: Duration) -> bool {
    let Some(Drain::Until(seconds)) = drain else { return false };
    let deadline = i64::try_from(seconds).ok().and_then(|at| Timestamp::from_second(at).ok());
    deadline.is_some_and(|deadline| later(now, skew) >= deadline)
}
