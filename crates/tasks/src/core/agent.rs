//! A node as a whole: told what happened, it answers what to do. The shell carries the commands out
//! and reports back; nothing here waits, and nothing is remembered elsewhere.
//!
//! After every event the agent looks at its whole state and does what is due, so an event that comes
//! late, twice or not at all costs time and nothing else.

mod attempts;
mod backlog;
mod chores;
mod claims;
mod endings;
mod lost;
mod registration;
mod writes;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use etcd_api::mvccpb::{Event as Watched, KeyValue};
use uuid::Uuid;

use super::admission::{Hindrance, Ledger, Machine};
use super::cache::{Cache, Change};
use super::drain::Drain;
use super::id::{AttemptNumber, Fence, Ids, NodeId, Revision, TaskId};
use super::node::Node;
use super::record::Usage;
use super::steal::StepMeter;
use super::time::{Boottime, Now};
use super::transition::{Ending, Finished};
use super::txn::{Answer, LeaseId, Txn};
use attempts::Attempt;
use backlog::Backlog;
use chores::Chores;
use claims::Claimable;
use endings::Unrecorded;
use registration::Registration;
use writes::Writes;

pub use super::lease::Timing;
pub use writes::{RESEND_AFTER, Token};

/// The agent looks again at least this often, whatever it expects.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a node is made of.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its id, reservations and draining are the agent's to fill in.
    pub node: Node,
    pub timing: Timing,
    /// From which all ids are made; random, drawn once per start.
    pub seed: Uuid,
    pub kept_record_bytes_max: usize,
}

/// What was found in the data directory at the start.
#[derive(Clone, Debug, Default)]
pub struct Leftovers {
    /// Attempts that ended and were perhaps not recorded. All other processes are dead.
    pub ended: Vec<(TaskId, Finished)>,
    /// Attempts that were stopped, at the latest by this start. Of one that somebody canceled that is to be
    /// told.
    pub stopped: Vec<(TaskId, AttemptNumber, Usage)>,
    /// Of the registration before; given up once the ends are recorded.
    pub lease: Option<LeaseId>,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Time has passed.
    Tick,
    TasksListed(Vec<KeyValue>, Revision),
    NodesListed(Vec<KeyValue>, Revision),
    Changed(Vec<Watched>),
    /// A registration is done. `sent` is when its lease was asked for.
    Registered {
        node: NodeId,
        lease: LeaseId,
        revision: Revision,
        sent: Boottime,
    },
    /// It was not, or nobody knows; another id will be tried. Each registration has one of the two
    /// answers.
    NotRegistered {
        node: NodeId,
    },
    /// The store has answered the keep-alive of `sent`, in time, whenever the agent hears of it.
    KeptAlive {
        lease: LeaseId,
        sent: Boottime,
        remaining: Duration,
    },
    Answered {
        token: Token,
        answer: Answer,
    },
    /// Whether the transaction was carried out is not known.
    Unanswered {
        token: Token,
    },
    Reported {
        task: TaskId,
        attempt: AttemptNumber,
        report: Report,
    },
    Measured(Machine),
    /// The node is to leave, once what runs has ended or has had its time.
    Drain,
    /// The node is to leave now: what runs is stopped, each with its grace.
    Leave,
}

/// The word of the runtime: whichever it is, the last process is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// It ended, or never began, by itself.
    Ended(Ending, Usage),
    /// It was killed: on the agent's command, or by the deadline.
    Stopped(Usage),
    /// As above, when no instruction of the command had been executed.
    StoppedBeforeStart,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Get a lease and put the node's key under it.
    Register(Box<Node>),
    /// For a shell without a thread that keeps the lease alive by itself, with the same
    /// [`Lease`](super::lease::Lease).
    KeepAlive(LeaseId),
    Revoke(LeaseId),
    /// The moment by which everything must be dead unless it is moved on: for the shared page.
    SetDeadline(Boottime),
    /// Answer with the outcome if it is known, else that it is not.
    Send {
        token: Token,
        txn: Txn,
    },
    Start(Box<Start>),
    /// TERM, and after the grace KILL. May come again with less grace.
    Stop {
        task: TaskId,
        attempt: AttemptNumber,
        grace: Duration,
    },
    /// The node has left; nothing follows.
    Left,
}

/// An attempt to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    pub task: TaskId,
    pub attempt: AttemptNumber,
    pub node: NodeId,
    pub fence: Fence,
    /// A `TaskSpec`.
    pub spec: Bytes,
}

/// See the module.
#[derive(Debug)]
pub struct Agent {
    profile: Profile,
    ids: Ids,
    registration: Registration,
    cache: Cache,
    ledger: Ledger,
    machine: Option<Machine>,
    /// Of the tasks that could be taken now.
    hindrance: Option<Hindrance>,
    meter: StepMeter,
    writes: Writes,
    attempts: BTreeMap<TaskId, Attempt>,
    unrecorded: BTreeMap<(TaskId, AttemptNumber), Unrecorded>,
    /// Of the process before; told once.
    stopped: Vec<(TaskId, AttemptNumber, Usage)>,
    backlog: Backlog,
    claimable: BTreeMap<TaskId, Claimable>,
    /// When a claim was sent whose result is not seen in the watch yet.
    asked: BTreeMap<TaskId, Boottime>,
    /// From when on this node takes a task from a node that is gone.
    lost: BTreeMap<TaskId, Boottime>,
    drain: Option<Drain>,
    chores: Chores,
    wake: Boottime,
    commands: Vec<Command>,
}

// === impl Agent ===

impl Agent {
    #[must_use]
    pub fn new(profile: Profile, leftovers: Leftovers) -> Self {
        let recorded = leftovers.ended.into_iter();
        let unrecorded = recorded
            .map(|(task, finished)| ((task, finished.attempt), Unrecorded::found(finished)));
        Self {
            ids: Ids::new(profile.seed),
            registration: Registration::Recovering { lease: leftovers.lease },
            cache: Cache::new(profile.kept_record_bytes_max),
            ledger: Ledger::new(profile.node.capacity),
            machine: None,
            hindrance: None,
            meter: StepMeter::default(),
            writes: Writes::default(),
            attempts: BTreeMap::new(),
            unrecorded: unrecorded.collect(),
            stopped: leftovers.stopped,
            backlog: Backlog::default(),
            claimable: BTreeMap::new(),
            asked: BTreeMap::new(),
            lost: BTreeMap::new(),
            drain: None,
            chores: Chores::default(),
            wake: Boottime::default(),
            commands: Vec::new(),
            profile,
        }
    }

    /// Takes in what happened and tells what to do.
    pub fn on(&mut self, now: Now, event: Event) -> Vec<Command> {
        self.on_all(now, [event])
    }

    /// Takes in what happened meanwhile, and looks once: the look is what costs.
    pub fn on_all(&mut self, now: Now, events: impl IntoIterator<Item = Event>) -> Vec<Command> {
        events.into_iter().for_each(|event| self.take_in(now, event));
        self.wake = now.boot + LOOK_EVERY;
        self.look_after_registration(now);
        self.stop_what_is_not_ours();
        self.record_endings(now);
        self.claim(now);
        self.take_from_lost(now);
        self.do_chores(now);
        self.resend(now);
        std::mem::take(&mut self.commands)
    }

    /// When to come back even if nothing happens.
    #[must_use]
    pub fn wake_at(&self) -> Boottime {
        self.wake
    }

    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What of the machine keeps this node from taking tasks that wait.
    #[must_use]
    pub fn hindrance(&self) -> Option<Hindrance> {
        self.hindrance
    }

    #[must_use]
    pub fn timing(&self) -> Timing {
        self.profile.timing
    }

    /// Whether the store has not decided yet about the end of an attempt.
    #[must_use]
    pub fn is_unrecorded(&self, task: TaskId, attempt: AttemptNumber) -> bool {
        self.unrecorded.contains_key(&(task, attempt))
    }

    /// The present registration, if there is one and it is not fenced.
    #[must_use]
    pub fn node_id(&self) -> Option<NodeId> {
        self.registration.claimant().map(|claimant| claimant.node)
    }

    fn take_in(&mut self, now: Now, event: Event) {
        match event {
            Event::Tick => {}
            Event::TasksListed(kvs, at) => {
                let changes = self.cache.on_tasks_listed(&kvs, at);
                self.on_changes(now, changes);
            }
            Event::NodesListed(kvs, at) => {
                let changes = self.cache.on_nodes_listed(&kvs, at);
                self.on_changes(now, changes);
            }
            Event::Changed(events) => {
                let changes = events.iter().flat_map(|event| self.cache.on_event(event)).collect();
                self.on_changes(now, changes);
            }
            Event::Registered { node, lease, revision, sent } => {
                self.on_registered(now, node, (lease, revision), sent);
            }
            Event::NotRegistered { node } => self.on_not_registered(now, node),
            Event::KeptAlive { lease, sent, remaining } => {
                self.on_kept_alive(now, lease, sent, remaining);
            }
            Event::Answered { token, answer } => self.on_answered(now, token, &answer),
            Event::Unanswered { token } => {
                if self.writes.on_unanswered(token, now.boot) {
                    self.chores.on_not_told();
                }
            }
            Event::Reported { task, attempt, report } => self.on_reported(task, attempt, report),
            Event::Measured(machine) => {
                self.machine = Some(machine);
                self.ledger.on_measured();
            }
            Event::Drain => drop(self.drain.get_or_insert(Drain::new(now.boot))),
            Event::Leave => self.drain = Some(Drain::at_once(now.boot)),
        }
    }

    /// Forgets what was remembered of tasks as they were.
    fn on_changes(&mut self, now: Now, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Task(id) | Change::TaskDeleted(id) | Change::UnreadableTask(id, _) => {
                    self.backlog.on_task(&self.profile.node, id, self.cache.task(id));
                    self.claimable.remove(&id);
                    self.lost.remove(&id);
                    self.measure_step(now, id);
                }
                Change::Node(_) | Change::NodeGone(_) => self.forget_ranks(),
                Change::UnreadableNode(_) => {}
            }
        }
    }

    fn wake_by(&mut self, at: Boottime) {
        self.wake = self.wake.min(at);
    }
}
