mod counts;
mod families;
mod leaving;
mod nowhere;
mod orphans;
mod rooms;
mod stuck;
mod tables;

use jiff::Timestamp;

use super::*;
use crate::core::key::{KeyMode, MainKind};
use crate::core::lease::{Lease, Marks};
use crate::core::names::Dialect;
use crate::core::object::{Drain, GroupKind, LabelChange, Object, Uid, Version};
use crate::core::partition::table::Kept;
use crate::core::partition::{Load, Partition, Share, Slots};
use crate::core::time::later;

const MS: Duration = Duration::from_millis(1);
const D: Duration = Duration::from_secs(15);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(after: Duration) -> Now {
    let wall = later(Timestamp::from_second(1_700_000_000).unwrap(), after);
    Now { mono: Moment(after), wall }
}

fn options() -> Options {
    let dialect = Dialect::Own { prefix: "windlass.dev".to_owned() };
    let main = MainKind { key: KeyMode::Own, is_namespaced: true, controlled: BTreeSet::new() };
    Options {
        names: Names::new("sites".parse().unwrap(), dialect),
        kinds: Kinds { main: [(GroupKind::new("", "Secret"), main)].into(), ..Kinds::default() },
        handover: Handover::default(),
        partitioning: Partitioning { slots: 64, ..Partitioning::default() },
        hold_max: secs(120),
        leaving: BTreeSet::new(),
        home: "windlass-system".to_owned(),
    }
}

fn lease(id: &str, version: u32) -> Lease {
    Lease {
        namespace: "shop".to_owned(),
        id: id.parse().unwrap(),
        version: Version(version.to_string()),
        created: at(Duration::ZERO).wall,
        holder: Some(id.to_owned()),
        duration_s: Some(15),
        renewed: Some(at(secs(u64::from(version))).wall),
        transitions: 0,
        weight: None,
        state: Some("ready".to_owned()),
        marks: Marks::default(),
    }
}

fn object(name: &str, version: u32, shard: Option<&str>) -> Object {
    let name = ObjectName {
        kind: GroupKind::new("", "Secret"),
        namespace: Some("shop".to_owned()),
        name: name.to_owned(),
    };
    Object {
        uid: Uid(name.name.clone()),
        name,
        version: Version(version.to_string()),
        shard: shard.map(|id| id.parse().unwrap()),
        drain: None,
        controller: None,
    }
}

/// A sharder, and what it wants that nobody has answered.
struct Stage {
    sharder: Sharder,
    now: Duration,
    open: Vec<Command>,
    /// What lists show, of main kinds and of controlled ones.
    objects: Vec<Object>,
    controlled: Vec<Object>,
    told: Vec<News>,
    /// What was listed.
    listed: Vec<Selector>,
}

impl Stage {
    /// A standby that knows these instances.
    fn unsettled(ids: &[&str]) -> Self {
        let mut stage = Self {
            sharder: Sharder::new(options()),
            now: Duration::ZERO,
            open: Vec::new(),
            objects: Vec::new(),
            controlled: Vec::new(),
            told: Vec::new(),
            listed: Vec::new(),
        };
        let leases = ids.iter().map(|id| lease(id, 1)).collect();
        stage.tell(Event::LeasesListed(leases));
        stage
    }

    /// Leads, with these instances at work and these objects there, and has come to rest.
    fn settled(ids: &[&str], objects: Vec<Object>) -> Self {
        let mut stage = Self::unsettled(ids);
        stage.objects = objects;
        stage.tell(Event::Leading { until: Moment(secs(10_000)) });
        stage.answer_all();
        stage
    }

    /// The ring is changed, and has these objects of controlled kinds.
    fn become_another(&mut self, options: Options, controlled: &[Object]) {
        self.controlled = controlled.to_vec();
        self.sharder.reconfigure(options);
        self.tell(Event::Leading { until: Moment(secs(10_000)) });
        self.answer_all();
    }

    fn tell(&mut self, event: Event) {
        let commands = self.sharder.on(at(self.now), event);
        self.open.extend(commands);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.tell(Event::Tick);
    }

    /// Another word of these instances.
    fn renew(&mut self, ids: &[&str], version: u32) {
        for id in ids {
            self.tell(Event::LeaseSeen(Box::new(lease(id, version))));
        }
    }

    /// Reads, lists and tables are answered; writes of labels and Leases stay open.
    fn answer_all(&mut self) {
        while let Some(index) = self.open.iter().position(is_routine) {
            let command = self.open.remove(index);
            match &command {
                Command::Tell(news) => self.told.push(news.clone()),
                Command::ListPage { selector, .. } => self.listed.push(selector.clone()),
                _ => {}
            }
            if let Some(event) = self.routine(command) {
                self.tell(event);
            }
        }
    }

    fn routine(&self, command: Command) -> Option<Event> {
        let (token, answer) = match command {
            Command::ReadTable => {
                let version = Version("1".to_owned());
                return Some(Event::TableRead { kept: None, version });
            }
            Command::WriteTable { token, kept, .. } => {
                (token, Answer::Table(Version((kept.epoch + 1).to_string())))
            }
            Command::ListPage { token, kinds, selector, .. } => {
                let is_wanted = |object: &&Object| match &selector {
                    Selector::All => true,
                    Selector::Of(id) => object.shard.as_ref() == Some(id),
                    Selector::NotOf(ids) => {
                        !object.shard.as_ref().is_some_and(|shard| ids.contains(shard))
                    }
                };
                let all = match kinds {
                    KindSet::Main => &self.objects,
                    KindSet::Controlled => &self.controlled,
                };
                let objects = all.iter().filter(is_wanted).cloned().collect();
                (token, Answer::Page { objects, is_last: true })
            }
            Command::ListChildren { token, .. } => (token, Answer::Children(Vec::new())),
            _ => return None,
        };
        Some(Event::Answered { token, answer })
    }

    /// A table in which everything is of `a`.
    fn kept() -> Kept {
        let share = Share { id: "a".parse().unwrap(), weight: 100 };
        let slots = Slots::empty(64).unwrap().with_members(&[share], &Load::unknown());
        Kept::new(1, &slots)
    }

    /// The writes of labels that are open.
    fn labels(&self) -> Vec<(String, LabelChange)> {
        let labels = self.open.iter().filter_map(|command| match command {
            Command::WriteObject { name, change, .. } => Some((name.name.clone(), change.clone())),
            _ => None,
        });
        labels.collect()
    }

    /// Takes the one open request about a Lease.
    #[track_caller]
    fn lease_request(&mut self) -> (Token, Option<Lease>) {
        let index = self.open.iter().position(|command| {
            matches!(command, Command::WriteLease { .. } | Command::ReadLease { .. })
        });
        match self.open.remove(index.expect("a request about a Lease")) {
            Command::WriteLease { token, lease, .. } => (token, Some(*lease)),
            Command::ReadLease { token, .. } => (token, None),
            _ => unreachable!(),
        }
    }

    fn has_lease_request(&self) -> bool {
        self.open.iter().any(|command| {
            matches!(command, Command::WriteLease { .. } | Command::ReadLease { .. })
        })
    }

    fn answer(&mut self, token: Token, answer: Answer) {
        self.tell(Event::Answered { token, answer });
        self.answer_all();
    }

    #[track_caller]
    fn read_request(&mut self) -> Token {
        let index =
            self.open.iter().position(|command| matches!(command, Command::ReadObject { .. }));
        match self.open.remove(index.expect("a read of an object")) {
            Command::ReadObject { token, .. } => token,
            _ => unreachable!(),
        }
    }

    #[track_caller]
    fn label_request(&mut self) -> (Token, LabelChange) {
        let (token, _, change) = self.write_request();
        (token, change)
    }

    #[track_caller]
    fn write_request(&mut self) -> (Token, ObjectName, LabelChange) {
        let index =
            self.open.iter().position(|command| matches!(command, Command::WriteObject { .. }));
        match self.open.remove(index.expect("a write of labels")) {
            Command::WriteObject { token, name, change, .. } => (token, name, change),
            _ => unreachable!(),
        }
    }

    fn has_read_request(&self) -> bool {
        self.open.iter().any(|command| matches!(command, Command::ReadObject { .. }))
    }
}

fn is_routine(command: &Command) -> bool {
    !matches!(
        command,
        Command::WriteObject { .. }
            | Command::ReadObject { .. }
            | Command::WriteLease { .. }
            | Command::ReadLease { .. }
            | Command::DeleteLease { .. }
    )
}

fn shard(id: &str) -> LabelChange {
    LabelChange::Shard(id.parse().unwrap())
}

#[test]
fn the_table_is_kept_before_any_label_is_written() {
    let mut stage = Stage::settled(&[], vec![]);
    stage.tell(Event::Unassigned { object: Box::new(object("x", 5, None)), is_listed: false });
    assert_eq!(stage.labels(), []);
    stage.tell(Event::LeaseSeen(Box::new(lease("a", 2))));
    let is_table = |command: &Command| matches!(command, Command::WriteTable { .. });
    assert!(stage.open.iter().any(is_table));
    assert_eq!(stage.labels(), [], "not yet");
    stage.answer_all();
    assert_eq!(stage.labels(), [("x".to_owned(), shard("a"))]);
}

#[test]
fn what_is_settled_is_not_remembered() {
    let objects = (0..50).map(|i| object(&format!("x{i}"), 5, Some("a"))).collect();
    let stage = Stage::settled(&["a"], objects);
    assert_eq!(stage.sharder.on_their_way(), 0);
    assert_eq!(stage.labels(), []);
}

#[test]
fn a_standby_and_a_leader_of_the_past_write_nothing() {
    let mut stage = Stage::settled(&["a"], vec![]);
    stage.tell(Event::Standby);
    let unassigned =
        || Event::Unassigned { object: Box::new(object("x", 5, None)), is_listed: false };
    stage.tell(unassigned());
    assert_eq!(stage.labels(), []);
    stage.tell(Event::Leading { until: Moment(secs(10)) });
    stage.answer_all();
    stage.pass(secs(10));
    stage.tell(unassigned());
    assert_eq!(stage.labels(), [], "it slept through its time, and was not told");
}

#[test]
fn a_silent_instance_is_declared_dead_only_once_its_lease_is_held() {
    let mut stage =
        Stage::settled(&["a", "b"], vec![object("x", 5, Some("a")), object("y", 5, Some("b"))]);
    stage.pass(D * 2 - MS);
    stage.renew(&["b"], 20);
    stage.answer_all();
    assert!(!stage.has_lease_request());
    stage.pass(MS);
    let (token, written) = stage.lease_request();
    let written = written.expect("it is to be taken");
    assert_eq!(
        (written.holder.as_deref(), written.duration_s),
        (Some("windlass-sharder"), Some(30))
    );
    assert_eq!(written.version, Version("1".to_owned()), "refused if it has renewed since");
    assert!(!stage.has_lease_request(), "once");
    // Nobody knows whether it was carried out: nothing is concluded, and it is read before anything.
    stage.answer(token, Answer::Failed);
    assert_eq!(stage.labels(), []);
    assert!(!stage.has_lease_request());
    stage.pass(D / 5);
    let (token, written) = stage.lease_request();
    assert_eq!(written, None, "read first");
    stage.answer(token, Answer::Lease(Box::new(lease("a", 30))));
    assert!(!stage.has_lease_request(), "it is alive");
    let state = stage.sharder.roster.state(&"a".parse().unwrap(), at(stage.now));
    assert_eq!(state, Some(crate::core::membership::State::Ready));
}

/// Where `a` is dead since second 30 and its Lease held; `b` lives.
fn with_dead() -> Stage {
    let mut stage = Stage::settled(&["a", "b"], vec![object("x", 5, Some("a"))]);
    let_die(&mut stage);
    stage
}

fn let_die(stage: &mut Stage) {
    stage.pass(secs(16));
    stage.renew(&["b"], 20);
    stage.pass(secs(14));
    stage.renew(&["b"], 30);
    let (token, written) = stage.lease_request();
    let held = Lease { version: Version("31".to_owned()), ..written.unwrap() };
    stage.answer(token, Answer::Lease(Box::new(held)));
}

#[test]
fn the_objects_of_the_dead_are_moved_at_once_with_one_write() {
    let stage = with_dead();
    assert_eq!(stage.labels(), [("x".to_owned(), shard("b"))]);
}

#[test]
fn nothing_is_moved_once_the_hold_may_be_over() {
    let hold = D * 2 - D / 5;
    for (elapsed, may_move) in [(hold - MS, true), (hold, false)] {
        let mut stage = with_dead();
        let (token, _) = stage.label_request();
        // The hold is not renewed: requests about Leases are left open.
        stage.now += elapsed;
        stage.renew(&["b"], 60);
        stage.answer(token, Answer::Conflict);
        let index = stage.open.iter().position(|it| matches!(it, Command::ReadObject { .. }));
        let Command::ReadObject { token, .. } = stage.open.remove(index.unwrap()) else { panic!() };
        stage.answer(token, Answer::Object(Box::new(object("x", 6, Some("a")))));
        assert_eq!(!stage.labels().is_empty(), may_move, "after {elapsed:?}");
    }
}

#[test]
fn a_lease_is_given_back_when_nothing_is_left() {
    let mut stage = with_dead();
    let (token, _) = stage.label_request();
    stage.objects = vec![object("x", 6, Some("b"))];
    stage.answer(token, Answer::Object(Box::new(object("x", 6, Some("b")))));
    let (_, written) = stage.lease_request();
    let written = written.expect("it is given back");
    assert_eq!((written.holder, written.duration_s), (None, Some(15)));
}

#[test]
fn a_conflict_is_read_again_five_times_and_then_waits() {
    let mut stage = Stage::settled(&["a"], vec![]);
    stage.tell(Event::Unassigned { object: Box::new(object("x", 5, None)), is_listed: false });
    for _ in 0..5 {
        let (token, _) = stage.label_request();
        stage.answer(token, Answer::Conflict);
        let index = stage.open.iter().position(|it| matches!(it, Command::ReadObject { .. }));
        let Command::ReadObject { token, .. } = stage.open.remove(index.unwrap()) else { panic!() };
        stage.answer(token, Answer::Object(Box::new(object("x", 6, None))));
    }
    let (token, _) = stage.label_request();
    stage.answer(token, Answer::Conflict);
    let reads = stage.open.iter().filter(|it| matches!(it, Command::ReadObject { .. })).count();
    assert_eq!(reads, 0);
    stage.pass(secs(1));
    let reads = stage.open.iter().filter(|it| matches!(it, Command::ReadObject { .. })).count();
    assert_eq!(reads, 1);
}

#[test]
fn a_weight_that_cannot_be_read_is_told_once() {
    let told = |commands: &[Command]| {
        let is_told = |it: &&Command| matches!(it, Command::Tell(News::UnreadableWeight(_)));
        commands.iter().filter(is_told).count()
    };
    let mut sharder = Sharder::new(options());
    let unreadable = Lease { weight: Some("many".to_owned()), ..lease("a", 1) };
    let leases = Event::LeasesListed(vec![unreadable, lease("b", 1)]);
    assert_eq!(told(&sharder.on(at(Duration::ZERO), leases)), 0, "a standby is silent");
    let leading = Event::Leading { until: Moment(secs(100)) };
    assert_eq!(told(&sharder.on(at(MS), leading)), 1);
    assert_eq!(told(&sharder.on(at(MS * 2), Event::Tick)), 0);
}

/// Whoever has what it was never given: nobody of ours has labelled that.
#[test]
fn a_label_that_somebody_else_has_written_is_mended_and_told() {
    let mut stage = Stage::settled(&["a", "b"], vec![object("x", 1, None)]);
    let (token, given) = stage.label_request();
    let LabelChange::Shard(owner) = given else { panic!("{given:?}") };
    let thief = if owner.as_str() == "a" { "b" } else { "a" };
    stage.objects = vec![object("x", 2, Some(owner.as_str()))];
    stage.answer(token, Answer::Object(Box::new(object("x", 2, Some(owner.as_str())))));
    stage.objects = vec![object("x", 3, Some(thief))];
    stage.tell(Event::Namespaces(["shop".to_owned()].into()));
    stage.answer_all();
    let strayed = |stage: &Stage| {
        let told = stage.told.iter().filter(|news| matches!(news, News::Strayed { .. }));
        told.count()
    };
    assert_eq!(strayed(&stage), 0, "a list may be behind");
    let token = stage.read_request();
    stage.answer(token, Answer::Object(Box::new(object("x", 3, Some(thief)))));
    assert_eq!(strayed(&stage), 1);
    assert!(matches!(stage.labels()[..], [(_, LabelChange::Drain(_))]), "{:?}", stage.labels());
}

/// What a member has to give up is no theft, however late a list shows it.
#[test]
fn what_is_on_its_way_is_no_stray() {
    let mut stage = Stage::settled(&["a"], vec![object("x", 1, Some("a"))]);
    stage.tell(Event::LeaseSeen(Box::new(lease("b", 1))));
    stage.answer_all();
    stage.tell(Event::Namespaces(["shop".to_owned()].into()));
    stage.answer_all();
    assert!(!stage.told.iter().any(|news| matches!(news, News::Strayed { .. })));
}

#[test]
fn requests_end_before_the_shortest_hold_does() {
    let mut sharder = Sharder::new(options());
    assert_eq!(sharder.request_timeout(), secs(3));
    let short = Lease { duration_s: Some(2), ..lease("a", 1) };
    let long = Lease { duration_s: Some(600), ..lease("b", 1) };
    let commands = sharder.on(at(Duration::ZERO), Event::LeasesListed(vec![short, long]));
    assert!(commands.is_empty());
    assert_eq!(sharder.request_timeout(), Duration::from_millis(400));
}
