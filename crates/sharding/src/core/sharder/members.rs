//! The table, and who is in it. A new table is kept before any label follows it.

use std::collections::{BTreeMap, BTreeSet};

use super::message::{Answer, Command, News, Token};
use super::{ById, Sharder};
use crate::core::membership::{Member, State};
use crate::core::names::InstanceId;
use crate::core::object::Version;
use crate::core::partition::table::Kept;
use crate::core::partition::{Load, Partition, Ring, Share, Slots, Table};
use crate::core::spec::Algorithm;
use crate::core::time::Now;

/// With more instances than a quarter of the slots, shares get too uneven.
const SLOTS_PER_INSTANCE_MIN: usize = 4;

#[derive(Clone, Debug, Default)]
pub(super) struct Membership {
    table: Option<Table>,
    epoch: u64,
    /// How many tables have been used.
    generation: u64,
    /// Of the Ring; none before it was read.
    version: Option<Version>,
    /// Whether what was read had no table, so that it has to be made from the labels.
    is_lost: bool,
    writing: Option<(Token, Table)>,
    states: ById<(State, u32)>,
    told_too_many: bool,
    /// Instances whose weight cannot be read, and of whom that was told.
    told_unreadable: BTreeSet<InstanceId>,
    /// State labels that were asked for and are not seen yet.
    shown: BTreeMap<(InstanceId, String), &'static str>,
}

// === impl Membership ===

impl Membership {
    pub(super) fn table(&self) -> Option<&Table> {
        self.table.as_ref()
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether it is known what the Ring says.
    pub(super) fn is_read(&self) -> bool {
        self.version.is_some()
    }

    /// Whether the table waits for the census.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost && self.table.is_none()
    }

    pub(super) fn is_asking(&self, token: Token) -> bool {
        self.writing.as_ref().is_some_and(|(asked, _)| *asked == token)
    }

    pub(super) fn is_ready(&self, id: &InstanceId) -> bool {
        self.states.get(id).is_some_and(|(state, _)| *state == State::Ready)
    }

    /// Those whose objects stay with them.
    pub(super) fn live(&self) -> BTreeSet<InstanceId> {
        let live = self.states.iter().filter(|(_, (state, _))| state.keeps_objects());
        live.map(|(id, _)| id.clone()).collect()
    }

    /// Whether somebody else could take what this instance has.
    pub(super) fn has_ready_but(&self, id: &InstanceId) -> bool {
        let mut others = self.states.iter().filter(|(other, _)| *other != id);
        others.any(|(_, (state, weight))| *state == State::Ready && *weight > 0)
    }
}

// === impl Sharder ===

impl Sharder {
    pub(super) fn on_table_read(&mut self, kept: Option<Kept>, version: Version, now: Now) {
        self.membership.version = Some(version);
        if self.options.partitioning.algorithm == Algorithm::Ring {
            self.membership.table.get_or_insert_with(|| Table::Ring(Ring::default()));
            return;
        }
        let slots = kept.as_ref().and_then(|kept| Some((kept.epoch, kept.read().ok()?)));
        let slots = slots.filter(|(_, slots)| slots.count() == self.options.partitioning.slots);
        match slots {
            Some((epoch, slots)) => {
                self.membership.epoch = epoch;
                let read = Table::Slots(slots);
                let before = self.membership.table.clone();
                let is_not_kept = self.census.take_not_kept();
                self.passes.excuse(before.iter().flat_map(|before| before.donors(&read)));
                // Not what was gone by so far: the answer to a write was lost, or another leads too.
                if before.is_some_and(|before| before != read) {
                    self.adopt(read, now);
                } else {
                    self.membership.table = Some(read);
                    if is_not_kept {
                        self.even_out_again(now);
                    }
                }
            }
            None => {
                self.membership.is_lost = true;
                self.passes.want_census(true);
            }
        }
    }

    /// Sees who is there, and gives those who came or went their share.
    pub(super) fn tend_membership(&mut self, now: Now) {
        let members = self.roster.members(now);
        let states = members.iter().map(|it| (it.id.clone(), (it.standing.state, it.weight)));
        let states: ById<(State, u32)> = states.collect();
        if states != self.membership.states {
            self.tell_changes(&states);
            self.passes.excuse(returned(&self.membership.states, &states));
            self.membership.states = states;
            self.departures.on_changed();
            self.works.stir(now.mono);
            self.passes.want_resync();
            self.passes.want_donors();
        }
        self.tell_unreadable_weights();
        self.show_states(&members);
        self.follow_members(&members, now);
    }

    fn follow_members(&mut self, members: &[Member], now: Now) {
        if self.membership.writing.is_some() {
            return;
        }
        let shares = shares(members);
        let Some(table) = &self.membership.table else { return };
        if table.differs_from(&shares) {
            let next = table.with_members(&shares, &Load::unknown());
            self.propose(next, now);
        }
    }

    /// Uses the table once it is kept; one that is not kept, at once.
    pub(super) fn propose(&mut self, next: Table, now: Now) {
        let Table::Slots(slots) = &next else { return self.adopt(next, now) };
        let Some(version) = self.membership.version.clone() else { return };
        let kept = Kept::new(self.membership.epoch + 1, slots);
        let token = self.token();
        self.membership.writing = Some((token, next));
        self.out.push(Command::WriteTable { token, kept, version });
    }

    pub(super) fn on_table_answered(&mut self, now: Now, answer: Answer) {
        let Some((_, table)) = self.membership.writing.take() else { return };
        if let Answer::Table(version) = answer {
            self.membership.epoch += 1;
            self.membership.version = Some(version);
            self.adopt(table, now);
        } else {
            // Somebody else wrote the Ring, or nobody knows: what stands there counts. Members are looked
            // at anew all the time, objects are not.
            let before = self.membership.table.as_ref();
            if before.is_some_and(|before| before.members() == table.members()) {
                self.census.on_not_kept();
            }
            self.membership.version = None;
            self.out.push(Command::ReadTable);
        }
    }

    fn adopt(&mut self, next: Table, now: Now) {
        let donors = self.membership.table.as_ref().map(|table| table.donors(&next));
        self.passes.add_donors(donors.unwrap_or_default());
        self.passes.want_donors();
        self.tell_too_many(&next);
        self.membership.table = Some(next);
        self.membership.generation += 1;
        self.departures.on_changed();
        self.works.stir(now.mono);
        self.passes.want_resync();
        self.passes.want_census(false);
    }

    /// It is asked for again.
    pub(super) fn on_not_shown(&mut self, id: InstanceId, namespace: String) {
        self.membership.shown.remove(&(id, namespace));
    }

    pub(super) fn shares(&self, now: Now) -> Vec<Share> {
        shares(&self.roster.members(now))
    }

    /// The table made from what objects say, when there was none.
    pub(super) fn rebuild_table(&mut self, now: Now) {
        let (count, shares) = (self.options.partitioning.slots, self.shares(now));
        let tally = self.census.tally();
        let rebuilt = Slots::rebuild(count, &shares, &tally).expect("a ring's slots are checked");
        self.propose(Table::Slots(rebuilt), now);
    }

    fn tell_changes(&mut self, states: &ById<(State, u32)>) {
        let before = &self.membership.states;
        let dead = states.iter().filter(|(id, (state, _))| {
            let was_dead = before.get(id).is_some_and(|(before, _)| *before == State::Dead);
            *state == State::Dead && !was_dead
        });
        let news: Vec<News> = dead.map(|(id, _)| News::MemberDead(id.clone())).collect();
        self.out.extend(news.into_iter().map(Command::Tell));
    }

    fn tell_unreadable_weights(&mut self) {
        let unreadable: BTreeSet<InstanceId> = self.roster.unreadable_weights().cloned().collect();
        let news = unreadable.difference(&self.membership.told_unreadable).cloned();
        self.out.extend(news.map(News::UnreadableWeight).map(Command::Tell));
        self.membership.told_unreadable = unreadable;
    }

    fn tell_too_many(&mut self, table: &Table) {
        let Some(slots) = table.slots() else { return };
        let instances = slots.members().len();
        let is_too_many = instances * SLOTS_PER_INSTANCE_MIN > slots.count();
        if is_too_many && !self.membership.told_too_many {
            self.out.push(Command::Tell(News::TooManyInstances(instances)));
        }
        self.membership.told_too_many = is_too_many;
    }

    /// Keeps the state labels, which nobody relies on but an instance whose id is taken.
    fn show_states(&mut self, members: &[Member]) {
        let mut shown = Vec::new();
        for member in members {
            let Some(lease) = self.roster.lease(&member.id) else { continue };
            let is_long_silent = member.standing.due.is_some();
            let word = self.options.names.state_word(member.standing.state, is_long_silent);
            if lease.state.as_deref() != Some(word) {
                shown.push((lease.id.clone(), lease.namespace.clone(), word));
            }
        }
        let conflict = self.options.names.state_word(State::Conflict, false);
        for lease in self.roster.conflicts() {
            if lease.state.as_deref() != Some(conflict) {
                shown.push((lease.id.clone(), lease.namespace.clone(), conflict));
            }
        }
        let is_wrong = |(id, namespace): &(InstanceId, String)| {
            shown.iter().any(|(of, at, _)| (of, at) == (id, namespace))
        };
        self.membership.shown.retain(|key, _| is_wrong(key));
        for (id, namespace, word) in shown {
            let asked = self.membership.shown.insert((id.clone(), namespace.clone()), word);
            if asked != Some(word) {
                if word == conflict {
                    let (id, namespace) = (id.clone(), namespace.clone());
                    self.out.push(Command::Tell(News::IdInUse { id, namespace }));
                }
                self.out.push(Command::ShowState { id, namespace, word });
            }
        }
    }
}

/// Those who keep their objects now and did not before.
fn returned(before: &ById<(State, u32)>, now: &ById<(State, u32)>) -> Vec<InstanceId> {
    let was_there =
        |id: &InstanceId| before.get(id).is_some_and(|(state, _)| state.keeps_objects());
    let live = now.iter().filter(|(_, (state, _))| state.keeps_objects());
    live.map(|(id, _)| id).filter(|id| !was_there(id)).cloned().collect()
}

/// Whoever keeps its objects has a share, by its weight.
fn shares(members: &[Member]) -> Vec<Share> {
    let live = members.iter().filter(|member| member.standing.state.keeps_objects());
    let live = live.filter(|member| member.weight > 0);
    live.map(|member| Share { id: member.id.clone(), weight: member.weight }).collect()
}
