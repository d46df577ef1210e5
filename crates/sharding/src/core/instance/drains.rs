//! Objects that are to be given up: no reconcile of them begins, one that runs may finish within its
//! grace, and only when none runs is the object let go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::message::{Command, Outcome};
use crate::core::object::{Object, ObjectName, Version};
use crate::core::time::Moment;

/// A cache may show an object as it was before it was given up, until its watch is noticed to hang.
const REMEMBERED_FOR: Duration = Duration::from_secs(10 * 60);
const RETRY_AFTER: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Default)]
pub(super) struct Drains {
    all: BTreeMap<ObjectName, Giving>,
    /// Of all, those that are not gone: few of very many, and looked at with every reconcile.
    active: BTreeSet<ObjectName>,
    /// When each went, in this order; some have come back since.
    departures: VecDeque<(Moment, ObjectName)>,
    /// The epoch up to which all draining objects are known.
    seen_epoch: u64,
    listing: Option<u64>,
}

/// One object on its way out.
#[derive(Clone, Debug)]
struct Giving {
    /// As last seen. What is not newer than this is out of date.
    version: Version,
    since: Moment,
    is_cancelled: bool,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Waits until no reconcile runs.
    Draining,
    /// Waits for the answer to the acknowledgement or to a read.
    Asked,
    /// Waits to be read again.
    Unsure { at: Moment },
    /// Not ours any more. Remembered against old news.
    Gone { since: Moment },
}

// === impl Drains ===

impl Drains {
    pub(super) fn seen_epoch(&self) -> u64 {
        self.seen_epoch
    }

    /// Whether nothing newer is known about the object than what a cache shows.
    pub(super) fn allow(&self, object: &Object) -> bool {
        let known = self.all.get(&object.name);
        known.is_none_or(|giving| object.version.is_newer_than(&giving.version))
    }

    pub(super) fn awaits_news_of(&self, name: &ObjectName) -> bool {
        let stage = self.all.get(name).map(|giving| giving.stage);
        matches!(stage, Some(Stage::Draining | Stage::Unsure { .. }))
    }

    /// An object that carries our id.
    pub(super) fn on_seen(&mut self, object: &Object, now: Moment) {
        let known = self.all.get_mut(&object.name);
        if known.as_ref().is_some_and(|it| it.version.is_newer_than(&object.version)) {
            return;
        }
        match (known, object.drain.is_some()) {
            (Some(giving), true) => {
                giving.on_seen(object.version.clone(), now);
                if !giving.is_gone() {
                    self.active.insert(object.name.clone());
                }
            }
            (None, true) => {
                let giving = Giving::new(object.version.clone(), now);
                self.all.insert(object.name.clone(), giving);
                self.active.insert(object.name.clone());
            }
            // Of an object that we gave up, the same version again is old news.
            (Some(giving), false) if giving.is_gone() && giving.version == object.version => {}
            // Ours after all, or again. An acknowledgement under way is refused: the version is newer.
            (Some(_), false) => {
                self.all.remove(&object.name);
                self.active.remove(&object.name);
            }
            (None, false) => {}
        }
    }

    pub(super) fn on_left(&mut self, name: &ObjectName, now: Moment) {
        if let Some(giving) = self.all.get_mut(name) {
            giving.stage = Stage::Gone { since: now };
            self.active.remove(name);
            self.departures.push_back((now, name.clone()));
        }
    }

    pub(super) fn on_answered(&mut self, name: &ObjectName, outcome: Outcome<()>, now: Moment) {
        let Some(giving) = self.all.get_mut(name) else { return };
        if giving.stage != Stage::Asked {
            return;
        }
        giving.stage = match outcome {
            Outcome::Done(()) => return self.on_left(name, now),
            Outcome::Conflict => Stage::Unsure { at: now },
            Outcome::Failed => Stage::Unsure { at: now + RETRY_AFTER },
        };
    }

    pub(super) fn wants_list(&mut self, epoch: u64) -> bool {
        let wants = epoch > self.seen_epoch && self.listing.is_none();
        if wants {
            self.listing = Some(epoch);
        }
        wants
    }

    pub(super) fn on_listed(&mut self, epoch: u64) {
        self.listing = None;
        self.seen_epoch = self.seen_epoch.max(epoch);
    }

    pub(super) fn on_not_listed(&mut self) {
        self.listing = None;
    }

    pub(super) fn next_due(&self, now: Moment, grace: Duration) -> Option<Moment> {
        let active = self.active.iter().filter_map(|name| self.all.get(name));
        let due = active.filter_map(|giving| match giving.stage {
            Stage::Draining if !giving.is_cancelled => Some(giving.since + grace),
            Stage::Unsure { at } => Some(at),
            Stage::Draining | Stage::Asked | Stage::Gone { .. } => None,
        });
        due.filter(|at| *at > now).min()
    }

    pub(super) fn tend(
        &mut self,
        now: Moment,
        grace: Duration,
        running: &BTreeSet<ObjectName>,
    ) -> Vec<Command> {
        self.forget_the_gone(now);
        debug_assert!(
            self.all.iter().all(|(name, giving)| giving.is_gone() != self.active.contains(name)),
            "what is not gone is known to be active"
        );
        let tended = self.active.iter().filter_map(|name| {
            let giving = self.all.get_mut(name)?;
            giving.tend(name, now, grace, running)
        });
        tended.collect()
    }

    fn forget_the_gone(&mut self, now: Moment) {
        let is_old = |(at, _): &mut (Moment, ObjectName)| now.since(*at) >= REMEMBERED_FOR;
        while let Some((at, name)) = self.departures.pop_front_if(is_old) {
            // One that has come back since, and perhaps gone again, is remembered from then on.
            if self.all.get(&name).is_some_and(|it| it.stage == (Stage::Gone { since: at })) {
                self.all.remove(&name);
            }
        }
    }
}

// === impl Giving ===

impl Giving {
    fn is_gone(&self) -> bool {
        matches!(self.stage, Stage::Gone { .. })
    }

    fn new(version: Version, now: Moment) -> Self {
        Self { version, since: now, is_cancelled: false, stage: Stage::Draining }
    }

    /// Seen draining, as it was or as it is now.
    fn on_seen(&mut self, version: Version, now: Moment) {
        let is_news = self.version != version;
        match self.stage {
            Stage::Gone { .. } | Stage::Asked if !is_news => {}
            // It came back to us and is to be given up once more.
            Stage::Gone { .. } => *self = Self::new(version, now),
            // The acknowledgement under way is refused, and then it is read again.
            Stage::Asked => self.version = version,
            Stage::Draining | Stage::Unsure { .. } => {
                (self.version, self.stage) = (version, Stage::Draining);
            }
        }
    }

    fn tend(
        &mut self,
        name: &ObjectName,
        now: Moment,
        grace: Duration,
        running: &BTreeSet<ObjectName>,
    ) -> Option<Command> {
        let is_running = running.contains(name);
        match self.stage {
            Stage::Draining if !is_running => {
                self.stage = Stage::Asked;
                let version = self.version.clone();
                Some(Command::Acknowledge { name: name.clone(), version })
            }
            Stage::Draining if !self.is_cancelled && now >= self.since + grace => {
                self.is_cancelled = true;
                Some(Command::Cancel(name.clone()))
            }
            Stage::Unsure { at } if now >= at => {
                // The answer is a look at the object, which may come by the watch as well.
                self.stage = Stage::Unsure { at: now + RETRY_AFTER };
                Some(Command::ReadObject(name.clone()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::object::{Drain, GroupKind, Uid};

    fn object(version: u32) -> Object {
        let kind = GroupKind::new("", "Secret");
        Object {
            name: ObjectName { kind, namespace: None, name: "x".to_owned() },
            uid: Uid("u".to_owned()),
            version: Version(version.to_string()),
            shard: Some("a".parse().unwrap()),
            drain: Some(Drain::Until(0)),
            controller: None,
        }
    }

    /// With every reconcile everything that had been given up for ten minutes was gone through.
    #[test]
    fn what_was_given_up_is_remembered_and_not_looked_at() {
        let at = |seconds| Moment(Duration::from_secs(seconds));
        let (grace, none) = (Duration::from_secs(10), BTreeSet::new());
        let (mut drains, x) = (Drains::default(), object(5));
        drains.on_seen(&x, at(0));
        assert_eq!(drains.tend(at(0), grace, &none).len(), 1);
        drains.on_answered(&x.name, Outcome::Done(()), at(1));
        assert!(drains.active.is_empty());
        drains.on_seen(&object(7), at(300));
        assert_eq!(drains.tend(at(300), grace, &none).len(), 1, "it came back");
        drains.on_answered(&x.name, Outcome::Done(()), at(301));
        let end = 301 + REMEMBERED_FOR.as_secs();
        assert_eq!(drains.tend(at(end - 1), grace, &none), []);
        assert!(!drains.allow(&object(7)) && drains.active.is_empty());
        assert_eq!(drains.tend(at(end), grace, &none), []);
        assert!(drains.allow(&object(7)) && drains.departures.is_empty());
    }
}
