//! The cluster: hosts, the store between them, and what happens when.

mod clients;
mod daemons;
mod keeping;
mod line;
mod processes;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tasks::core::agent::{Event, Token};
use tasks::core::id::{Ids, TaskId};
use tasks::core::node::Node;
use tasks::core::time::Boottime;
use tasks::core::transition::Ending;
use tasks::core::txn::{LeaseId, Txn};
use uuid::Uuid;

use super::host::Host;
use super::promises::Promises;
use super::runtime::ProcessId;
use super::{Plot, Violation};
use crate::store::Store;
use chance::Chance;

/// Faults happen until then.
const ROUGH_UNTIL: Duration = Duration::from_secs(90);
/// Long enough after the faults for leases to end, sweeps to come around and backoffs to pass.
const END: Duration = Duration::from_secs(400);
/// How long a cluster is watched after its last task has ended: nothing may happen to it any more.
const AFTERMATH: Duration = Duration::from_secs(35);

pub(crate) struct World {
    plot: Plot,
    chance: Chance,
    now: Duration,
    agenda: BTreeMap<(Duration, u64), Happening>,
    noted: u64,
    store: Store,
    leases: BTreeMap<LeaseId, Duration>,
    next_lease: i64,
    hosts: Vec<Host>,
    ids: Ids,
    tasks: Vec<TaskId>,
    promises: Promises,
    sent: BTreeSet<(usize, u32, Token)>,
    steps: usize,
}

enum Happening {
    /// Something for a daemon, unless it is another one by then.
    Tell {
        host: usize,
        incarnation: u32,
        event: Event,
    },
    /// What a daemon has set its clock to.
    Wake {
        host: usize,
    },
    /// A request reaches the store.
    Arrive {
        host: usize,
        incarnation: u32,
        request: Request,
    },
    LeaseEnds(LeaseId),
    Begin {
        host: usize,
        process: ProcessId,
    },
    End {
        host: usize,
        process: ProcessId,
        ending: Option<Ending>,
    },
    /// What the shared page says is looked at.
    Deadline {
        host: usize,
    },
    Relist {
        host: usize,
        incarnation: u32,
    },
    Submit,
    Cancel,
    /// Something bad happens to some host.
    Trouble,
    Start {
        host: usize,
    },
    Resume {
        host: usize,
    },
}

enum Request {
    Txn { token: Token, txn: Txn },
    Register { node: Box<Node>, sent: Boottime },
    KeepAlive { lease: LeaseId, sent: Boottime },
    Revoke(LeaseId),
}

// === impl World ===

impl World {
    pub(crate) fn new(plot: Plot) -> Self {
        let mut world = Self {
            chance: Chance::new(plot.seed),
            now: Duration::ZERO,
            agenda: BTreeMap::new(),
            noted: 0,
            store: Store::default(),
            leases: BTreeMap::new(),
            next_lease: 0,
            hosts: (1..=plot.hosts)
                .map(|number| Host::new(number.try_into().expect("small")))
                .collect(),
            ids: Ids::new(Uuid::from_u128(plot.seed.into())),
            tasks: Vec::new(),
            promises: Promises::default(),
            sent: BTreeSet::new(),
            steps: 0,
            plot,
        };
        world.write_the_plot();
        world
    }

    fn write_the_plot(&mut self) {
        for host in 0..self.plot.hosts {
            let after = self.chance.micros(0..2_000_000);
            self.after(after, Happening::Start { host });
        }
        self.promises.expected = self.plot.tasks;
        self.promises.is_quiet = !self.plot.is_rough;
        let last_submit = if self.plot.is_rough { 60_000_000 } else { 3_000_000 };
        for _ in 0..self.plot.tasks {
            let after = self.chance.micros(0..last_submit);
            self.after(after, Happening::Submit);
        }
        if self.plot.is_rough {
            for _ in 0..self.plot.tasks / 4 {
                let after = self.chance.micros(0..ROUGH_UNTIL.as_secs() * 1_000_000);
                self.after(after, Happening::Cancel);
            }
            for _ in 0..12 {
                let after = self.chance.micros(0..ROUGH_UNTIL.as_secs() * 1_000_000);
                self.after(after, Happening::Trouble);
            }
        }
    }

    fn after(&mut self, wait: Duration, happening: Happening) {
        self.noted += 1;
        self.agenda.insert((self.now + wait, self.noted), happening);
    }

    /// Lives to the end, or to the first broken promise. How many times an agent gave commands.
    pub(crate) fn live(mut self) -> Result<usize, Violation> {
        while let Some(((at, _), happening)) = self.agenda.pop_first() {
            if at > END || self.promises.over_since().is_some_and(|over| at > over + AFTERMATH) {
                break;
            }
            self.now = at;
            self.happen(happening).map_err(|violation| self.dated(violation))?;
            let checked = self.promises.check(&self.store, &self.hosts, self.now);
            checked.map_err(|violation| self.dated(violation))?;
        }
        self.promises.check_end(&self.store)?;
        Ok(self.steps)
    }

    fn dated(&self, Violation(what): Violation) -> Violation {
        Violation(format!("after {} ms: {what}", self.now.as_millis()))
    }

    fn happen(&mut self, happening: Happening) -> Result<(), Violation> {
        match happening {
            Happening::Tell { host, incarnation, event } => {
                if self.hosts[host].incarnation == incarnation {
                    self.tell(host, event);
                }
            }
            Happening::Wake { host } => {
                if self.hosts[host].wakes == self.now {
                    self.tell(host, Event::Tick);
                }
            }
            Happening::Arrive { host, incarnation, request } => {
                self.arrive(host, incarnation, request);
            }
            Happening::LeaseEnds(lease) => self.end_lease(lease),
            Happening::Begin { host, process } => return self.begin(host, process),
            Happening::End { host, process, ending } => self.end(host, process, ending),
            Happening::Deadline { host } => self.look_at_deadline(host),
            Happening::Relist { host, incarnation } => {
                if self.hosts[host].incarnation == incarnation {
                    self.relist(host);
                }
            }
            Happening::Submit => self.submit(),
            Happening::Cancel => self.cancel(),
            Happening::Trouble => self.trouble(),
            Happening::Start { host } => self.start(host),
            Happening::Resume { host } => self.resume(host),
        }
        Ok(())
    }
}
