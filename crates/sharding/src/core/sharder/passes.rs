//! Going through objects page by page, one pass at a time: what is not settled is taken up, as far as
//! there is room, and nothing else is kept.

use std::collections::BTreeSet;

use super::departed::{Departed, Search};
use super::message::{Answer, Command, KindSet, Selector, Token};
use super::{CENSUS_EVERY, RESYNC_EVERY, Sharder};
use crate::core::handover::{Owner, Step, Verdict, Wait};
use crate::core::key::Role;
use crate::core::names::InstanceId;
use crate::core::object::Object;
use crate::core::partition::Partition;
use crate::core::time::{Moment, Now};

/// Selectors name at most so many instances; with more, everything is gone through.
const SELECTOR_IDS_MAX: usize = 100;
/// The next page waits while more objects than this are on their way.
const ON_THEIR_WAY_MAX: usize = 2_000;

#[derive(Clone, Debug, Default)]
pub(super) struct Passes {
    departed: BTreeSet<InstanceId>,
    wants_resync: bool,
    /// Instances that may have objects which belong to others.
    donors: BTreeSet<InstanceId>,
    ready_donors: BTreeSet<InstanceId>,
    /// Instances that came, or came back, since the last count began: what they have may be what they
    /// had before.
    returned: BTreeSet<InstanceId>,
    /// The same, of the count that is under way or was the last.
    excused: BTreeSet<InstanceId>,
    /// Instances that may have come back after children were taken from them, or were given parents whose
    /// children had been taken, so that children of what they have are with others. A count takes up those that are elsewhere than their parent belongs,
    /// which tells of all where every parent is where it belongs.
    split: BTreeSet<InstanceId>,
    /// The same, as the count that is under way began.
    split_before: BTreeSet<InstanceId>,
    /// Instances that were told to give something up which is not on its way here, as they were gone when
    /// it was found. They may do so when they come back, and then it is not new: it may have children.
    /// A count takes up what those who are there are to give up, and tells who is not.
    overlooked: BTreeSet<InstanceId>,
    /// The same, as the count that is under way began.
    overlooked_before: BTreeSet<InstanceId>,
    wants_census: bool,
    /// Whether the census comes before everything else.
    is_census_urgent: bool,
    pub(super) resync_at: Moment,
    pub(super) census_at: Moment,
    current: Option<Pass>,
    has_ended: bool,
}

#[derive(Clone, Debug)]
struct Pass {
    purpose: Purpose,
    kinds: KindSet,
    page: Page,
    /// How many objects carried the id of the departed.
    found: usize,
    /// Of those, how many were taken up; the others stay as they are.
    taken_up: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Purpose {
    /// Everything a departed instance has: children first.
    Departed(InstanceId),
    /// Everything that nobody live has.
    Resync,
    /// What a live instance is to give up.
    Donor(InstanceId),
    /// Everything, counted.
    Census,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    /// Waits for room.
    Next {
        is_first: bool,
    },
    Asked(Token),
    /// These kinds are through. Waits until what was found of them is done, where order matters.
    Done,
}

// === impl Passes ===

impl Passes {
    pub(super) fn is_asking(&self, token: Token) -> bool {
        self.current.as_ref().is_some_and(|pass| pass.page == Page::Asked(token))
    }

    pub(super) fn want_departed(&mut self, id: InstanceId) {
        self.departed.insert(id);
    }

    pub(super) fn want_resync(&mut self) {
        self.wants_resync = true;
    }

    pub(super) fn want_census(&mut self, is_urgent: bool) {
        self.wants_census = true;
        self.is_census_urgent |= is_urgent;
    }

    pub(super) fn add_donors(&mut self, donors: impl IntoIterator<Item = InstanceId>) {
        let donors: Vec<InstanceId> = donors.into_iter().collect();
        self.donors.extend(donors);
    }

    /// Whether what it has may belong to others by right.
    fn is_donor(&self, id: &InstanceId) -> bool {
        let is_under_way = match self.current.as_ref().map(|pass| &pass.purpose) {
            Some(Purpose::Donor(donor)) => donor == id,
            _ => false,
        };
        let those = [&self.donors, &self.ready_donors, &self.returned, &self.excused];
        is_under_way || those.iter().any(|ids| ids.contains(id))
    }

    /// What these have may belong to others until everything was counted once more.
    pub(super) fn excuse(&mut self, ids: impl IntoIterator<Item = InstanceId>) {
        self.returned.extend(ids);
    }

    /// A child was taken from this instance, and its parent may never be; or it was given a parent whose
    /// children were taken before.
    pub(super) fn on_split(&mut self, id: InstanceId) {
        self.split.insert(id);
    }

    pub(super) fn is_split(&self, id: &InstanceId) -> bool {
        self.split.contains(id) || self.split_before.contains(id)
    }

    /// This instance has something to give up that is not on its way.
    pub(super) fn on_overlooked(&mut self, id: InstanceId) {
        self.overlooked.insert(id);
    }

    /// Whether anybody has.
    pub(super) fn has_overlooked(&self) -> bool {
        !self.overlooked.is_empty() || !self.overlooked_before.is_empty()
    }

    /// Members have changed: whoever still has what belongs to others is gone through again.
    pub(super) fn want_donors(&mut self) {
        self.ready_donors.extend(self.donors.iter().cloned());
    }

    /// Whether a pass has ended since this was asked.
    pub(super) fn take_ended(&mut self) -> bool {
        std::mem::take(&mut self.has_ended)
    }

    pub(super) fn is_counting(&self) -> bool {
        self.current.as_ref().is_some_and(|pass| pass.purpose == Purpose::Census)
    }

    fn is_idle(&self) -> bool {
        self.departed.is_empty()
            && !self.wants_resync
            && self.ready_donors.is_empty()
            && !self.wants_census
    }

    fn next(&mut self) -> Option<Purpose> {
        if self.is_census_urgent {
            (self.is_census_urgent, self.wants_census) = (false, false);
            return Some(Purpose::Census);
        }
        if let Some(id) = self.departed.pop_first() {
            return Some(Purpose::Departed(id));
        }
        if std::mem::take(&mut self.wants_resync) {
            return Some(Purpose::Resync);
        }
        if let Some(id) = self.ready_donors.pop_first() {
            self.donors.remove(&id);
            return Some(Purpose::Donor(id));
        }
        std::mem::take(&mut self.wants_census).then_some(Purpose::Census)
    }
}

// === impl Sharder ===

impl Sharder {
    pub(super) fn tend_passes(&mut self, now: Now) {
        if now.mono >= self.passes.resync_at || self.works.has_overflown {
            self.works.has_overflown = false;
            self.passes.resync_at = now.mono + RESYNC_EVERY;
            self.passes.want_resync();
            self.departures.try_refused_again();
        }
        if now.mono >= self.passes.census_at {
            self.passes.census_at = now.mono + CENSUS_EVERY;
            self.passes.want_census(false);
        }
        if !self.membership.is_read() {
            return;
        }
        // One that ends makes room for the next.
        loop {
            self.give_way();
            if self.passes.current.is_none() {
                self.begin_pass();
            }
            self.go_on(now);
            if self.passes.current.is_some() || self.passes.is_idle() {
                return;
            }
        }
    }

    fn begin_pass(&mut self) {
        let Some(purpose) = self.passes.next() else { return };
        let kinds = match purpose {
            Purpose::Departed(_) => KindSet::Controlled,
            Purpose::Resync | Purpose::Donor(_) | Purpose::Census => KindSet::Main,
        };
        if purpose == Purpose::Census {
            self.census.begin();
            self.works.on_count();
            self.passes.excused = std::mem::take(&mut self.passes.returned);
            self.passes.split_before = std::mem::take(&mut self.passes.split);
            self.passes.overlooked_before = std::mem::take(&mut self.passes.overlooked);
        }
        let page = Page::Next { is_first: true };
        self.passes.current = Some(Pass { purpose, kinds, page, found: 0, taken_up: 0 });
    }

    fn go_on(&mut self, now: Now) {
        let Some(pass) = &self.passes.current else { return };
        match pass.page {
            Page::Asked(_) => {}
            Page::Next { is_first } if self.has_room(&pass.purpose) => {
                let (kinds, selector) = (pass.kinds, self.selector(&pass.purpose));
                let token = self.token();
                self.out.push(Command::ListPage { token, kinds, selector, is_first });
                self.turn_page(Page::Asked(token));
            }
            Page::Next { .. } => {}
            Page::Done => self.end_kinds(now),
        }
    }

    /// What is found has to be remembered until it is settled. What a departed instance had waits for
    /// nobody else's objects; and without a table nothing is taken up at all.
    fn has_room(&self, purpose: &Purpose) -> bool {
        match purpose {
            Purpose::Departed(id) => self.works.names_of(id).count() < ON_THEIR_WAY_MAX,
            _ => self.membership.table().is_none() || self.works.len() < ON_THEIR_WAY_MAX,
        }
    }

    /// A pass that waits for room may wait for long, and what the departed had is nobody's.
    fn give_way(&mut self) {
        let Some(pass) = &self.passes.current else { return };
        let is_waiting = matches!(pass.page, Page::Next { .. }) && !self.has_room(&pass.purpose);
        let is_departed = matches!(pass.purpose, Purpose::Departed(_));
        if is_waiting && !is_departed && !self.passes.departed.is_empty() {
            self.begin_anew();
        }
    }

    fn turn_page(&mut self, page: Page) {
        if let Some(pass) = &mut self.passes.current {
            pass.page = page;
        }
    }

    fn selector(&self, purpose: &Purpose) -> Selector {
        let live = self.membership.live();
        match purpose {
            Purpose::Departed(id) | Purpose::Donor(id) => Selector::Of(id.clone()),
            Purpose::Resync if live.len() <= SELECTOR_IDS_MAX => Selector::NotOf(live),
            Purpose::Resync | Purpose::Census => Selector::All,
        }
    }

    pub(super) fn on_page(&mut self, now: Now, token: Token, answer: Answer) {
        debug_assert!(self.passes.is_asking(token));
        let Answer::Page { objects, is_last } = answer else {
            return self.begin_anew();
        };
        for object in objects {
            let name = object.name.clone();
            let is_main = self.options.kinds.main.contains_key(&name.kind);
            let asked = object.shard.clone().filter(|_| is_main && object.drain.is_some());
            let is_found = self.consider(object, now);
            if let Some(asked) = asked.filter(|_| !self.works.has(&name)) {
                self.passes.on_overlooked(asked);
            }
            if self.passes.is_counting() {
                self.works.on_counted(&name);
            }
            if let Some(pass) = self.passes.current.as_mut().filter(|_| is_found) {
                pass.found += 1;
                pass.taken_up += usize::from(self.works.has(&name));
            }
        }
        self.turn_page(if is_last { Page::Done } else { Page::Next { is_first: false } });
    }

    /// What was counted so far would be counted twice.
    fn begin_anew(&mut self) {
        let Some(pass) = self.passes.current.take() else { return };
        match pass.purpose {
            Purpose::Departed(id) => self.passes.want_departed(id),
            Purpose::Resync => self.passes.want_resync(),
            Purpose::Donor(id) => {
                self.passes.donors.insert(id.clone());
                self.passes.ready_donors.insert(id);
            }
            Purpose::Census => {
                let is_lost = self.membership.table().is_none();
                self.passes.returned.append(&mut self.passes.excused);
                self.passes.split.append(&mut self.passes.split_before);
                self.passes.overlooked.append(&mut self.passes.overlooked_before);
                self.passes.want_census(is_lost);
            }
        }
    }

    /// The kinds of a pass are through: the others follow, or it ends.
    fn end_kinds(&mut self, now: Now) {
        let Some(pass) = &mut self.passes.current else { return };
        let first = Page::Next { is_first: true };
        match (&pass.purpose, pass.kinds) {
            (Purpose::Departed(id), KindSet::Controlled) => {
                // Children first: their parents are looked for when none is left.
                if pass.found > 0 {
                    return self.end_pass(now);
                }
                if let Some(departed) = self.departures.get_mut(id) {
                    departed.on_no_children();
                    self.works.stir(now.mono);
                }
                (pass.kinds, pass.page) = (KindSet::Main, first);
                self.go_on(now);
            }
            (Purpose::Resync | Purpose::Census, KindSet::Main) => {
                (pass.kinds, pass.page) = (KindSet::Controlled, first);
                self.go_on(now);
            }
            _ => self.end_pass(now),
        }
    }

    fn end_pass(&mut self, now: Now) {
        let Some(pass) = self.passes.current.take() else { return };
        self.passes.has_ended = true;
        match pass.purpose {
            Purpose::Departed(id) => {
                if let Some(departed) = self.departures.get_mut(&id) {
                    departed.on_searched(pass.found, pass.taken_up);
                }
            }
            Purpose::Census => {
                // What was given up meanwhile belongs to nobody, so the count tells nothing of it.
                let split = std::mem::take(&mut self.passes.split_before);
                self.works.look_everywhere_for_children_of(&split);
                self.passes.overlooked_before.clear();
                self.on_counted(now);
            }
            Purpose::Resync | Purpose::Donor(_) => {}
        }
    }

    /// Takes the object up if it is not settled; whether it is one that the pass looks for because its
    /// owner is gone.
    fn consider(&mut self, object: Object, now: Now) -> bool {
        let Some(pass) = &self.passes.current else { return false };
        let is_census = pass.purpose == Purpose::Census;
        let is_departed_pass = matches!(pass.purpose, Purpose::Departed(_));
        let is_found =
            matches!(&pass.purpose, Purpose::Departed(id) if object.shard.as_ref() == Some(id));
        let role = self.options.kinds.role(&object);
        if role == Role::Foreign {
            self.consider_foreign(object, now);
            return false;
        }
        // What leaves the ring is no part of anybody's share.
        let is_counted = is_census && self.is_selected(&object.name);
        if let (true, Role::Main { key }) = (is_counted, &role) {
            self.count(&object, key);
        }
        if let Some(id) = &object.shard {
            self.roster.on_carried(id, now.mono);
        }
        let is_gone = matches!(self.owner_of(&object, now), Some(Owner::Gone { .. }));
        if object.shard.as_ref().is_some_and(|id| self.departures.is_refused(id, &object.name)) {
            return false;
        }
        // What the departed have is gone through in its own order.
        if is_gone && !is_departed_pass {
            if is_census {
                self.stay_split(&object);
            }
            self.search_again(&object);
            return is_found;
        }
        match &role {
            // Without a table nothing can be said about any object.
            _ if self.membership.table().is_none() => {}
            Role::Foreign => {}
            Role::Main { key } => {
                let verdict = self.verdict(&object, key, None, now);
                let is_stray = is_census && self.is_stray(&object, &verdict);
                if is_census && verdict != Verdict::Settled {
                    self.stay_split(&object);
                }
                let name = object.name.clone();
                self.take_up_main(object, role, &verdict, now);
                if is_stray {
                    self.works.suspect(&name);
                }
            }
            Role::Child { .. } => self.consider_child(object, role, is_gone, now),
        }
        is_found
    }

    /// It is not where it belongs, so a child that is where it belongs is not with it.
    fn stay_split(&mut self, object: &Object) {
        let Some(id) = &object.shard else { return };
        if !self.has_counted() || self.passes.is_split(id) {
            self.passes.on_split(id.clone());
        }
    }

    /// With whom the children of an object are that this instance gave up: with it, as far as is known.
    pub(super) fn whose_children(&self, from: Option<InstanceId>) -> Option<InstanceId> {
        from.filter(|id| self.has_counted() && !self.passes.is_split(id))
    }

    /// Whether nobody of ours can have labelled it so. Those who have to give something up are gone
    /// through before everything is counted, so what is found then, with somebody who has not, was
    /// moved by another. What leaves the ring is asked back from whoever has it. After a change of
    /// leaders nothing is known of any of that.
    fn is_stray(&self, object: &Object, verdict: &Verdict) -> bool {
        let is_asked_back = *verdict == Verdict::Write(Step::Drain);
        let is_explained = self.works.has(&object.name)
            || object.shard.as_ref().is_none_or(|id| self.passes.is_donor(id));
        let stays = self.is_selected(&object.name);
        self.has_counted() && stays && is_asked_back && !is_explained
    }

    fn take_up_main(&mut self, object: Object, role: Role, verdict: &Verdict, now: Now) {
        let is_draining = object.drain.is_some();
        let stays = matches!(verdict, Verdict::Wait(Wait::Owner | Wait::Target | Wait::Instance));
        match verdict {
            Verdict::Settled => {}
            // It stays where it is for now; a change of members looks for it again.
            _ if stays && object.shard.is_some() && !is_draining => {
                self.passes.add_donors(object.shard);
            }
            _ => self.take_up(object, role, now.mono),
        }
    }

    /// Nothing of the ring controls it, and nobody has to be waited for: only its labels are to go. It
    /// is never what a pass looks for, so one that cannot be written is in nobody's way.
    fn consider_foreign(&mut self, object: Object, now: Now) {
        let is_labelled = object.shard.is_some() || object.drain.is_some();
        let is_orphan = is_labelled && self.options.kinds.is_orphan(&object);
        if is_orphan && self.membership.table().is_some() {
            self.take_up(object, Role::Foreign, now.mono);
        }
    }

    fn consider_child(&mut self, object: Object, role: Role, is_gone: bool, now: Now) {
        let Role::Child { key, parent } = &role else { return };
        let is_leaving = self.options.leaving.contains(&object.name.kind);
        let is_unsettled = if self.is_selected(parent) && !is_leaving {
            let wanted = self.table().and_then(|table| table.owner(key));
            object.shard.is_none() || object.shard.as_ref() != wanted
        } else {
            object.shard.is_some()
        };
        if is_gone || is_unsettled {
            self.take_up(object, role, now.mono);
        }
    }

    /// An instance that was thought to have nothing left, or nothing that anybody can take, has
    /// something.
    fn search_again(&mut self, object: &Object) {
        let departed = object.shard.as_ref().and_then(|id| self.departures.get_mut(id));
        let is_at_rest = |it: &&mut Departed| matches!(it.search, Search::Clean | Search::Stranded);
        if let Some(departed) = departed.filter(is_at_rest) {
            departed.search = Search::Wanted;
        }
    }
}
