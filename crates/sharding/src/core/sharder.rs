//! The sharder of one ring: told what happened, it answers what to do. It keeps only what is on its
//! way, whatever the number of objects; everything else is in labels, Leases and the Ring.
//!
//! After every event it looks at what may have changed and does what is due, so an event that comes
//! late, twice or not at all costs time and nothing else. It writes only while it leads.
//!
//! | module | owns |
//! |---|---|
//! | `message` | events, commands, answers |
//! | `members` | the table, and who is in it |
//! | `departed` | Leases of instances that are gone: taken, held, given back, removed |
//! | `passes` | going through the objects page by page |
//! | `works` | objects on their way, and what to do with each |
//! | `families` | children that go before their parent |
//! | `epochs` | telling instances by their Lease that there is something to give up |
//! | `census` | counting objects, and the table that follows from it |

mod census;
mod departed;
mod epochs;
mod families;
mod members;
mod message;
mod passes;
#[cfg(test)]
mod tests;
mod works;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use self::census::Census;
use self::departed::Departures;
use self::epochs::Epochs;
use self::members::Membership;
use self::passes::Passes;
use self::works::Works;
use super::key::Kinds;
use super::membership::{Member, Roster};
use super::names::{InstanceId, Names};
use super::object::{GroupKind, ObjectName};
use super::partition::Table;
use super::spec::{Handover, Partitioning};
use super::time::{Moment, Now};

pub use message::{Answer, Command, Event, KindSet, News, Selector, Token};
pub use works::Traffic;

/// It looks around at least this often, whatever it expects.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How often everything that nobody live owns is looked for.
const RESYNC_EVERY: Duration = Duration::from_secs(10 * 60);
/// How often objects are counted.
const CENSUS_EVERY: Duration = Duration::from_secs(30 * 60);

/// Rounds in which everything is looked at after one event; the next event begins anew.
const ROUNDS_MAX: usize = 8;

/// One ring and its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub names: Names,
    pub kinds: Kinds,
    pub handover: Handover,
    pub partitioning: Partitioning,
    pub hold_max: Duration,
    /// Kinds that the ring is to have no longer. Objects of main ones, and what they control, are
    /// drained and stripped; of controlled ones, stripped.
    pub leaving: BTreeSet<GroupKind>,
    /// Where the instances are, for Leases of which nobody knows where they were. In another place the
    /// instance would not find its Lease taken, and its own, the younger, would be in conflict.
    pub home: String,
}

#[derive(Clone, Debug)]
pub struct Sharder {
    options: Options,
    roster: Roster,
    is_fenced: bool,
    namespaces: Option<BTreeSet<String>>,
    leading_until: Option<Moment>,
    membership: Membership,
    departures: Departures,
    passes: Passes,
    works: Works,
    epochs: Epochs,
    census: Census,
    tokens: u64,
    out: Vec<Command>,
}

// === impl Sharder ===

impl Sharder {
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            roster: Roster::new(options.names.sharder_holder(), options.hold_max),
            is_fenced: false,
            namespaces: None,
            leading_until: None,
            membership: Membership::default(),
            departures: Departures::default(),
            passes: Passes::default(),
            works: Works::default(),
            epochs: Epochs::default(),
            census: Census::default(),
            tokens: 0,
            out: Vec::new(),
            options,
        }
    }

    /// The ring has become another. All that was begun is forgotten; what a standby knows, and so when
    /// each instance was last heard of, is kept. To go on leading, it is to be told of it again.
    pub fn reconfigure(&mut self, options: Options) {
        debug_assert_eq!(self.options.names, options.names, "names never change");
        self.stand_by();
        self.roster.set_hold_max(options.hold_max);
        self.options = options;
    }

    /// How many objects may be moved at once from now on.
    pub fn set_concurrent_moves(&mut self, moves_max: usize) {
        self.options.handover.concurrent_moves = moves_max;
    }

    /// Takes note of what happened, and says what to do.
    #[must_use]
    pub fn on(&mut self, now: Now, event: Event) -> Vec<Command> {
        // Whoever slept through its time is a standby, whether it has been told or not.
        if self.leading_until.is_some_and(|until| now.mono >= until) {
            self.stand_by();
        }
        self.note(now, event);
        if self.leading_until.is_some() {
            self.act(now);
        }
        std::mem::take(&mut self.out)
    }

    /// When to be told of the time, if nothing else happens.
    #[must_use]
    pub fn wake_at(&self, now: Now) -> Moment {
        let edges = [
            self.roster.next_edge(now),
            self.works.next_due(self.writes_max()).filter(|_| self.table().is_some()),
            self.departures.next_due(now.mono),
            self.epochs.next_due(now.mono),
        ];
        let soonest = edges.into_iter().flatten().min();
        soonest.map_or(now.mono + LOOK_EVERY, |at| at.min(now.mono + LOOK_EVERY))
    }

    #[must_use]
    pub fn members(&self, now: Now) -> Vec<Member> {
        self.roster.members(now)
    }

    /// Nothing before it was read or made.
    #[must_use]
    pub fn table(&self) -> Option<&Table> {
        self.membership.table()
    }

    /// Objects on their way, unassigned ones included.
    #[must_use]
    pub fn on_their_way(&self) -> usize {
        self.works.len()
    }

    /// The same, told apart.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let (stuck, example) = self.departures.refused();
        Traffic { stuck, stuck_example: example.cloned(), ..self.works.traffic() }
    }

    fn note(&mut self, now: Now, event: Event) {
        match event {
            Event::Tick => {}
            Event::Leading { until } => self.lead(now, until),
            Event::Standby => self.stand_by(),
            Event::LeasesListed(leases) => self.roster.on_listed(leases, now.mono),
            Event::LeaseSeen(lease) => self.roster.on_seen(*lease, now.mono),
            Event::LeaseDeleted(lease) => self.roster.on_seen_deleted(&lease, now.mono),
            Event::Fenced(is_fenced) => {
                self.is_fenced = is_fenced;
                self.works.stir(now.mono);
            }
            Event::Namespaces(namespaces) => {
                self.namespaces = Some(namespaces);
                self.departures.on_changed();
                self.passes.want_census(false);
            }
            Event::TableRead { kept, version } => self.on_table_read(kept, version, now),
            Event::Unassigned { object, is_listed } => {
                self.on_unassigned(*object, is_listed, now.mono);
            }
            Event::NotShown { id, namespace } => self.on_not_shown(id, namespace),
            Event::NotUnassigned(name) => self.works.on_not_unassigned(&name, now.mono),
            Event::Answered { token, answer } => self.on_answered(now, token, answer),
        }
    }

    /// What one part does may be what another waits for.
    fn act(&mut self, now: Now) {
        for _ in 0..ROUNDS_MAX {
            let said = self.out.len();
            self.tend_membership(now);
            self.tend_departures(now);
            self.tend_works(now);
            self.tend_families();
            self.tend_epochs(now);
            self.tend_passes(now);
            let has_ended_a_pass = self.passes.take_ended();
            if self.out.len() == said && !has_ended_a_pass {
                return;
            }
        }
    }

    /// A new leader knows nothing but what it finds: one look at everything.
    fn lead(&mut self, now: Now, until: Moment) {
        if self.leading_until.is_none() {
            self.out.push(Command::ReadTable);
            self.passes.want_census(true);
            self.passes.resync_at = now.mono + RESYNC_EVERY;
            self.passes.census_at = now.mono + CENSUS_EVERY;
        }
        self.leading_until = Some(until);
    }

    /// Forgets everything but what a standby watches too.
    fn stand_by(&mut self) {
        self.leading_until = None;
        self.membership = Membership::default();
        self.departures = Departures::default();
        self.passes = Passes::default();
        self.works = Works::default();
        self.epochs = Epochs::default();
        self.census = Census::default();
        self.out.clear();
    }

    fn on_answered(&mut self, now: Now, token: Token, answer: Answer) {
        // Each of these knows its own tokens; one of before a change of leaders is nobody's.
        if self.works.is_asking(token) {
            self.on_work_answered(now, token, answer);
        } else if self.departures.is_asking(token) {
            self.on_departure_answered(now, token, answer);
        } else if self.passes.is_asking(token) {
            self.on_page(now, token, answer);
        } else if self.works.is_listing(token) {
            self.on_children(now, token, answer);
        } else if self.epochs.is_asking(token) {
            self.on_epoch_answered(now, token, answer);
        } else if self.membership.is_asking(token) {
            self.on_table_answered(now, answer);
        }
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.tokens)
    }

    fn is_ready(&self, id: &InstanceId, now: Now) -> bool {
        self.membership.is_ready(id) && self.roster.state(id, now).is_some_and(is_ready)
    }

    /// Whether the ring has this object: its kind, and its namespace.
    fn is_selected(&self, name: &ObjectName) -> bool {
        if self.options.leaving.contains(&name.kind) {
            return false;
        }
        match (&self.namespaces, &name.namespace) {
            (Some(selected), Some(namespace)) => selected.contains(namespace),
            _ => true,
        }
    }
}

fn is_ready(state: super::membership::State) -> bool {
    state == super::membership::State::Ready
}

/// Instances by id.
type ById<T> = BTreeMap<InstanceId, T>;
