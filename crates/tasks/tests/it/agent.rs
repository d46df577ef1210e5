//! One agent alone with a store: what it does, told as a story.

use std::collections::VecDeque;
use std::time::Duration;

use expect_test::expect;
use jiff::Timestamp;
use tasks::core::admission::{Hindrance, Machine};
use tasks::core::agent::{Agent, Command, Event, Leftovers, Profile, Report, Timing, Token};
use tasks::core::id::{AttemptNumber, Revision, TaskId};
use tasks::core::keys::{Key, KeyRange};
use tasks::core::node::{Node, TELL_EVERY};
use tasks::core::record::{Record, Usage};
use tasks::core::status::{Queued, QueuedReason, Status};
use tasks::core::time::{Boottime, Now, later};
use tasks::core::transition::{Ending, Finished};
use tasks::core::txn::{LeaseId, Op, Txn};
use tasks::wire;
use uuid::Uuid;

use crate::scene::{self, Scene, exited, flagged, spec};

/// An agent whose commands are carried out at once and written down.
struct Story {
    scene: Scene,
    agent: Agent,
    at: Duration,
    lease: i64,
    seen: Revision,
    is_cut: bool,
    /// Set while what the node tells of itself is on its way for long.
    withheld: Option<Vec<(Token, Txn)>>,
    told: String,
}

// === impl Story ===

impl Story {
    fn new(scene: Scene, leftovers: Leftovers) -> Self {
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
    fn tell(&mut self, event: Event) {
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
    fn pass(&mut self, time: Duration) {
        let until = self.at + time;
        while self.at < until {
            self.at += Duration::from_millis(100);
            self.tell(Event::Tick);
        }
    }

    fn submit(&mut self, spec: tasks::wire::TaskSpec) -> TaskId {
        let id = self.scene.submit(spec).id();
        self.tell(Event::Tick);
        id
    }

    fn report(&mut self, task: TaskId, number: u32, report: Report) {
        self.tell(Event::Reported { task, attempt: AttemptNumber(number), report });
    }

    fn told_hindrance(&self) -> Option<Hindrance> {
        let node = self.agent.node_id().expect("it is registered");
        let kv = self.scene.store.get(Key::Node(node)).expect("it is registered");
        Node::decode(&kv).expect("a node").0.hindrance
    }

    /// What became of the task, at the end of the story.
    fn end(mut self, task: TaskId) -> String {
        let record: Record = self.scene.store.record(task).expect("it is not forgotten");
        self.scene.assert_in_sync();
        let causes: Vec<_> = record.task.attempts.iter().map(|attempt| attempt.cause).collect();
        self.say(&format!("{} after {causes:?}", record.task.status.as_str()));
        self.told
    }
}

fn ended(code: i32) -> Report {
    Report::Ended(exited(code), Usage::default())
}

#[test]
fn a_task_that_waited_before_any_node_came_is_run() {
    let mut scene = Scene::new();
    let task = scene.submit(spec()).id();
    let mut story = Story::new(scene, Leftovers::default());
    story.pass(Duration::from_millis(200));
    story.report(task, 1, ended(0));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 200 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(task));
}

#[test]
fn a_canceled_task_is_stopped_and_says_when() {
    let mut story = Story::new(Scene::new(), Leftovers::default());
    let task = story.submit(spec());
    let running = story.scene.store.record(task).expect("it was claimed");
    let plan = story.scene.plan_cancel(&running);
    story.scene.store.win(&plan);
    story.pass(Duration::from_millis(100));
    story.report(task, 1, Report::Stopped(Usage::default()));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 100 ms: stops attempt 1 with 10 s of grace
        after 100 ms: canceled after [Some(Canceled)]
    "#]]
    .assert_eq(&story.end(task));
}

#[test]
fn a_node_cut_off_kills_everything_and_comes_back_as_another() {
    let mut story = Story::new(Scene::new(), Leftovers::default());
    let task = story.submit(flagged());
    story.is_cut = true;
    story.pass(Duration::from_secs(7));
    story.report(task, 1, Report::Stopped(Usage::default()));
    story.pass(Duration::from_secs(4));
    story.scene.store.revoke(LeaseId(101));
    story.is_cut = false;
    story.pass(Duration::from_secs(3));
    story.report(task, 2, ended(0));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 6700 ms: stops attempt 1 with 0 s of grace
        after 7000 ms: revokes lease 101
        after 12000 ms: registers
        after 12000 ms: starts attempt 2
        after 14000 ms: complete after [Some(NodeLost), Some(Exited)]
    "#]]
    .assert_eq(&story.end(task));
}

/// The end was there before the deadline, the store was not. It is recorded once the store is back,
/// though the node is another by then.
#[test]
fn a_result_survives_the_fence() {
    let mut story = Story::new(Scene::new(), Leftovers::default());
    let task = story.submit(spec());
    story.is_cut = true;
    story.pass(Duration::from_secs(2));
    story.report(task, 1, ended(7));
    story.pass(Duration::from_secs(6));
    story.is_cut = false;
    story.pass(Duration::from_secs(2));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 8800 ms: registers
        after 10000 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(task));
}

/// As long as nobody knows what became of the task, its end is worth keeping.
#[test]
fn a_result_outlives_a_record_that_cannot_be_read() {
    let mut story = Story::new(Scene::new(), Leftovers::default());
    let task = story.submit(spec());
    story.is_cut = true;
    story.report(task, 1, ended(7));
    let sound = story.scene.store.get(Key::Task(task)).expect("it runs");
    let value = bytes::Bytes::copy_from_slice(sound.value());
    let put = |value| vec![Op::Put(Key::Task(task), value)];
    story.scene.store.meddle(put(bytes::Bytes::from_static(b"garbage")));
    story.is_cut = false;
    story.pass(Duration::from_secs(2));
    assert!(story.agent.is_unrecorded(task, AttemptNumber(1)), "the end is given up");
    story.scene.store.meddle(put(value));
    story.pass(Duration::from_secs(6));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 8000 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(task));
}

#[test]
fn a_new_daemon_publishes_what_it_finds_before_it_gives_up_the_old_lease() {
    let mut scene = Scene::new();
    let before = scene.register(2);
    let queued = scene.submit(spec());
    let running = scene.claim(&queued, &before);
    let found: Finished = scene.end(&running, exited(0));
    let leftovers = Leftovers { ended: vec![(queued.id(), found)], lease: Some(LeaseId(2)) };
    let story = Story::new(scene, leftovers);
    expect![[r#"
        after 0 ms: revokes lease 2
        after 0 ms: registers
        after 0 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(queued.id()));
}

#[test]
fn a_draining_node_takes_nothing_and_leaves_when_it_is_empty() {
    let mut story = Story::new(Scene::new(), Leftovers::default());
    let first = story.submit(flagged());
    story.tell(Event::Drain);
    let second = story.submit(spec());
    story.pass(Duration::from_secs(2));
    story.report(first, 1, ended(0));
    story.pass(Duration::from_secs(1));
    let second = story.scene.store.record(second).expect("it waits").task.status;
    assert_eq!(second.as_str(), "queued");
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 2000 ms: revokes lease 101
        after 2000 ms: has left
        after 3000 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(first));
}

/// What a task waits for is in the store, for whichever node is asked.
#[test]
fn a_machine_without_space_takes_nothing_and_tells_the_others_why() {
    let machine = |disk_free_bytes| Machine {
        memory_available_bytes: 4 << 30,
        memory_pressure: None,
        disk_free_bytes,
        disk_total_bytes: 10 << 30,
    };
    let mut story = Story::new(Scene::new(), Leftovers::default());
    story.tell(Event::Measured(machine(1 << 30)));
    let task = story.submit(spec());
    story.pass(TELL_EVERY);
    assert_eq!(story.told_hindrance(), Some(Hindrance::Disk));
    story.tell(Event::Measured(machine(5 << 30)));
    story.pass(TELL_EVERY);
    assert_eq!(story.told_hindrance(), None);
    story.report(task, 1, ended(0));
    expect![[r#"
        after 0 ms: registers
        after 2000 ms: starts attempt 1
        after 4000 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(task));
}

#[test]
fn what_does_not_end_is_stopped_after_ten_minutes_of_draining() {
    let mut story = Story::new(Scene::new(), Leftovers::default());
    let task = story.submit(spec());
    story.tell(Event::Drain);
    story.pass(Duration::from_secs(601));
    story.report(task, 1, Report::Stopped(Usage::default()));
    story.pass(Duration::from_secs(1));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 600000 ms: stops attempt 1 with 10 s of grace
        after 601000 ms: revokes lease 101
        after 601000 ms: has left
        after 602000 ms: failed after [Some(Drained)]
    "#]]
    .assert_eq(&story.end(task));
}

#[test]
fn a_node_that_is_to_leave_now_stops_what_runs_and_says_why() {
    let mut story = Story::new(Scene::new(), Leftovers::default());
    let task = story.submit(flagged());
    story.tell(Event::Leave);
    story.pass(Duration::from_secs(1));
    story.report(task, 1, Report::Stopped(Usage::default()));
    story.pass(Duration::from_secs(1));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 0 ms: stops attempt 1 with 10 s of grace
        after 1000 ms: revokes lease 101
        after 1000 ms: has left
        after 2000 ms: queued after [Some(Drained)]
    "#]]
    .assert_eq(&story.end(task));
}

#[test]
fn what_never_started_is_tried_again_after_a_while() {
    let mut story = Story::new(Scene::new(), Leftovers::default());
    let task = story.submit(spec());
    let never = Ending::NeverStarted { message: "no rootfs".to_owned() };
    story.report(task, 1, Report::Ended(never, Usage::default()));
    story.pass(Duration::from_secs(2));
    story.report(task, 2, ended(0));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 1000 ms: starts attempt 2
        after 2000 ms: complete after [Some(StartFailed), Some(Exited)]
    "#]]
    .assert_eq(&story.end(task));
}

#[test]
fn a_task_that_runs_here_and_is_not_known_here_is_said_not_to_have_started() {
    let mut story = Story::new(Scene::new(), Leftovers::default());
    let task = story.submit(spec());
    story.report(task, 1, ended(0));
    // Somebody writes a claim in this node's name.
    let node = story.agent.node_id().expect("it is registered");
    let record = story.scene.store.record(task).expect("it is not forgotten");
    let queued = story.scene.submit(spec());
    let mut claimant = story.scene.register(9);
    claimant.node = node;
    let key = story.scene.store.get(Key::Node(node)).expect("it is registered");
    claimant.registered = Revision(key.create_revision());
    story.scene.pass(1);
    let forged = story.scene.claim(&queued, &claimant);
    story.pass(Duration::from_secs(33));
    assert_eq!(
        story.scene.store.record(forged.id()).expect("kept").task.counters.start_failures,
        1
    );
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 31000 ms: starts attempt 2
        after 33000 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(record.id()));
}

#[test]
fn a_task_that_ended_a_day_ago_is_forgotten() {
    let mut scene = Scene::new();
    let [old, young] = [(); 2].map(|()| {
        let ended = scene.submit(spec());
        let plan = scene.plan_cancel(&ended);
        scene.pass(3600);
        scene.store.win(&plan).id()
    });
    scene.pass(24 * 3600 - 7000);
    let mut story = Story::new(scene, Leftovers::default());
    story.pass(Duration::from_secs(61));
    assert_eq!(story.scene.store.record(old), None);
    assert!(story.scene.store.record(young).is_some());
    story.scene.assert_in_sync();
}

/// More than are looked at.
const MANY: usize = 1025;

/// The first 1,024 places of the queue were looked at, whatever lay there: so many tasks that no node
/// had room for kept every node from all that came after them.
#[test]
fn what_no_node_can_run_keeps_nothing_from_being_claimed() {
    let mut scene = Scene::new();
    for _ in 0..MANY {
        let resources = wire::Resources { cpu_millis: Some(1001), ..Default::default() };
        scene.submit(wire::TaskSpec { resources: Some(resources), ..spec() });
    }
    let good = scene.submit(spec()).id();
    let mut story = Story::new(scene, Leftovers::default());
    story.report(good, 1, ended(0));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 0 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&story.end(good));
}

/// As above, with tasks whose backoff is not over. They are taken when it is.
#[test]
fn what_waits_for_its_backoff_keeps_nothing_from_being_claimed() {
    let mut scene = Scene::new();
    let not_before = Some(later(scene.now, Duration::from_secs(60)));
    let mut delayed = Vec::new();
    for _ in 0..MANY {
        let mut task = scene.submit(wire::TaskSpec { priority: 1, ..spec() }).task;
        let reason = QueuedReason::ExitRetry;
        task.status = Status::Queued(Queued { not_before, reason });
        scene.store.meddle(vec![Op::Put(Key::Task(task.id), task.encode())]);
        delayed.push(task.id);
    }
    let good = scene.submit(spec()).id();
    let mut story = Story::new(scene, Leftovers::default());
    story.report(good, 1, ended(0));
    story.pass(Duration::from_secs(59));
    let is_taken = |story: &Story, id: &TaskId| {
        story.scene.store.record(*id).expect("kept").task.status.running().is_some()
    };
    assert!(!delayed.iter().any(|id| is_taken(&story, id)), "a backoff is not waited for");
    story.pass(Duration::from_secs(1));
    assert_eq!(
        delayed.iter().filter(|id| is_taken(&story, id)).count(),
        10,
        "what there is room for"
    );
    assert_eq!(story.scene.store.record(good).expect("kept").task.status.as_str(), "complete");
}

/// The thread that keeps the lease was in time, the agent was held up beside it: it went by what it had
/// heard last and killed what ran, though nobody doubted that the node was alive.
#[test]
fn a_node_that_was_held_up_goes_on_if_its_lease_was_kept() {
    let kept = |sent| {
        let mut story = Story::new(Scene::new(), Leftovers::default());
        let task = story.submit(spec());
        story.at = Duration::from_secs(9);
        let (lease, remaining) = (LeaseId(101), Duration::from_secs(10));
        let sent = Boottime(Duration::from_millis(sent));
        story.tell(Event::KeptAlive { lease, sent, remaining });
        story.report(task, 1, ended(0));
        story.end(task)
    };
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 9000 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&kept(6600));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 9000 ms: stops attempt 1 with 0 s of grace
        after 9000 ms: registers
        after 9000 ms: complete after [Some(Exited)]
    "#]]
    .assert_eq(&kept(2300));
}

/// The next registration was given up for the answer to what the one before had told of itself.
#[test]
fn an_answer_to_the_registration_before_does_not_fence() {
    let mut story = Story::new(Scene::new(), Leftovers::default());
    story.withheld = Some(Vec::new());
    let task = story.submit(flagged());
    story.pass(TELL_EVERY);
    let withheld = story.withheld.take().expect("it is withheld");
    assert_eq!(withheld.len(), 1, "what is reserved is told");
    story.is_cut = true;
    story.pass(Duration::from_secs(7));
    story.report(task, 1, Report::Stopped(Usage::default()));
    story.scene.store.revoke(LeaseId(101));
    story.is_cut = false;
    story.pass(Duration::from_secs(2));
    let present = story.agent.node_id();
    assert!(present.is_some(), "it has registered anew");
    for (token, txn) in withheld {
        let answer = story.scene.store.txn(&txn);
        assert!(!answer.succeeded, "the key is gone");
        story.tell(Event::Answered { token, answer });
    }
    assert_eq!(story.agent.node_id(), present);
}

/// Whatever was stopped for a drain was said to have run: a task without the flag failed, though no
/// instruction of it had been executed.
#[test]
fn a_node_that_leaves_hands_back_what_never_began() {
    let mut story = Story::new(Scene::new(), Leftovers::default());
    let task = story.submit(spec());
    story.tell(Event::Leave);
    story.report(task, 1, Report::StoppedBeforeStart);
    story.pass(Duration::from_secs(1));
    expect![[r#"
        after 0 ms: registers
        after 0 ms: starts attempt 1
        after 0 ms: stops attempt 1 with 10 s of grace
        after 0 ms: revokes lease 101
        after 0 ms: has left
        after 1000 ms: queued after [Some(HandedBack)]
    "#]]
    .assert_eq(&story.end(task));
}

/// Each task was compared alone with a measurement that none of them was in yet: what the machine had
/// left for one was given to all.
#[test]
fn memory_that_is_promised_since_the_measurement_is_not_promised_again() {
    let room_for_one = Machine {
        memory_available_bytes: (512 + 256 + 128) << 20,
        memory_pressure: None,
        disk_free_bytes: 5 << 30,
        disk_total_bytes: 10 << 30,
    };
    let mut story = Story::new(Scene::new(), Leftovers::default());
    story.tell(Event::Measured(room_for_one));
    let first = story.scene.submit(spec()).id();
    let second = story.submit(spec());
    story.pass(Duration::from_secs(1));
    let state =
        |story: &Story, id| story.scene.store.record(id).expect("kept").task.status.as_str();
    assert_eq!([first, second].map(|id| state(&story, id)), ["running", "queued"]);
    assert_eq!(story.agent.hindrance(), None, "the machine as it was measured bears it");
    // The first uses nothing of what it was promised.
    story.tell(Event::Measured(room_for_one));
    assert_eq!(state(&story, second), "running");
}

/// It was stopped, or ended by itself meanwhile: what it had used was dropped either way.
#[test]
fn what_a_canceled_task_used_is_kept() {
    let usage = Usage { peak_memory_bytes: 7 << 20, cpu_ms: 900 };
    for report in [Report::Stopped(usage), Report::Ended(exited(0), usage)] {
        let mut story = Story::new(Scene::new(), Leftovers::default());
        let task = story.submit(spec());
        let running = story.scene.store.record(task).expect("it was claimed");
        let plan = story.scene.plan_cancel(&running);
        story.scene.store.win(&plan);
        story.pass(Duration::from_millis(100));
        story.report(task, 1, report);
        let record = story.scene.store.record(task).expect("it is not forgotten");
        assert_eq!(record.task.last_attempt().expect("it ran").usage, usage);
        assert!(matches!(record.task.status, Status::Canceled(it) if it.stopped_at.is_some()));
    }
}
