//! What independent witnesses saw of a ring, brought into one order and told to the judge,
//! [`sharding::core::history`]: a watch over everything, the audit log, and what instances say of
//! their own work. Only reads what was gathered.
//!
//! Changes are ordered by revision, which counts all writes of a store, and come at the time when the
//! watch told of them. Instances and the watch read the same monotonic clock.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Result, bail};
use jiff::Timestamp;
use sharding::core::history::{Fact, History, Holding, Labels, Terms, Worker};
use sharding::core::names::{Annotation, InstanceId, Names};
use sharding::core::object::{Drain, Uid};

/// How many facts about its subject go with a violation.
const CONTEXT_MAX: usize = 20;

/// Time on the machine's monotonic clock.
pub type Moment = Duration;

#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub seen: Vec<Seen>,
    pub worked: Vec<Worked>,
    pub written: Vec<Written>,
    /// Processes that were killed or stopped from outside.
    pub stopped: Vec<(Moment, Worker)>,
    /// What the wall clock said when the monotonic one began.
    pub epoch: Timestamp,
    /// Whether wall clocks differ, so that what a Lease says of its renewal is not when it was.
    pub has_skew: bool,
}

/// A change that the watch told of.
#[derive(Clone, Debug)]
pub struct Seen {
    pub at: Moment,
    pub version: u64,
    pub is_gone: bool,
    pub sight: Sight,
}

#[derive(Clone, Debug)]
pub enum Sight {
    Object(ObjectSight),
    Lease(LeaseSight),
}

#[derive(Clone, Debug)]
pub struct ObjectSight {
    pub uid: String,
    pub namespace: String,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// The uid of its controller.
    pub controller: Option<String>,
}

#[derive(Clone, Debug)]
pub struct LeaseSight {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub holder: Option<String>,
    /// How long it lasts.
    pub lasts: Duration,
    pub renewed: Option<Timestamp>,
}

/// What an instance says of its work on an object.
#[derive(Clone, Debug)]
pub struct Worked {
    pub at: Moment,
    pub uid: String,
    pub worker: Worker,
    pub step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Began,
    /// Went on after it had waited for something.
    Went,
    Ended,
}

/// A write that the server accepted from an instance.
#[derive(Clone, Debug)]
pub struct Written {
    pub uid: String,
    pub version: u64,
    pub by: InstanceId,
}

/// The facts of one ring, in order.
#[derive(Clone, Debug)]
pub struct Testimony {
    facts: Vec<Told>,
}

#[derive(Clone, Debug)]
struct Told {
    /// Its place among the others.
    at: Moment,
    /// When it happened. That is before a watch told of it, if whoever did it wrote down the time.
    when: Timestamp,
    fact: Fact,
}

/// Puts the facts together.
struct Telling<'a> {
    names: &'a Names,
    evidence: &'a Evidence,
    /// Uids of the main objects, whose children follow them.
    main: BTreeSet<&'a str>,
    writers: BTreeMap<(&'a str, u64), &'a InstanceId>,
    labels: BTreeMap<&'a str, Labels>,
    /// By Lease, the renewal seen last and when it was first seen.
    renewals: BTreeMap<&'a str, (Option<Timestamp>, Timestamp)>,
    facts: Vec<Told>,
}

// === impl Evidence ===

impl Evidence {
    /// What it says about a ring whose objects are all in this namespace.
    #[must_use]
    pub fn about(&self, names: &Names, namespace: &str) -> Testimony {
        let objects = self.seen.iter().filter_map(|seen| match &seen.sight {
            Sight::Object(object) if object.namespace == namespace => Some(object),
            _ => None,
        });
        let main = objects.filter(|object| object.controller.is_none());
        let writers = self.written.iter().map(|it| ((it.uid.as_str(), it.version), &it.by));
        let telling = Telling {
            names,
            evidence: self,
            main: main.map(|object| object.uid.as_str()).collect(),
            writers: writers.collect(),
            labels: BTreeMap::new(),
            renewals: BTreeMap::new(),
            facts: Vec::new(),
        };
        telling.tell(namespace)
    }

    fn wall(&self, at: Moment) -> Timestamp {
        self.epoch.checked_add(at).unwrap_or(Timestamp::MAX)
    }
}

// === impl Sight ===

impl Sight {
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Object(object) => &object.name,
            Self::Lease(lease) => &lease.name,
        }
    }
}

// === impl Telling ===

impl<'a> Telling<'a> {
    fn tell(mut self, namespace: &str) -> Testimony {
        let mut seen: Vec<&'a Seen> = self.evidence.seen.iter().collect();
        seen.sort_by_key(|seen| seen.version);
        let mut at = Moment::ZERO;
        for seen in seen {
            // Two watches tell of neighbours in either order.
            at = at.max(seen.at);
            match &seen.sight {
                Sight::Object(object) if object.namespace == namespace => {
                    self.tell_object(at, seen, object);
                }
                Sight::Lease(lease) if self.is_of_ring(lease) => self.tell_lease(at, seen, lease),
                _ => {}
            }
        }
        self.tell_work();
        let mut facts = self.facts;
        // Stable: what happened in one moment keeps the order of its witness.
        facts.sort_by_key(|told| told.at);
        Testimony { facts }
    }

    fn tell_object(&mut self, at: Moment, seen: &Seen, object: &'a ObjectSight) {
        let uid = Uid(object.uid.clone());
        let parent = object.controller.as_deref().filter(|owner| self.main.contains(owner));
        if object.controller.is_some() && parent.is_none() {
            return;
        }
        if seen.is_gone {
            self.labels.remove(object.uid.as_str());
            return self.push(at, Fact::Deleted(uid));
        }
        let before = self.labels.get(object.uid.as_str()).cloned();
        if before.is_none() {
            let parent = parent.map(|owner| Uid(owner.to_owned()));
            self.push(at, Fact::Created { object: uid.clone(), parent });
        }
        let writer = self.writers.get(&(object.uid.as_str(), seen.version));
        if let (Some(by), Some(before)) = (writer.copied().cloned(), &before) {
            let (object, shard) = (uid.clone(), before.shard.clone());
            self.push(at, Fact::Wrote { object, by, shard });
        }
        let labels = self.labels_of(object);
        if before.unwrap_or_default() != labels {
            self.push(at, Fact::Labelled(uid, labels.clone()));
        }
        self.labels.insert(&object.uid, labels);
    }

    /// A watch lags, and is silent while the server is down: when a Lease was renewed stands in it. If
    /// clocks differ, that only tells one renewal from the next: the sharder writes into it, too.
    fn tell_lease(&mut self, at: Moment, seen: &Seen, lease: &'a LeaseSight) {
        let id = InstanceId::from_label(&lease.name);
        let mark = self.names.annotation(Annotation::HoldSeconds);
        let is_restarting = mark.is_some_and(|mark| lease.annotations.contains_key(&mark));
        let lasts = lease.lasts;
        let holding = match lease.holder.as_deref() {
            _ if seen.is_gone => Holding::Absent,
            None | Some("") => Holding::Nobody,
            Some(holder) if holder == self.names.sharder_holder() => Holding::Sharder { lasts },
            Some(_) if is_restarting => Holding::Restarting,
            Some(_) => Holding::Instance { lasts },
        };
        let now = self.evidence.wall(at);
        let when = match lease.renewed.filter(|_| !seen.is_gone) {
            Some(renewed) if !self.evidence.has_skew => renewed,
            renewed => {
                let known = self.renewals.entry(&lease.name).or_insert((renewed, now));
                if known.0 != renewed || renewed.is_none() {
                    *known = (renewed, now);
                }
                known.1
            }
        };
        self.facts.push(Told { at, when, fact: Fact::Held(id, holding) });
    }

    fn tell_work(&mut self) {
        for Worked { at, uid, worker, step } in &self.evidence.worked {
            let (uid, worker) = (Uid(uid.clone()), worker.clone());
            let fact = match step {
                Step::Began => Fact::Began(uid, worker),
                Step::Went => Fact::Stepped(uid, worker),
                Step::Ended => Fact::Ended(uid, worker),
            };
            self.push(*at, fact);
        }
        for (at, worker) in &self.evidence.stopped {
            self.push(*at, Fact::Stopped(worker.clone()));
        }
    }

    fn push(&mut self, at: Moment, fact: Fact) {
        self.facts.push(Told { at, when: self.evidence.wall(at), fact });
    }

    fn is_of_ring(&self, lease: &LeaseSight) -> bool {
        lease.labels.get(&self.names.ring_label()).map(String::as_str)
            == Some(self.names.ring().as_str())
    }

    fn labels_of(&self, object: &ObjectSight) -> Labels {
        let label = |key: &str| object.labels.get(key);
        Labels {
            shard: label(&self.names.shard_label()).map(|id| InstanceId::from_label(id)),
            drain: label(&self.names.drain_label()).map(|until| Drain::parse(until)),
        }
    }
}

// === impl Testimony ===

impl Testimony {
    /// What came of it, if nothing was broken.
    ///
    /// # Errors
    ///
    /// What was broken, with the last that was told about the same object or instance.
    pub fn judge(&self, terms: Terms) -> Result<History> {
        let mut history = History::new(terms);
        for (number, told) in self.facts.iter().enumerate() {
            if let Err(violation) = history.on(told.when, told.fact.clone()) {
                let before = self.about(&violation.subject, number);
                bail!("{violation}\n{}", before.join("\n"));
            }
        }
        Ok(history)
    }

    /// How the labels of objects changed, as they were told.
    pub fn labels(&self) -> impl Iterator<Item = (&Uid, &Labels)> {
        self.facts.iter().filter_map(|told| match &told.fact {
            Fact::Labelled(uid, labels) => Some((uid, labels)),
            _ => None,
        })
    }

    /// When it ends.
    #[must_use]
    pub fn end(&self) -> Timestamp {
        self.facts.last().map_or(Timestamp::UNIX_EPOCH, |told| told.when)
    }

    fn about(&self, subject: &str, last: usize) -> Vec<String> {
        let lines = self.facts[..=last].iter().map(|told| format!("{} {:?}", told.when, told.fact));
        let quoted = format!("\"{subject}\"");
        let lines: Vec<String> = lines.filter(|line| line.contains(&quoted)).collect();
        lines[lines.len().saturating_sub(CONTEXT_MAX)..].to_vec()
    }
}
