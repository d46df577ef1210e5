//! Objects on their way: seen without an owner, or with one that is not to keep them. Each is judged
//! when something about it may have changed, and has at most one request under way.

mod agenda;
mod answers;
mod judging;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use self::agenda::Agenda;
use super::Sharder;
use super::families::{Family, Listings};
use super::message::Token;
use crate::core::handover::Step;
use crate::core::key::Role;
use crate::core::names::InstanceId;
use crate::core::object::{Object, ObjectName, Uid};
use crate::core::time::Moment;

/// Unassigned objects that are remembered; of more, the watch is listed again later.
pub(super) const UNASSIGNED_MAX: usize = 10_000;
/// Writes of labels under way at once, besides moves.
const WRITES_MAX: usize = 32;
/// With so many requests about objects under way, no more objects are marked to be given up, but for one
/// at a time. Those writes and what they bring about would fill the server's queue, and what is nobody's
/// already would wait in it for its next owner: the sooner it has one, the sooner the next may go.
const DRAIN_BELOW: usize = 16;
/// Conflicts after which an object has to wait.
const REREADS_MAX: u32 = 5;
/// An object of an instance that is gone is left where it is after so many failures, or after so many
/// refusals, lest it keep everything else from going. Within a minute, and within seconds.
const FAILURES_MAX: u32 = 6;
const REFUSALS_MAX: u32 = 3;
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(5 * 60);
/// How often an object that is overdue is looked at.
const OVERDUE_EVERY: Duration = Duration::from_secs(5);
/// How rarely a child asks for its parent in the end.
const PARENT_EVERY_MAX: Duration = Duration::from_secs(30);

#[derive(Clone, Debug, Default)]
pub(super) struct Works {
    all: BTreeMap<ObjectName, Work>,
    agenda: Agenda,
    flights: BTreeMap<Token, ObjectName>,
    /// Of the flights, those that mark an object to be given up.
    drains: BTreeSet<Token>,
    /// Drained and not yet with their new owner.
    moving: BTreeSet<ObjectName>,
    /// Marked to be given up, for whatever time.
    draining: BTreeSet<ObjectName>,
    /// To be drained when there is room, each once; never more than there are on their way.
    queued: BTreeSet<ObjectName>,
    /// Children that wait until their parent is settled, each on its way itself.
    waiting: BTreeMap<ObjectName, BTreeSet<ObjectName>>,
    pub(super) listings: Listings,
    /// Unassigned objects were dropped: everything is to be looked for.
    pub(super) has_overflown: bool,
}

/// Objects on their way, told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Without an owner.
    pub unassigned: usize,
    /// With one that is not to keep them.
    pub moving: usize,
    /// Of these, how many their owners should have given up by now.
    pub overdue: usize,
    /// One of those that are overdue.
    pub overdue_example: Option<ObjectName>,
    /// With an instance that is gone, and cannot be labelled for another. On their way no more.
    pub stuck: usize,
    pub stuck_example: Option<ObjectName>,
}

#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) object: Object,
    role: Role,
    /// Whose it was when it was taken up.
    origin: Option<InstanceId>,
    doing: Option<(Token, Doing)>,
    /// A look at the object that came while something was under way.
    meanwhile: Option<Object>,
    rereads: u32,
    failures: u32,
    /// Failures that were refusals.
    refusals: u32,
    /// How often it was found that its parent has to go first.
    waits: u32,
    /// After a failure nobody knows how the object stands.
    must_read: bool,
    /// Whether the server has answered how it stands since it was taken up. Lists and watches may be
    /// behind what was written before.
    is_confirmed: bool,
    has_children: bool,
    pub(super) family: Family,
    /// The drain epoch by which its owner must have seen the drain label.
    pub(super) epoch: Option<u64>,
    is_told_overdue: bool,
    /// Nobody of ours seems to have labelled it so; to be told once the server has confirmed it.
    is_suspect: bool,
    /// The count that is under way has come across it.
    is_counted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Doing {
    Write(Step),
    Read,
    /// Of a child's parent, under the so manieth table.
    ReadParent {
        generation: u64,
    },
}

// === impl Works ===

impl Works {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    #[cfg(test)]
    pub(super) fn queued_len(&self) -> usize {
        self.queued.len()
    }

    pub(super) fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        for (name, work) in &self.all {
            match work.object.shard {
                None => traffic.unassigned += 1,
                Some(_) => traffic.moving += 1,
            }
            if work.is_told_overdue && work.is_draining() {
                traffic.overdue += 1;
                traffic.overdue_example.get_or_insert_with(|| name.clone());
            }
        }
        traffic
    }

    pub(super) fn is_asking(&self, token: Token) -> bool {
        self.flights.contains_key(&token)
    }

    pub(super) fn is_listing(&self, token: Token) -> bool {
        self.listings.is_asking(token)
    }

    /// None while no more requests may be sent: an answer comes first.
    pub(super) fn next_due(&self, writes_max: usize) -> Option<Moment> {
        if self.flights.len() < writes_max { self.agenda.next() } else { None }
    }

    pub(super) fn has(&self, name: &ObjectName) -> bool {
        self.all.contains_key(name)
    }

    pub(super) fn is_writing(&self, name: &ObjectName) -> bool {
        let work = self.all.get(name);
        work.is_some_and(|work| matches!(work.doing, Some((_, Doing::Write(_)))))
    }

    /// A list may be behind what was written: the object is read before anybody is accused.
    pub(super) fn suspect(&mut self, name: &ObjectName) {
        if let Some(work) = self.all.get_mut(name) {
            (work.is_suspect, work.must_read) = (true, true);
        }
    }

    pub(super) fn get(&self, name: &ObjectName) -> Option<&Work> {
        self.all.get(name)
    }

    pub(super) fn get_mut(&mut self, name: &ObjectName) -> Option<&mut Work> {
        self.all.get_mut(name)
    }

    /// A count begins.
    pub(super) fn on_count(&mut self) {
        self.all.values_mut().for_each(|work| work.is_counted = false);
    }

    pub(super) fn on_counted(&mut self, name: &ObjectName) {
        if let Some(work) = self.all.get_mut(name) {
            work.is_counted = true;
        }
    }

    pub(super) fn uid(&self, name: &ObjectName) -> Option<Uid> {
        self.all.get(name).map(|work| work.object.uid.clone())
    }

    /// Those that are marked to be given up: few of very many.
    pub(super) fn draining(&self) -> impl Iterator<Item = (&ObjectName, &Work)> {
        debug_assert!(
            self.all.iter().all(|(name, it)| it.is_draining() == self.draining.contains(name)),
            "what is marked is known to be"
        );
        self.draining.iter().filter_map(|name| Some((name, self.all.get(name)?)))
    }

    /// Everything is to be judged again.
    pub(super) fn stir(&mut self, now: Moment) {
        for name in self.all.keys() {
            self.agenda.set(name, now);
        }
    }

    pub(super) fn look_at(&mut self, name: &ObjectName, at: Moment) {
        if self.all.contains_key(name) {
            self.agenda.set(name, at);
        }
    }

    pub(super) fn has_any_of(&self, id: &InstanceId) -> bool {
        self.names_of(id).next().is_some()
    }

    pub(super) fn names_of(&self, id: &InstanceId) -> impl Iterator<Item = &ObjectName> {
        let own = self.all.iter().filter(move |(_, work)| work.is_of(id));
        own.map(|(name, _)| name)
    }

    /// Whether nothing on its way has the id; or no child, if those come first.
    pub(super) fn is_done_with(&self, id: &InstanceId, is_children_only: bool) -> bool {
        let is_child = |work: &Work| matches!(work.role, Role::Child { .. });
        let mut own = self.all.values().filter(|work| work.is_of(id));
        own.all(|work| is_children_only && !is_child(work))
    }

    /// What was taken by force had no chance to send its children ahead: they follow now.
    fn gather_children(&mut self, name: &ObjectName, to: &InstanceId, from: Option<InstanceId>) {
        let Some(work) = self.all.get_mut(name).filter(|work| work.has_children) else { return };
        work.family = Family::Listed { to: to.clone(), is_outdated: false };
        self.listings.want(from, name.clone());
    }

    /// All children of this parent that are on their way go here.
    pub(super) fn redirect_children(
        &mut self,
        parent: &ObjectName,
        to: &InstanceId,
        now: Moment,
    ) -> BTreeSet<ObjectName> {
        let is_child = |work: &Work| match &work.role {
            Role::Child { parent: own, .. } => own == parent,
            Role::Main { .. } | Role::Foreign => false,
        };
        let mut redirected = BTreeSet::new();
        for (name, work) in self.all.iter_mut().filter(|(_, work)| is_child(work)) {
            work.family = Family::Following { to: to.clone() };
            self.agenda.set(name, now);
            redirected.insert(name.clone());
        }
        redirected
    }

    /// Children of what these had are looked for with whomever they are.
    pub(super) fn look_everywhere_for_children_of(&mut self, ids: &BTreeSet<InstanceId>) {
        for work in self.all.values_mut() {
            if let Family::Wanted { from } = &mut work.family
                && from.as_ref().is_some_and(|id| ids.contains(id))
            {
                *from = None;
            }
        }
    }

    /// Whether something is being taken from an instance that is gone.
    pub(super) fn is_taking_from(&self, id: &InstanceId) -> bool {
        let mut flying = self.flights.values().filter_map(|name| self.all.get(name));
        flying.any(|work| {
            let is_taking = matches!(work.doing, Some((_, Doing::Write(Step::TakeOver(_)))));
            is_taking && work.object.shard.as_ref() == Some(id)
        })
    }

    /// The watch no longer shows it.
    pub(super) fn on_not_unassigned(&mut self, name: &ObjectName, now: Moment) {
        let is_idle = |work: &&mut Work| work.doing.is_none() && work.object.shard.is_none();
        let Some(work) = self.all.get_mut(name).filter(is_idle) else { return };
        // Its parent waits for a child that was sent ahead: where it is by now has to be known. And what
        // the server has told to be nobody's may be so still: the watch may be behind, and children have
        // to go before it.
        if matches!(work.family, Family::Following { .. }) || work.is_confirmed {
            work.must_read = true;
            return self.look_at(name, now);
        }
        self.remove(name);
        self.wake_children(name, now);
    }

    pub(super) fn remove(&mut self, name: &ObjectName) -> Option<Work> {
        self.agenda.remove(name);
        self.moving.remove(name);
        self.draining.remove(name);
        self.queued.remove(name);
        let work = self.all.remove(name)?;
        if let Role::Child { parent, .. } = &work.role {
            self.stop_waiting(parent, name);
        }
        Some(work)
    }

    /// The child is looked at when its parent is settled.
    fn wait_for_parent(&mut self, parent: ObjectName, child: ObjectName) {
        self.waiting.entry(parent).or_default().insert(child);
    }

    fn stop_waiting(&mut self, parent: &ObjectName, child: &ObjectName) {
        let Some(children) = self.waiting.get_mut(parent) else { return };
        children.remove(child);
        if children.is_empty() {
            self.waiting.remove(parent);
        }
    }

    /// The parent is settled.
    fn wake_children(&mut self, parent: &ObjectName, now: Moment) {
        for child in self.waiting.remove(parent).unwrap_or_default() {
            if let Some(work) = self.all.get_mut(&child) {
                work.waits = 0;
                self.agenda.set(&child, now);
            }
        }
    }

    fn add(
        &mut self,
        object: Object,
        (role, has_children): (Role, bool),
        family: Family,
        now: Moment,
    ) {
        let name = object.name.clone();
        let work = Work {
            origin: object.shard.clone(),
            object,
            role,
            doing: None,
            meanwhile: None,
            rereads: 0,
            failures: 0,
            refusals: 0,
            waits: 0,
            must_read: false,
            is_confirmed: false,
            has_children,
            family,
            epoch: None,
            is_told_overdue: false,
            is_suspect: false,
            is_counted: false,
        };
        self.all.insert(name.clone(), work);
        self.on_taken_in(&name);
        self.agenda.set(&name, now);
    }

    /// Takes in how an object stands, by the word of the server.
    fn on_told(&mut self, name: &ObjectName, object: Object) {
        if let Some(work) = self.all.get_mut(name) {
            work.on_told(object);
            self.on_taken_in(name);
        }
    }

    fn on_taken_in(&mut self, name: &ObjectName) {
        if self.all.get(name).is_some_and(Work::is_draining) {
            self.draining.insert(name.clone());
        } else {
            self.draining.remove(name);
        }
    }

    /// Whether one more object may be marked to be given up.
    fn may_drain(&self, moves_max: usize) -> bool {
        self.moving.len() < moves_max && self.drain_room() > 0
    }

    /// How many requests that mark an object may be sent now.
    fn drain_room(&self) -> usize {
        let is_first = usize::from(self.drains.is_empty());
        DRAIN_BELOW.saturating_sub(self.flights.len()).max(is_first)
    }

    /// Lets more objects be drained, as far as there is room.
    fn fill_room(&mut self, moves_max: usize, now: Moment) {
        let room = moves_max.saturating_sub(self.moving.len());
        for _ in 0..room.min(self.drain_room()) {
            let Some(name) = self.queued.pop_first() else { return };
            self.look_at(&name, now);
        }
    }
}

// === impl Work ===

impl Work {
    pub(super) fn is_idle(&self) -> bool {
        self.doing.is_none()
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// Whose it was when it was taken up.
    pub(super) fn origin(&self) -> Option<&InstanceId> {
        self.origin.as_ref()
    }

    /// Whether it has to be taken from this instance. An orphan's label says nothing any more.
    fn is_of(&self, id: &InstanceId) -> bool {
        self.role != Role::Foreign && self.object.shard.as_ref() == Some(id)
    }

    pub(super) fn is_draining(&self) -> bool {
        self.object.shard.is_some() && self.object.drain.is_some()
    }
}

// === impl Sharder ===

impl Sharder {
    /// The watch shows an object that is nobody's: new, given up, or stripped by somebody.
    pub(super) fn on_unassigned(&mut self, object: Object, is_listed: bool, now: Moment) {
        let role = self.options.kinds.role(&object);
        if role == Role::Foreign || self.leading_until.is_none() {
            return;
        }
        if let Some(work) = self.works.all.get_mut(&object.name) {
            if work.doing.is_some() {
                work.meanwhile = Some(object);
            } else if object.version.is_newer_than(&work.object.version) {
                // A watch may be behind what a lost answer would have told.
                let name = object.name.clone();
                work.take_in(object);
                self.works.on_taken_in(&name);
                self.works.look_at(&name, now);
            }
            return;
        }
        if self.works.len() >= UNASSIGNED_MAX {
            self.works.has_overflown = true;
            return;
        }
        let has_children = self.options.kinds.has_children(&object.name.kind);
        // Before everything was looked at once, nobody knows where its children are: it may have been
        // given up to another leader, or by one that came back to what it was asked for before.
        let is_new = !is_listed && self.has_counted() && !self.passes.has_overlooked();
        let may_have_children = has_children && !is_new;
        let family = if may_have_children { Family::Wanted { from: None } } else { Family::None };
        self.works.add(object, (role, has_children), family, now);
    }

    /// A pass has come across an object that is not settled.
    pub(super) fn take_up(&mut self, object: Object, role: Role, now: Moment) {
        if let Some(work) = self.works.all.get_mut(&object.name) {
            if work.doing.is_none() && object.version.is_newer_than(&work.object.version) {
                let name = object.name.clone();
                work.take_in(object);
                self.works.on_taken_in(&name);
                self.works.look_at(&name, now);
            }
            return;
        }
        let has_children = self.options.kinds.has_children(&object.name.kind);
        let family =
            if has_children { Family::Wanted { from: object.shard.clone() } } else { Family::None };
        if object.drain.is_some() && object.shard.is_some() {
            self.works.moving.insert(object.name.clone());
        }
        self.works.add(object, (role, has_children), family, now);
    }

    /// A child that follows its parent, which has been given up.
    pub(super) fn take_up_child(&mut self, child: Object, to: &InstanceId, now: Moment) {
        let role = self.options.kinds.role(&child);
        let name = child.name.clone();
        match self.works.all.get_mut(&name) {
            Some(work) => work.family = Family::Following { to: to.clone() },
            None => {
                self.works.add(child, (role, false), Family::Following { to: to.clone() }, now);
            }
        }
        self.works.look_at(&name, now);
    }

    pub(super) fn writes_max(&self) -> usize {
        WRITES_MAX.max(self.options.handover.concurrent_moves)
    }
}

// === impl Work ===

impl Work {
    /// Takes in how the object stands, by the word of the server.
    fn on_told(&mut self, object: Object) {
        (self.must_read, self.is_confirmed) = (false, true);
        let meanwhile = self.meanwhile.take();
        self.take_in(object);
        if let Some(newer) = meanwhile.filter(|it| it.version.is_newer_than(&self.object.version)) {
            self.take_in(newer);
        }
    }

    fn take_in(&mut self, object: Object) {
        // With another owner, its children are to be looked for anew.
        if self.object.shard != object.shard && self.has_children {
            let from = object.shard.clone().or_else(|| self.object.shard.clone());
            self.family = Family::Wanted { from };
        }
        if object.drain.is_none() {
            self.epoch = None;
        }
        self.object = object;
    }
}
