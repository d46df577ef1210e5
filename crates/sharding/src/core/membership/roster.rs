//! All Leases of a ring, and since when each has been as it is.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::{Due, Sight, Standing, State, judge, waiting};
use crate::core::lease::{DURATION_DEFAULT, Holder, Lease, Weight};
use crate::core::names::InstanceId;
use crate::core::time::{Moment, Now};

/// How many echoes of drain epochs are remembered per instance. Forgetting the oldest only makes an
/// object wait longer.
const ECHOES_MAX: usize = 64;

/// What the sharder knows of the instances. Counts only what it saw itself.
#[derive(Clone, Debug)]
pub struct Roster {
    sharder: String,
    hold_max: Duration,
    leases: BTreeMap<(InstanceId, String), Watched>,
    missing: BTreeMap<InstanceId, Missing>,
}

#[derive(Clone, Debug)]
struct Watched {
    lease: Lease,
    /// Since when holder and renewal have been as they are.
    since: Moment,
    /// When each drain epoch was first seen echoed.
    echoes: VecDeque<(u64, Moment)>,
}

/// An id whose Lease is not there, though it had one or objects carry it.
#[derive(Clone, Debug)]
struct Missing {
    since: Moment,
    namespace: Option<String>,
    duration: Duration,
    weight: u32,
    /// Nobody can have a Lease of this id: its namespace is gone, or it is no name.
    is_nowhere: bool,
}

/// An instance as the others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub id: InstanceId,
    pub namespace: Option<String>,
    pub standing: Standing,
    pub weight: u32,
    pub since: Moment,
}

/// A Lease that is to be taken or removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suspect {
    Lease(Box<Lease>),
    /// There is none: one has to be created.
    NoLease {
        namespace: Option<String>,
        duration: Duration,
    },
}

// === impl Roster ===

impl Roster {
    #[must_use]
    pub fn new(sharder: &str, hold_max: Duration) -> Self {
        let sharder = sharder.to_owned();
        Self { sharder, hold_max, leases: BTreeMap::new(), missing: BTreeMap::new() }
    }

    pub fn set_hold_max(&mut self, hold_max: Duration) {
        self.hold_max = hold_max;
    }

    /// The shortest D of all instances.
    #[must_use]
    pub fn shortest_duration(&self) -> Option<Duration> {
        self.leases.values().map(|watched| watched.lease.duration(&self.sharder)).min()
    }

    /// Instances whose weight label cannot be read.
    pub fn unreadable_weights(&self) -> impl Iterator<Item = &InstanceId> {
        let leases = self.leases.values().map(|watched| &watched.lease);
        leases.filter(|lease| lease.weight() == Weight::Unreadable).map(|lease| &lease.id)
    }

    /// These Leases exist and no others.
    pub fn on_listed(&mut self, listed: Vec<Lease>, now: Moment) {
        let is_listed = |key: &(InstanceId, String)| {
            listed.iter().any(|lease| (&lease.id, &lease.namespace) == (&key.0, &key.1))
        };
        let gone: Vec<_> = self.leases.keys().filter(|key| !is_listed(key)).cloned().collect();
        for (id, namespace) in gone {
            self.on_deleted(&id, &namespace, now);
        }
        for lease in listed {
            self.on_seen(lease, now);
        }
    }

    pub fn on_seen(&mut self, lease: Lease, now: Moment) {
        let key = (lease.id.clone(), lease.namespace.clone());
        self.missing.remove(&lease.id);
        let fresh = || Watched { lease: lease.clone(), since: now, echoes: VecDeque::new() };
        let watched = self.leases.entry(key).or_insert_with(fresh);
        // A list may be older than what the watch or a write of ours has told.
        if watched.lease.version.is_newer_than(&lease.version) {
            return;
        }
        if (&watched.lease.holder, watched.lease.renewed) != (&lease.holder, lease.renewed) {
            watched.since = now;
        }
        watched.on_echo(lease.marks.drain_seen, now);
        watched.lease = lease;
    }

    /// A watch shows the end of this Lease. It may be behind what an answer has told: then there is
    /// another by now.
    pub fn on_seen_deleted(&mut self, lease: &Lease, now: Moment) {
        let known = self.leases.get(&(lease.id.clone(), lease.namespace.clone()));
        if !known.is_some_and(|known| known.lease.version.is_newer_than(&lease.version)) {
            self.on_deleted(&lease.id, &lease.namespace, now);
        }
    }

    /// A Lease that vanishes under a live instance says nothing about the instance.
    pub fn on_deleted(&mut self, id: &InstanceId, namespace: &str, now: Moment) {
        let Some(watched) = self.leases.remove(&(id.clone(), namespace.to_owned())) else { return };
        let holder = watched.lease.held_by(&self.sharder);
        if matches!(holder, Holder::Instance | Holder::Stranger)
            && self.leases_of(id).next().is_none()
        {
            let missing = Missing {
                since: now,
                namespace: Some(namespace.to_owned()),
                duration: watched.lease.duration(&self.sharder),
                weight: watched.lease.weight().value(),
                is_nowhere: false,
            };
            self.missing.insert(id.clone(), missing);
        }
    }

    /// Objects carry this id. If it has no Lease, it is watched from now on as if it had lost it.
    pub fn on_carried(&mut self, id: &InstanceId, now: Moment) {
        if self.leases_of(id).next().is_none() {
            let (namespace, duration, weight) = (None, DURATION_DEFAULT, 0);
            let fresh = Missing { since: now, namespace, duration, weight, is_nowhere: false };
            self.missing.entry(id.clone()).or_insert(fresh);
        }
    }

    /// There is no Lease of this id, and nobody can make one: it is as dead as if we held its Lease,
    /// until one is seen all the same.
    pub fn on_nowhere(&mut self, id: &InstanceId) {
        if let Some(missing) = self.missing.get_mut(id) {
            missing.is_nowhere = true;
        }
    }

    #[must_use]
    pub fn is_nowhere(&self, id: &InstanceId) -> bool {
        self.missing.get(id).is_some_and(|missing| missing.is_nowhere)
    }

    /// No object carries the id of an instance without a Lease.
    pub fn forget_missing(&mut self, id: &InstanceId) {
        self.missing.remove(id);
    }

    /// All instances, each once: by its eldest Lease.
    #[must_use]
    pub fn members(&self, now: Now) -> Vec<Member> {
        let with_lease = self.leases.values().filter(|watched| self.is_eldest(&watched.lease));
        let with_lease = with_lease.map(|watched| self.member(watched, now));
        let missing = self.missing.iter().map(|(id, missing)| missing.member(id, now.mono));
        let mut members: Vec<Member> = with_lease.chain(missing).collect();
        members.sort_by(|a, b| a.id.cmp(&b.id));
        members
    }

    #[must_use]
    pub fn state(&self, id: &InstanceId, now: Now) -> Option<State> {
        self.standing(id, now).map(|standing| standing.state)
    }

    #[must_use]
    pub fn standing(&self, id: &InstanceId, now: Now) -> Option<Standing> {
        match self.eldest(id) {
            Some(watched) => Some(self.member(watched, now).standing),
            None => self.missing.get(id).map(|missing| missing.member(id, now.mono).standing),
        }
    }

    /// Leases whose id another Lease had first.
    #[must_use]
    pub fn conflicts(&self) -> Vec<&Lease> {
        let younger = self.leases.values().filter(|watched| !self.is_eldest(&watched.lease));
        younger.map(|watched| &watched.lease).collect()
    }

    /// Whether somebody with a younger Lease of the same id may be at work: its objects then have an
    /// owner whom taking the elder Lease does not stop.
    #[must_use]
    pub fn is_contested(&self, id: &InstanceId, now: Now) -> bool {
        let younger = self.leases_of(id).filter(|watched| !self.is_eldest(&watched.lease));
        let mut standings = younger.map(|watched| self.member(watched, now).standing);
        standings.any(|standing| standing.state.keeps_objects() && standing.due.is_none())
    }

    #[must_use]
    pub fn lease(&self, id: &InstanceId) -> Option<&Lease> {
        self.eldest(id).map(|watched| &watched.lease)
    }

    #[must_use]
    pub fn suspect(&self, id: &InstanceId) -> Option<Suspect> {
        if let Some(lease) = self.lease(id) {
            return Some(Suspect::Lease(Box::new(lease.clone())));
        }
        let missing = self.missing.get(id)?;
        // Where an id is known by its objects alone, its Lease will be where the others' are.
        let elsewhere = || self.leases.keys().map(|(_, namespace)| namespace.clone()).next();
        let namespace = missing.namespace.clone().or_else(elsewhere);
        Some(Suspect::NoLease { namespace, duration: missing.duration })
    }

    /// D of the instance.
    #[must_use]
    pub fn duration(&self, id: &InstanceId) -> Duration {
        let of_missing = || self.missing.get(id).map(|missing| missing.duration);
        let of_lease = self.lease(id).map(|lease| lease.duration(&self.sharder));
        of_lease.or_else(of_missing).unwrap_or(DURATION_DEFAULT)
    }

    /// The drain epoch that stands in the Lease. A Lease that was deleted and made anew begins from the
    /// first: whoever holds it does not know of those before.
    #[must_use]
    pub fn epoch(&self, id: &InstanceId) -> u64 {
        self.lease(id).map_or(0, |lease| lease.marks.drain_epoch)
    }

    /// For how long the instance has been known to have looked at everything up to this epoch.
    #[must_use]
    pub fn seen_for(&self, id: &InstanceId, epoch: u64, now: Moment) -> Option<Duration> {
        let echoes = &self.eldest(id)?.echoes;
        let first = echoes.iter().find(|(echoed, _)| *echoed >= epoch)?;
        Some(now.since(first.1))
    }

    /// When the next instance becomes something else, should it stay silent.
    #[must_use]
    pub fn next_edge(&self, now: Now) -> Option<Moment> {
        let changes = self.members(now).into_iter();
        changes.filter_map(|member| Some(now.mono + member.standing.changes_in?)).min()
    }

    fn member(&self, watched: &Watched, now: Now) -> Member {
        let Watched { lease, since, .. } = watched;
        let sight = Sight {
            lease,
            sharder: &self.sharder,
            silent_for: now.mono.since(*since),
            wall: now.wall,
            hold_max: self.hold_max,
            is_eldest: true,
        };
        Member {
            id: lease.id.clone(),
            namespace: Some(lease.namespace.clone()),
            standing: judge(&sight),
            weight: lease.weight().value(),
            since: *since,
        }
    }

    fn leases_of(&self, id: &InstanceId) -> impl Iterator<Item = &Watched> + use<'_> {
        let (from, id) = ((id.clone(), String::new()), id.clone());
        self.leases
            .range(from..)
            .map(|(_, watched)| watched)
            .take_while(move |it| it.lease.id == id)
    }

    fn eldest(&self, id: &InstanceId) -> Option<&Watched> {
        self.leases_of(id).min_by_key(|watched| (watched.lease.created, &watched.lease.namespace))
    }

    fn is_eldest(&self, lease: &Lease) -> bool {
        self.lease(&lease.id).is_some_and(|eldest| eldest.namespace == lease.namespace)
    }
}

// === impl Watched ===

impl Watched {
    fn on_echo(&mut self, epoch: u64, now: Moment) {
        // Another Lease of the same name, whose holder has not looked at anything yet.
        if self.echoes.back().is_some_and(|(echoed, _)| epoch < *echoed) {
            self.echoes.clear();
        }
        if self.echoes.back().is_none_or(|(echoed, _)| *echoed < epoch) {
            self.echoes.push_back((epoch, now));
        }
        if self.echoes.len() > ECHOES_MAX {
            self.echoes.pop_front();
        }
    }
}

// === impl Missing ===

impl Missing {
    /// Unknown for its duration; then a Lease is created for it, held by the sharder. Where none can
    /// be, it is dead without one.
    fn member(&self, id: &InstanceId, now: Moment) -> Member {
        let standing = match self.is_nowhere {
            true => Standing { state: State::Dead, due: None, changes_in: None },
            false => waiting(State::Unknown, now.since(self.since), self.duration),
        };
        debug_assert!(standing.due.is_none_or(|due| due == Due::Acquire));
        Member {
            id: id.clone(),
            namespace: self.namespace.clone(),
            standing,
            weight: self.weight,
            since: self.since,
        }
    }
}
