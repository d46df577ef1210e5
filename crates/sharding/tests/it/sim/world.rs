//! The cluster: the server, two sharders, the instances, and what happens when.

mod elections;
mod line;
mod trouble;
mod watches;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use sharding::core::history::{Breach, Fact, History, Terms, Violation};
use sharding::core::instance;
use sharding::core::key::{KeyMode, Kinds, MainKind};
use sharding::core::object::{Controller, GroupKind, Object, ObjectName, Uid, Version};
use sharding::core::sharder;
use sharding::core::time::{Moment, Now, later};

use super::Plot;
use super::process::Process;
use super::server::Server;
use super::sharders::SharderProcess;
use chance::Chance;

/// D of all instances.
pub(crate) const DURATION: Duration = Duration::from_secs(15);
/// Faults happen until then.
pub(crate) const ROUGH_UNTIL: Duration = Duration::from_secs(240);
/// Long enough after the faults for Leases to end, drains to time out and passes to come around.
const END: Duration = Duration::from_secs(520);
/// How long an object may wait for an owner where nothing goes wrong: until somebody is elected, and
/// until an instance that said it would be back is.
const WAIT_MAX_CALM: Duration = Duration::from_secs(20);
/// The same where much does: as long as both sharders may be away, and then as long as an instance may
/// be silent or expected back.
const WAIT_MAX_ROUGH: Duration = Duration::from_secs(180);
/// How late a sharder may see that an instance is ready no more, where nothing goes wrong.
const SIGHT_MAX_CALM: Duration = Duration::from_secs(1);
/// The same where its watch may hang.
const SIGHT_MAX_ROUGH: Duration = Duration::from_secs(75);
const SHARDERS: usize = 2;
/// How far apart the sharders' clocks are at most.
const SKEW_MS: u64 = 1000;

pub(crate) struct World {
    pub(crate) plot: Plot,
    pub(crate) chance: Chance,
    pub(crate) now: Duration,
    agenda: BTreeMap<(Duration, u64), Happening>,
    noted: u64,
    pub(crate) server: Server,
    pub(crate) history: History,
    pub(crate) sharders: Vec<SharderProcess>,
    pub(crate) processes: Vec<Process>,
    leader: Option<(usize, Duration)>,
    created: usize,
    requests: u64,
    /// Requests that nobody has answered yet.
    open: BTreeSet<u64>,
    /// Objects that a sharder has told it cannot write, by name: a parent that is nobody's does not wait
    /// for such a child.
    pub(crate) left_behind: BTreeSet<String>,
}

/// A process of either kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Party {
    Sharder(usize),
    Instance(usize),
}

/// Something that is told to a process.
#[derive(Clone, Debug)]
pub(crate) enum News {
    Sharder(sharder::Event),
    Instance(instance::Event),
    /// A watch shows an object of ours; none if it has left. Watches are numbered.
    Cache {
        watch: u32,
        name: ObjectName,
        object: Option<Box<Object>>,
    },
    /// A reconcile is to take its next step.
    Step {
        name: ObjectName,
        run: u64,
    },
    /// Something is looked for that could be reconciled.
    Look,
}

/// What reaches the server.
#[derive(Clone, Debug)]
pub(crate) enum Request {
    Sharder(sharder::Command),
    Instance { sent: Moment, command: instance::Command },
    Touch(ObjectName),
}

pub(crate) enum Happening {
    /// Something for a process, unless it is another one by then.
    Tell {
        to: Party,
        life: u32,
        news: News,
    },
    Wake(Party),
    Arrive {
        from: Party,
        life: u32,
        number: u64,
        request: Request,
    },
    /// The answer to a request, or that there is none.
    Answer {
        to: Party,
        life: u32,
        number: u64,
        news: News,
    },
    Resend {
        from: Party,
        life: u32,
        number: u64,
        request: Request,
    },
    Elect(usize),
    Start(Party),
    Resume(Party),
    Create,
    /// Something bad happens to somebody.
    Trouble,
}

// === impl World ===

impl World {
    pub(crate) fn new(plot: Plot) -> Self {
        let mut chance = Chance::new(plot.seed);
        let kinds = kinds();
        let sharders = (0..SHARDERS).map(|_| SharderProcess::new(chance.millis(0..SKEW_MS)));
        let sharders = sharders.collect();
        let processes = (0..plot.instances).map(|number| Process::new(number, &mut chance));
        let processes = processes.collect();
        let terms = Terms {
            is_fenced: plot.is_fenced,
            skew: Duration::from_millis(2 * SKEW_MS),
            unassigned_max: if plot.is_rough { WAIT_MAX_ROUGH } else { WAIT_MAX_CALM },
            sight_max: if plot.is_rough { SIGHT_MAX_ROUGH } else { SIGHT_MAX_CALM },
        };
        let mut world = Self {
            server: Server::new(kinds, plot.is_fenced),
            history: History::new(terms),
            plot,
            chance,
            now: Duration::ZERO,
            agenda: BTreeMap::new(),
            noted: 0,
            sharders,
            processes,
            leader: None,
            created: 0,
            requests: 0,
            open: BTreeSet::new(),
            left_behind: BTreeSet::new(),
        };
        world.open();
        world
    }

    fn open(&mut self) {
        for number in 0..SHARDERS {
            self.after(Duration::ZERO, Happening::Start(Party::Sharder(number)));
            let wait = Duration::from_millis(500 * (u64::try_from(number).expect("small") + 1));
            self.after(wait, Happening::Elect(number));
        }
        for number in 0..self.plot.instances {
            let wait = self.chance.millis(0..20_000);
            self.after(wait, Happening::Start(Party::Instance(number)));
        }
        for _ in 0..self.plot.objects {
            let wait = self.chance.millis(0..60_000);
            self.after(wait, Happening::Create);
        }
        if self.plot.is_rough {
            let wait = self.chance.millis(5_000..30_000);
            self.after(wait, Happening::Trouble);
        }
    }

    /// Lives to the end, or to the first broken promise.
    pub(crate) fn live(mut self) -> Result<Self, String> {
        self.run_until(END)?;
        let settled = self.history.check_settled(self.wall(), Duration::from_secs(5));
        settled.map_err(|violation| self.dated(&violation))?;
        Ok(self)
    }

    pub(crate) fn run_until(&mut self, end: Duration) -> Result<(), String> {
        while let Some(entry) = self.agenda.first_entry() {
            if entry.key().0 > end {
                break;
            }
            let ((at, _), happening) = entry.remove_entry();
            self.now = at;
            self.happen(happening).map_err(|violation| self.dated(&violation))?;
            self.spread();
            for fact in std::mem::take(&mut self.server.facts) {
                let told = self.tell_history(fact);
                told.map_err(|violation| self.dated(&violation))?;
            }
        }
        self.now = end;
        Ok(())
    }

    pub(crate) fn tell_history(&mut self, fact: Fact) -> Result<(), Violation> {
        let wall = self.wall();
        let is_left_behind = |violation: &Violation| match &*violation.breach {
            Breach::ParentFirst { child, .. } => self.left_behind.contains(child),
            _ => false,
        };
        match self.history.on(wall, fact) {
            Err(violation) if is_left_behind(&violation) => Ok(()),
            told => told,
        }
    }

    fn dated(&self, violation: &Violation) -> String {
        format!("after {} ms: {violation}", self.now.as_millis())
    }

    /// The true time.
    pub(crate) fn wall(&self) -> Timestamp {
        later(Timestamp::from_second(1_700_000_000).expect("a moment"), self.now)
    }

    pub(crate) fn after(&mut self, wait: Duration, happening: Happening) {
        self.noted += 1;
        self.agenda.insert((self.now + wait, self.noted), happening);
    }

    fn happen(&mut self, happening: Happening) -> Result<(), Violation> {
        match happening {
            Happening::Tell { to, life, news } => self.tell(to, life, news)?,
            Happening::Wake(party) => self.wake(party)?,
            Happening::Arrive { from, life, number, request } => {
                self.arrive(from, (life, number), request);
            }
            Happening::Answer { to, life, number, news } => {
                self.on_answer(to, (life, number), news)?;
            }
            Happening::Resend { from, life, number, request } => {
                self.resend(from, (life, number), request);
            }
            Happening::Elect(number) => self.elect(number)?,
            Happening::Start(party) => self.start(party)?,
            Happening::Resume(party) => self.resume(party)?,
            Happening::Create => self.create(),
            Happening::Trouble => self.trouble()?,
        }
        Ok(())
    }

    fn tell(&mut self, to: Party, life: u32, news: News) -> Result<(), Violation> {
        match to {
            Party::Sharder(number) => {
                if self.sharders[number].life == life {
                    self.tell_sharder(number, news);
                }
                Ok(())
            }
            Party::Instance(number) if self.processes[number].life == life => {
                self.tell_instance(number, news)
            }
            Party::Instance(_) => Ok(()),
        }
    }

    fn wake(&mut self, party: Party) -> Result<(), Violation> {
        match party {
            Party::Sharder(number) if self.sharders[number].wakes == self.now => {
                self.tell_sharder(number, News::Sharder(sharder::Event::Tick));
                Ok(())
            }
            Party::Instance(number) if self.processes[number].wakes == self.now => {
                self.tell_instance(number, News::Instance(instance::Event::Tick))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn life(&self, party: Party) -> u32 {
        match party {
            Party::Sharder(number) => self.sharders[number].life,
            Party::Instance(number) => self.processes[number].life,
        }
    }

    /// A moment on the clocks of a process: the one that never jumps began somewhere, the other is off.
    pub(crate) fn clocks(&self, offset: Duration, skew_s: i64) -> Now {
        let wall = self.wall();
        let wall = wall.checked_add(jiff::SignedDuration::from_secs(skew_s)).expect("near now");
        Now { mono: Moment(self.now + offset), wall }
    }

    /// A main object with some children.
    fn create(&mut self) {
        let number = self.created;
        self.created += 1;
        let parent = object("Site", &format!("site-{number}"), None);
        let uid = parent.uid.clone();
        let controller = Controller {
            kind: parent.name.kind.clone(),
            name: parent.name.name.clone(),
            uid: uid.clone(),
        };
        self.server.create(parent, None);
        for child in 0..self.chance.below(3) {
            let name = format!("page-{number}-{child}");
            let child = object("Page", &name, Some(controller.clone()));
            self.server.create(child, Some(uid.clone()));
        }
    }
}

pub(crate) fn kinds() -> Kinds {
    let controlled = [GroupKind::new("example.com", "Page")].into();
    let main = MainKind { key: KeyMode::Own, is_namespaced: true, controlled };
    Kinds { main: [(GroupKind::new("example.com", "Site"), main)].into(), ..Kinds::default() }
}

fn object(kind: &str, name: &str, controller: Option<Controller>) -> Object {
    let uid = Uid(name.to_owned());
    let name = ObjectName {
        kind: GroupKind::new("example.com", kind),
        namespace: Some("shop".to_owned()),
        name: name.to_owned(),
    };
    let version = Version(String::new());
    Object { name, uid, version, shard: None, drain: None, controller }
}
