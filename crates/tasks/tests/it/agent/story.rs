//! An agent alone with a store, and what it does there in words.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use tasks::core::admission::Hindrance;
use tasks::core::agent::{Agent, Command, Event, Leftovers, Profile, Report, Timing, Token};
use tasks::core::id::{AttemptNumber, Revision, TaskId};
use tasks::core::keys::{Key, KeyRange};
use tasks::core::node::Node;
use tasks::core::record::{Record, Usage};
use tasks::core::time::{Boottime, Now, later};
use tasks::core::txn::{LeaseId, Op, Txn};
use tasks::wire;
use uuid::Uuid;

use crate::scene::{self, Scene, exited};

/// An agent whose commands are carried out at once and written down.
pub(super) struct Story {
    pub(super) scene: Scene,
    pub(super) agent: Agent,
    pub(super) at: Duration,
    lease: i64,
    seen: Revision,
    pub(super) is_cut: bool,
    /// Set while what the node tells of itself is on its way for long.
    pub(super) withheld: Option<Vec<(Token, Txn)>>,
    told: String,
}

// === impl Story ===

impl Story {
    /// A node that comes to what the store has.
    pub(super) fn new(scene: Scene) -> Self {
        Self::recovering(scene, Leftovers::default())
    }

    /// One that runs a task, and nothing else.
    pub(super) fn running(spec: wire::TaskSpec) -> (Self, TaskId) {
        let mut story = Self::new(Scene::new());
        let task = story.submit(spec);
        (story, task)
    }

    pub(super) fn recovering(scene: Scene, leftovers: Leftovers) -> Self {
        let profile = Profile {
            node: scene::node(1),
            timing: Timing::default(),
            seed: Uuid::from_u128(7),
            kept_record_bytes_max: 1 << 20,
        };
        let agent = Agent::new(profile, leftovers);
        let (at, seen) = (Duration::ZERO, scene.store.revision());
        let told = String::new();
        let mut story =
            Self { scene, agent, at, lease: 100, seen, is_cut: false, withheld: None, told };
        let store = &story.scene.store;
        let nodes = Event::NodesListed(store.list(KeyRange::NODES), store.revision());
        let tasks = Event::TasksListed(store.list(KeyRange::TASKS), store.revision());
        story.tell_all([nodes, tasks]);
        story
    }

    fn wall(&self) -> Timestamp {
        later(self.scene.now, self.at)
    }

    /// Tells the agent, carries out what it says, and tells it what came of that.
    pub(super) fn tell(&mut self, event: Event) {
        self.tell_all([event]);
    }

    fn tell_all(&mut self, events: impl IntoIterator<Item = Event>) {
        let mut events: VecDeque<Event> = events.into_iter().collect();
        while let Some(event) = events.pop_front() {
            let now = Now { boot: Boottime(self.at), wall: self.wall() };
            for command in self.agent.on(now, event) {
                events.extend(self.carry_out(command));
            }
            events.extend(self.news());
        }
    }

    /// What both watches show.
    fn news(&mut self) -> Option<Event> {
        let ranges = [KeyRange::NODES, KeyRange::TASKS];
        let store = &self.scene.store;
        let events: Vec<_> =
            ranges.into_iter().flat_map(|range| store.events(range, self.seen)).collect();
        if self.is_cut || events.is_empty() {
            return None;
        }
        self.seen = store.revision();
        Some(Event::Changed(events))
    }

    fn carry_out(&mut self, command: Command) -> Option<Event> {
        match command {
            Command::Send { token, txn } if self.is_withheld(&txn) => {
                self.withheld.get_or_insert_default().push((token, txn));
            }
            Command::Send { token, txn } if !self.is_cut => {
                let answer = self.scene.store.txn(&txn);
                return Some(Event::Answered { token, answer });
            }
            Command::Register(node) if !self.is_cut => {
                self.lease += 1;
                let lease = LeaseId(self.lease);
                self.say("registers");
                self.scene.store.grant(lease, scene::TTL_S);
                let put = Op::PutLeased(Key::Node(node.id), node.encode(), lease);
                self.scene.store.meddle(vec![put]);
                let (revision, sent) = (self.scene.store.revision(), Boottime(self.at));
                return Some(Event::Registered { node: node.id, lease, revision, sent });
            }
            Command::KeepAlive(lease) if !self.is_cut => {
                let remaining = Duration::from_secs(10);
                return Some(Event::KeptAlive { lease, sent: Boottime(self.at), remaining });
            }
            Command::Send { token, .. } => return Some(Event::Unanswered { token }),
            Command::Register(node) => return Some(Event::NotRegistered { node: node.id }),
            Command::Revoke(lease) => {
                self.say(&format!("revokes lease {}", lease.0));
                if !self.is_cut {
                    self.scene.store.revoke(lease);
                }
            }
            Command::Start(start) => self.say(&format!("starts attempt {}", start.attempt)),
            Command::Stop { attempt, grace, .. } => {
                self.say(&format!("stops attempt {attempt} with {} s of grace", grace.as_secs()));
            }
            Command::Left => self.say("has left"),
            Command::KeepAlive(_) | Command::SetDeadline(_) => {}
        }
        None
    }

    fn is_withheld(&self, txn: &Txn) -> bool {
        self.withheld.is_some() && matches!(txn.then[..], [Op::PutLeased(..)])
    }

    fn say(&mut self, what: &str) {
        self.told += &format!("after {} ms: {what}\n", self.at.as_millis());
    }

    /// Lets time pass in small steps.
    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.at + time;
        while self.at < until {
            self.at += Duration::from_millis(100);
            self.tell(Event::Tick);
        }
    }

    pub(super) fn submit(&mut self, spec: wire::TaskSpec) -> TaskId {
        let id = self.scene.submit(spec).id();
        self.tell(Event::Tick);
        id
    }

    pub(super) fn cancel(&mut self, task: TaskId) {
        let plan = self.scene.plan_cancel(&self.record(task));
        self.scene.store.win(&plan);
    }

    pub(super) fn report(&mut self, task: TaskId, number: u32, report: Report) {
        self.tell(Event::Reported { task, attempt: AttemptNumber(number), report });
    }

    pub(super) fn record(&self, task: TaskId) -> Record {
        self.scene.store.record(task).expect("it is not forgotten")
    }

    pub(super) fn state(&self, task: TaskId) -> &'static str {
        self.record(task).task.status.as_str()
    }

    pub(super) fn told_hindrance(&self) -> Option<Hindrance> {
        let node = self.agent.node_id().expect("it is registered");
        let kv = self.scene.store.get(Key::Node(node)).expect("it is registered");
        Node::decode(&kv).expect("a node").0.hindrance
    }

    /// What became of the task, at the end of the story.
    pub(super) fn end(mut self, task: TaskId) -> String {
        let record = self.record(task);
        self.scene.assert_in_sync();
        let causes: Vec<_> = record.task.attempts.iter().map(|attempt| attempt.cause).collect();
        self.say(&format!("{} after {causes:?}", record.task.status.as_str()));
        self.told
    }
}

pub(super) fn ended(code: i32) -> Report {
    Report::Ended(exited(code), Usage::default())
}

pub(super) fn stopped() -> Report {
    Report::Stopped(Usage::default())
}
