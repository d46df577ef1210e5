//! Leases of instances that are gone. The sharder takes one before it moves anything, holds it while
//! it does, and gives it back: nobody comes back in between and works on what is being taken.

use std::collections::BTreeMap;
use std::time::Duration;

use super::message::{Answer, Command, News, Token};
use super::{ById, Sharder};
use crate::core::lease::{DURATION_DEFAULT, Lease};
use crate::core::membership::{Due, Standing, State, Suspect};
use crate::core::names::InstanceId;
use crate::core::object::ObjectName;
use crate::core::time::{Moment, Now};

/// The part of D by which a hold ends early for us, and within which every request has ended.
const MARGIN: u32 = 5;
/// Objects that cannot be written are remembered, by instance. With more, it is not gone on until
/// everything is looked for next.
const REFUSED_MAX: usize = 1_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Departures(ById<Departed>);

/// One instance that is gone, or about to be declared so.
#[derive(Clone, Debug, Default)]
pub(super) struct Departed {
    /// We hold its Lease until then, and may move its objects.
    held_until: Option<Moment>,
    renew_at: Moment,
    asking: Option<Asking>,
    /// After an attempt that did not succeed the Lease is read before the next.
    must_read: bool,
    not_before: Moment,
    pub(super) search: Search,
    /// Of what the last search took up, how much stays where it is: there is nobody to take it.
    stayed: usize,
    /// Something has changed since the last search began: what had nowhere to go may have by now.
    is_outdated: bool,
    /// Whether every child has been moved that can be, so that parents may be.
    has_no_children: bool,
    /// Objects that could not be written time and again. They stay where they are, and keep nothing
    /// else from going, until they are tried again with the rest.
    refused: BTreeMap<ObjectName, Refused>,
    /// Whether it has been told that its Lease's name is taken.
    is_told_taken: bool,
}

/// An object that cannot be written.
#[derive(Clone, Debug)]
struct Refused {
    /// Of a child: it must not go first.
    parent: Option<ObjectName>,
    /// Whether it is looked for once more.
    is_tried_again: bool,
}

#[derive(Clone, Debug)]
struct Asking {
    token: Token,
    sent: Moment,
    what: Request,
    /// Whether a Lease is to be created.
    is_new: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Acquire,
    GiveBack,
    Delete,
    Read,
}

/// Whether objects still carry its id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Search {
    /// Nobody has looked. Waits for a pass.
    #[default]
    Wanted,
    /// A pass is looking, or will.
    Under,
    /// There are some, so many of them taken up. When those are done, it is looked again.
    Found { taken_up: usize },
    /// There are some, and nobody can take any. A change looks for them again.
    Stranded,
    /// There are none.
    Clean,
}

// === impl Departures ===

impl Departures {
    pub(super) fn is_asking(&self, token: Token) -> bool {
        self.asked_by(token).is_some()
    }

    pub(super) fn next_due(&self, now: Moment) -> Option<Moment> {
        let waiting = self.0.values().filter(|departed| departed.asking.is_none());
        let moments = waiting.flat_map(|departed| [departed.not_before, departed.renew_at]);
        moments.filter(|at| *at > now).min()
    }

    /// Members, or what the ring has, are others than before.
    pub(super) fn on_changed(&mut self) {
        self.0.values_mut().for_each(Departed::on_changed);
    }

    pub(super) fn get_mut(&mut self, id: &InstanceId) -> Option<&mut Departed> {
        self.0.get_mut(id)
    }

    /// Whether this object of its may be moved at this moment; a main one only after all children that
    /// can be, and after all its own.
    pub(super) fn is_held(
        &self,
        id: &InstanceId,
        (name, is_child): (&ObjectName, bool),
        now: Moment,
    ) -> bool {
        let Some(departed) = self.0.get(id) else { return false };
        let is_held = departed.held_until.is_some_and(|until| now < until);
        is_held && (is_child || (departed.has_no_children && !departed.is_kept_back(name)))
    }

    /// Whether a child of this object cannot be moved, so that it stays too.
    pub(super) fn is_kept_back(&self, id: &InstanceId, name: &ObjectName) -> bool {
        self.0.get(id).is_some_and(|departed| departed.is_kept_back(name))
    }

    /// Whether this object is left where it is because it could not be written, or a child of it could
    /// not.
    pub(super) fn is_refused(&self, id: &InstanceId, name: &ObjectName) -> bool {
        let departed = self.0.get(id);
        let mut refused = departed.into_iter().flat_map(|departed| &departed.refused);
        refused.any(|(own, refused)| {
            !refused.is_tried_again && (own == name || refused.parent.as_ref() == Some(name))
        })
    }

    /// Some time has passed: what could not be written may be by now. That members changed is no reason,
    /// for taking a Lease and giving it back are such changes.
    pub(super) fn try_refused_again(&mut self) {
        self.0.values_mut().for_each(Departed::try_refused_again);
    }

    /// Nothing is left to do with this object.
    pub(super) fn on_done(&mut self, name: &ObjectName) {
        for departed in self.0.values_mut() {
            departed.refused.remove(name);
        }
    }

    /// An object of an instance that is gone cannot be written: it is left alone. Of a child, the parent
    /// is named too.
    pub(super) fn on_refused(
        &mut self,
        object: ObjectName,
        (owner, parent): (InstanceId, Option<ObjectName>),
    ) {
        let Some(departed) = self.0.get_mut(&owner) else { return };
        departed.stayed += 1;
        if departed.refused.len() < REFUSED_MAX || departed.refused.contains_key(&object) {
            departed.refused.insert(object, Refused { parent, is_tried_again: false });
        }
    }

    /// How many objects cannot be written, and one of them.
    pub(super) fn refused(&self) -> (usize, Option<&ObjectName>) {
        let all = || self.0.values().flat_map(|departed| departed.refused.keys());
        (all().count(), all().next())
    }

    fn asked_by(&self, token: Token) -> Option<InstanceId> {
        let is_asked = |departed: &Departed| {
            departed.asking.as_ref().is_some_and(|asking| asking.token == token)
        };
        self.0.iter().find(|(_, departed)| is_asked(departed)).map(|(id, _)| id.clone())
    }
}

// === impl Sharder ===

impl Sharder {
    /// How long a request may take: what is sent while a Lease is held has ended before the hold has.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        let shortest = self.roster.shortest_duration().unwrap_or(DURATION_DEFAULT);
        shortest.min(DURATION_DEFAULT) / MARGIN
    }

    pub(super) fn tend_departures(&mut self, now: Now) {
        let members = self.roster.members(now);
        let is_departed = |standing: &Standing| standing.state.is_gone() || standing.due.is_some();
        let departed = members.into_iter().filter(|member| is_departed(&member.standing));
        let departed: ById<Standing> =
            departed.map(|member| (member.id, member.standing)).collect();
        self.departures.0.retain(|id, _| departed.contains_key(id));
        for (id, standing) in departed {
            self.tend_departed(&id, standing, now);
        }
    }

    fn tend_departed(&mut self, id: &InstanceId, standing: Standing, now: Now) {
        let is_nowhere = self.roster.is_nowhere(id);
        let is_dead = is_nowhere || self.roster.lease(id).is_some_and(|lease| self.is_ours(lease));
        let departed = self.departures.0.entry(id.clone()).or_default();
        if !is_dead {
            departed.held_until = None;
        }
        if departed.asking.is_some() || now.mono < departed.not_before {
            return;
        }
        if departed.must_read {
            return self.ask(id, Request::Read, now);
        }
        if standing.due == Some(Due::Acquire) {
            return self.ask(id, Request::Acquire, now);
        }
        match departed.search {
            Search::Found { .. } if !self.works.is_done_with(id, !departed.has_no_children) => {
                self.keep_hold(id, is_dead, now);
            }
            // Looked for at once, all of it would be found again.
            Search::Found { taken_up } if departed.stayed >= taken_up && !departed.is_outdated => {
                departed.search = Search::Stranded;
                self.keep_hold(id, is_dead, now);
            }
            Search::Wanted | Search::Found { .. } if departed.is_given_up() => {
                departed.search = Search::Stranded;
            }
            Search::Wanted | Search::Found { .. } => {
                departed.search = Search::Under;
                (departed.stayed, departed.is_outdated) = (0, false);
                self.passes.want_departed(id.clone());
            }
            Search::Under | Search::Stranded => self.keep_hold(id, is_dead, now),
            Search::Clean if is_nowhere => self.roster.forget_missing(id),
            Search::Clean if is_dead => self.ask(id, Request::GiveBack, now),
            Search::Clean if standing.state == State::Orphan => {
                self.ask(id, Request::Delete, now);
            }
            Search::Clean => {}
        }
    }

    /// Takes the Lease, or holds on to it, while there is something to move and somebody to take it,
    /// or something that nobody is to take.
    fn keep_hold(&mut self, id: &InstanceId, is_dead: bool, now: Now) {
        let departed = &self.departures.0[id];
        let has_found =
            matches!(departed.search, Search::Found { .. }) || self.works.has_any_of(id);
        let has_taker = self.membership.has_ready_but(id) || self.has_leaving_of(id);
        let can_move = has_taker && !self.roster.is_contested(id, now);
        let needs_more = departed.held_until.is_none() || now.mono >= departed.renew_at;
        // What is left cannot be written: an instance that comes back is not to wait for that.
        let is_stuck = departed.search == Search::Stranded && !departed.refused.is_empty();
        if has_found && can_move && needs_more {
            self.ask(id, Request::Acquire, now);
        } else if (!can_move || (is_stuck && !has_found)) && is_dead {
            self.ask(id, Request::GiveBack, now);
        }
    }

    /// Whether anything on its way from this instance leaves the ring.
    fn has_leaving_of(&self, id: &InstanceId) -> bool {
        self.works.names_of(id).any(|name| !self.is_selected(name))
    }

    fn ask(&mut self, id: &InstanceId, what: Request, now: Now) {
        if what == Request::GiveBack && self.works.is_taking_from(id) {
            return;
        }
        let suspect = self.roster.suspect(id);
        let is_new = matches!(suspect, Some(Suspect::NoLease { .. })) && what == Request::Acquire;
        if is_new && !id.is_possible() {
            return self.hold_nowhere(id, now.mono, now.mono);
        }
        if self.roster.is_nowhere(id) && what == Request::GiveBack {
            return self.let_go(id);
        }
        let token = self.token();
        let command = match (suspect, what) {
            (None, _) => return,
            (Some(Suspect::Lease(lease)), what) => self.request(token, *lease, what, now),
            (Some(Suspect::NoLease { namespace, duration }), Request::Acquire) => {
                let namespace = namespace.unwrap_or_else(|| self.options.home.clone());
                let sharder = self.options.names.sharder_holder();
                let lease = Lease::recreated(id.clone(), namespace, (sharder, duration), now.wall);
                Command::WriteLease { token, lease: Box::new(lease), is_new: true }
            }
            (Some(Suspect::NoLease { namespace, .. }), _) => {
                let namespace = namespace.unwrap_or_else(|| self.options.home.clone());
                Command::ReadLease { token, id: id.clone(), namespace }
            }
        };
        if what == Request::GiveBack {
            // Whatever becomes of the request, nothing is moved any more.
            self.let_go(id);
        }
        let departed = self.departures.0.entry(id.clone()).or_default();
        departed.asking = Some(Asking { token, sent: now.mono, what, is_new });
        self.out.push(command);
    }

    fn let_go(&mut self, id: &InstanceId) {
        if let Some(departed) = self.departures.0.get_mut(id) {
            departed.held_until = None;
        }
    }

    /// No Lease of this id can be created, so nobody holds one. Whoever makes that possible and then
    /// creates it waits, before it works, for as long as we would have held one.
    fn hold_nowhere(&mut self, id: &InstanceId, sent: Moment, now: Moment) {
        self.roster.on_nowhere(id);
        self.works.stir(now);
        let duration = self.roster.duration(id);
        let Some(departed) = self.departures.0.get_mut(id) else { return };
        departed.held_until = Some(sent + (duration * 2).saturating_sub(duration / MARGIN));
        departed.renew_at = sent + duration;
        if departed.search == Search::Clean {
            departed.search = Search::Wanted;
        }
    }

    fn request(&self, token: Token, lease: Lease, what: Request, now: Now) -> Command {
        let sharder = self.options.names.sharder_holder();
        match what {
            Request::Acquire => {
                let lease = Box::new(lease.acquired(sharder, now.wall));
                Command::WriteLease { token, lease, is_new: false }
            }
            Request::GiveBack => {
                let lease = Box::new(lease.given_back(sharder, now.wall));
                Command::WriteLease { token, lease, is_new: false }
            }
            Request::Delete => Command::DeleteLease { token, lease: Box::new(lease) },
            Request::Read => Command::ReadLease { token, id: lease.id, namespace: lease.namespace },
        }
    }

    pub(super) fn on_departure_answered(&mut self, now: Now, token: Token, answer: Answer) {
        let Some(id) = self.departures.asked_by(token) else { return };
        let Some(departed) = self.departures.0.get_mut(&id) else { return };
        let Some(asking) = departed.asking.take() else { return };
        let pause = self.roster.duration(&id) / MARGIN;
        match answer {
            Answer::Lease(lease) => {
                departed.must_read = false;
                if asking.what == Request::Acquire {
                    let margin = lease.duration(self.options.names.sharder_holder()) / MARGIN;
                    let held_for = lease.stated_duration().saturating_sub(margin);
                    departed.held_until = Some(asking.sent + held_for);
                    departed.renew_at = asking.sent + lease.stated_duration() / 2;
                    if departed.search == Search::Clean {
                        departed.search = Search::Wanted;
                    }
                }
                self.roster.on_seen(*lease, now.mono);
                self.works.stir(now.mono);
            }
            Answer::Gone if asking.is_new => self.hold_nowhere(&id, asking.sent, now.mono),
            Answer::Gone => {
                departed.must_read = false;
                departed.not_before = now.mono + pause;
                self.forget_lease(&id, now.mono);
            }
            Answer::NotOfRing => {
                departed.must_read = false;
                departed.not_before = now.mono + self.roster.duration(&id);
                self.tell_name_taken(&id);
            }
            Answer::Conflict => departed.must_read = true,
            _ => {
                departed.must_read = true;
                departed.not_before = now.mono + pause.max(Duration::from_millis(1));
            }
        }
    }

    /// Its own Lease may be hidden by a label that somebody changed, and its holder alive: what it has
    /// stays with it.
    fn tell_name_taken(&mut self, id: &InstanceId) {
        let Some(Suspect::NoLease { namespace, .. }) = self.roster.suspect(id) else { return };
        let Some(departed) = self.departures.0.get_mut(id) else { return };
        if !std::mem::replace(&mut departed.is_told_taken, true) {
            let namespace = namespace.unwrap_or_else(|| self.options.home.clone());
            self.out.push(Command::Tell(News::NameTaken { id: id.clone(), namespace }));
        }
    }

    /// The Lease is not there. An id that no object carries needs none.
    fn forget_lease(&mut self, id: &InstanceId, now: Moment) {
        if let Some(lease) = self.roster.lease(id) {
            let namespace = lease.namespace.clone();
            self.roster.on_deleted(id, &namespace, now);
        }
    }

    fn is_ours(&self, lease: &Lease) -> bool {
        let sharder = self.options.names.sharder_holder();
        lease.holder.as_deref() == Some(sharder)
    }
}

// === impl Departed ===

impl Departed {
    /// A pass has gone through everything that carries its id.
    pub(super) fn on_searched(&mut self, found: usize, taken_up: usize) {
        // What was tried again and is not there is gone.
        if found == 0 {
            self.refused.retain(|_, refused| !refused.is_tried_again);
        }
        self.search = match (found, taken_up) {
            (0, _) if self.refused.is_empty() => Search::Clean,
            (0, _) if self.is_outdated => Search::Wanted,
            (0, _) => Search::Stranded,
            (_, 0) if self.is_outdated => Search::Wanted,
            (_, 0) => Search::Stranded,
            (_, taken_up) => Search::Found { taken_up },
        };
    }

    /// A pass has gone through all children that carry its id, and there was none but those refused.
    pub(super) fn on_no_children(&mut self) {
        self.has_no_children = true;
        self.refused.retain(|_, refused| !refused.is_tried_again || refused.parent.is_none());
    }

    /// Whether so much cannot be written that the rest is not tried.
    fn is_given_up(&self) -> bool {
        let refused = self.refused.values().filter(|refused| !refused.is_tried_again);
        refused.count() >= REFUSED_MAX
    }

    fn is_kept_back(&self, name: &ObjectName) -> bool {
        self.refused.values().any(|refused| refused.parent.as_ref() == Some(name))
    }

    fn try_refused_again(&mut self) {
        if self.refused.is_empty() {
            return;
        }
        self.refused.values_mut().for_each(|refused| refused.is_tried_again = true);
        self.has_no_children = false;
        self.on_changed();
    }

    /// What had nowhere to go may have now.
    fn on_changed(&mut self) {
        match self.search {
            Search::Stranded => self.search = Search::Wanted,
            _ => self.is_outdated = true,
        }
    }

    /// Something that was taken up has nowhere to go.
    pub(super) fn on_stayed(&mut self) {
        self.stayed += 1;
    }
}
