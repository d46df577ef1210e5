use jiff::Timestamp;

use super::*;
use crate::core::lease::{Holder, Marks};
use crate::core::names::Dialect;
use crate::core::object::{Drain, GroupKind, Uid, Version};
use crate::core::time::later;

const MS: Duration = Duration::from_millis(1);
const D: Duration = Duration::from_secs(15);
const GRACE: Duration = Duration::from_secs(10);

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(after: Duration) -> Now {
    let wall = later(Timestamp::from_second(1_700_000_000).unwrap(), after);
    Now { mono: Moment(after), wall }
}

fn identity() -> Identity {
    let dialect = Dialect::Own { prefix: "windlass.dev".to_owned() };
    Identity {
        names: Names::new("sites".parse().unwrap(), dialect),
        id: "a-0".parse().unwrap(),
        namespace: "shop".to_owned(),
        incarnation: "new".to_owned(),
        pod: Some("pod-1/main".to_owned()),
        weight: None,
    }
}

/// A Lease held like this, of an earlier process in another pod.
fn lease(holder: Option<&str>) -> Lease {
    Lease {
        namespace: "shop".to_owned(),
        id: "a-0".parse().unwrap(),
        version: Version("7".to_owned()),
        created: at(Duration::ZERO).wall,
        holder: holder.map(ToOwned::to_owned),
        duration_s: Some(15),
        renewed: Some(at(Duration::ZERO).wall),
        transitions: 3,
        weight: None,
        state: None,
        marks: Marks {
            incarnation: Some("old".to_owned()),
            pod: Some("pod-0/main".to_owned()),
            ..Marks::default()
        },
    }
}

fn marked(change: impl FnOnce(&mut Marks)) -> Lease {
    let mut lease = lease(Some("a-0"));
    change(&mut lease.marks);
    lease
}

fn found(lease: &Lease, unchanged_for: Duration, is_renewed: bool) -> Start {
    let found = Found { lease, ring: Some("sites"), unchanged_for, is_renewed };
    start(&identity(), Some(&found))
}

#[test]
fn a_lease_is_taken_when_whoever_had_it_has_ended() {
    assert_eq!(start(&identity(), None), Start::Create);
    let at_once = [
        lease(None),
        lease(Some("")),
        marked(|marks| marks.pod = identity().pod),
        marked(|marks| marks.hold = Some(secs(60))),
        marked(|marks| marks.incarnation = Some("new".to_owned())),
    ];
    for lease in at_once {
        assert_eq!(found(&lease, Duration::ZERO, false), Start::Take, "{lease:?}");
    }
    let sharder = Lease { duration_s: Some(30), ..lease(Some("windlass-sharder")) };
    let waits = [(sharder, secs(30)), (lease(Some("a-0")), D), (lease(Some("somebody")), D)];
    for (lease, limit) in waits {
        assert_eq!(found(&lease, Duration::ZERO, false), Start::Wait(limit), "{lease:?}");
        assert_eq!(found(&lease, limit - MS, false), Start::Wait(MS), "{lease:?}");
        assert_eq!(found(&lease, limit, false), Start::Take, "{lease:?}");
    }
}

#[test]
fn who_finds_a_living_namesake_or_another_ring_fails() {
    let alive = found(&lease(Some("a-0")), Duration::ZERO, true);
    assert_eq!(alive, Start::Fail(JoinError::IdentityInUse));
    let other = Found {
        lease: &lease(None),
        ring: Some("shops"),
        unchanged_for: Duration::ZERO,
        is_renewed: false,
    };
    let error = JoinError::LeaseOfOtherRing { ring: "shops".to_owned() };
    assert_eq!(start(&identity(), Some(&other)), Start::Fail(error));
}

/// An instance and the moments at which it was told something.
struct Stage {
    instance: Instance,
}

impl Stage {
    fn new() -> Self {
        let options = Options { identity: identity(), duration: D, grace: GRACE };
        Self { instance: Instance::new(options, Moment::default()) }
    }

    /// At work since the beginning, with a Lease it found free.
    fn working() -> Self {
        let mut stage = Self::new();
        assert_eq!(stage.tell(Duration::ZERO, Event::Tick), [Command::ReadLease]);
        let taken = stage.lease_written(Duration::ZERO, Some(lease(None)));
        let commands = stage.written(Duration::ZERO, taken);
        assert_eq!(commands, [Command::Work]);
        stage
    }

    fn tell(&mut self, after: Duration, event: Event) -> Vec<Command> {
        self.instance.on(at(after), event)
    }

    /// What is written when this Lease is found.
    #[track_caller]
    fn lease_written(&mut self, after: Duration, lease: Option<Lease>) -> Lease {
        let ring = lease.as_ref().map(|_| "sites".to_owned());
        let event = Event::LeaseRead { lease: lease.map(Box::new), ring };
        match &self.tell(after, event)[..] {
            [Command::WriteLease { lease, .. }] => (**lease).clone(),
            other => panic!("no Lease is written: {other:?}"),
        }
    }

    /// The write is carried out at once.
    fn written(&mut self, after: Duration, lease: Lease) -> Vec<Command> {
        let sent = at(after).mono;
        let outcome = Outcome::Done(Box::new(lease));
        self.tell(after, Event::LeaseWritten { sent, outcome })
    }

    #[track_caller]
    fn renewal(&mut self, after: Duration) -> Lease {
        let commands = self.tell(after, Event::Tick);
        let mut written = commands.into_iter().filter_map(|command| match command {
            Command::WriteLease { lease, .. } => Some(*lease),
            _ => None,
        });
        written.next().expect("the Lease is renewed")
    }
}

fn object(name: &str, version: u32, is_draining: bool) -> Object {
    let name = ObjectName {
        kind: GroupKind::new("", "Secret"),
        namespace: Some("shop".to_owned()),
        name: name.to_owned(),
    };
    Object {
        name,
        uid: Uid("u".to_owned()),
        version: Version(version.to_string()),
        shard: Some("a-0".parse().unwrap()),
        drain: is_draining.then_some(Drain::Until(9)),
        controller: None,
    }
}

fn seen(object: &Object) -> Event {
    Event::Seen(Box::new(object.clone()))
}

#[test]
fn a_free_lease_is_taken_with_all_that_others_need_to_know() {
    let mut stage = Stage::new();
    assert_eq!(stage.tell(Duration::ZERO, Event::Tick), [Command::ReadLease]);
    let taken = stage.lease_written(secs(1), Some(lease(None)));
    assert_eq!(taken.held_by("windlass-sharder"), Holder::Instance);
    assert_eq!((taken.transitions, taken.duration_s), (4, Some(15)));
    assert_eq!(taken.marks.incarnation.as_deref(), Some("new"));
    assert_eq!(taken.version, Version("7".to_owned()), "refused if somebody wrote since");
}

#[test]
fn who_creates_its_lease_and_finds_objects_waits_for_whoever_may_still_move_them() {
    for (is_carried, work_after) in [(false, Duration::ZERO), (true, D * 2)] {
        let mut stage = Stage::new();
        assert_eq!(stage.tell(Duration::ZERO, Event::Tick), [Command::ReadLease]);
        let created = stage.lease_written(Duration::ZERO, None);
        assert_eq!(created.transitions, 0);
        assert_eq!(stage.written(Duration::ZERO, created), [Command::AskCarried]);
        let told = stage.tell(Duration::ZERO, Event::Carried(is_carried));
        assert_eq!(told == [Command::Work], !is_carried);
        let mut now = secs(3);
        while now < work_after {
            assert!(!stage.instance.is_working(), "{now:?}");
            let renewal = stage.renewal(now);
            stage.written(now, renewal);
            now += secs(3);
        }
        stage.tell(work_after, Event::Tick);
        assert!(stage.instance.is_working());
    }
}

#[test]
fn work_ends_at_two_thirds_after_the_last_renewal_left() {
    let mut stage = Stage::working();
    let renewal = stage.renewal(secs(3));
    let (sent, outcome) = (at(secs(3)).mono, Outcome::Done(Box::new(renewal)));
    // The answer comes late; what counts is when the request left.
    assert_eq!(stage.tell(secs(5), Event::LeaseWritten { sent, outcome }), []);
    let deadline = secs(13);
    assert!(stage.instance.may_go_on(Moment(deadline - MS)));
    assert!(!stage.instance.may_go_on(Moment(deadline)));
    let lost = [Command::Lost(Loss::Deadline)];
    assert_eq!(stage.tell(deadline, Event::Tick), lost);
    assert_eq!(stage.tell(deadline + MS, Event::Tick), [], "it is over once and for all");
}

#[test]
fn a_pause_is_noticed_before_anything_else_is_done() {
    let mut stage = Stage::working();
    let object = object("x", 8, false);
    assert!(stage.instance.begin(&object, Moment(secs(1))));
    assert!(!stage.instance.may_go_on(Moment(secs(45))));
    assert!(!stage.instance.begin(&object, Moment(secs(45))));
}

#[test]
fn a_lease_in_other_hands_is_lost_and_one_that_was_only_touched_is_not() {
    let taken = |change: fn(&mut Lease)| {
        let mut stage = Stage::working();
        let mut lease = stage.renewal(secs(3));
        change(&mut lease);
        let conflict = Event::LeaseWritten { sent: at(secs(3)).mono, outcome: Outcome::Conflict };
        assert_eq!(stage.tell(secs(3), conflict), [Command::ReadLease]);
        let ring = Some("sites".to_owned());
        stage.tell(secs(3), Event::LeaseRead { lease: Some(Box::new(lease)), ring })
    };
    let touched = taken(|lease| lease.marks.drain_epoch = 2);
    assert!(matches!(touched[0], Command::WriteLease { .. }), "{touched:?}");
    let lost = [Command::Lost(Loss::Taken)];
    assert_eq!(taken(|lease| lease.holder = Some("windlass-sharder".to_owned())), lost);
    assert_eq!(taken(|lease| lease.marks.incarnation = Some("newer".to_owned())), lost);
    let in_use = [Command::Lost(Loss::Join(JoinError::IdentityInUse))];
    assert_eq!(taken(|lease| lease.state = Some("conflict".to_owned())), in_use);
}

#[test]
fn a_lease_that_is_gone_is_lost() {
    let mut stage = Stage::working();
    stage.renewal(secs(3));
    let conflict = Event::LeaseWritten { sent: at(secs(3)).mono, outcome: Outcome::Conflict };
    stage.tell(secs(3), conflict);
    let gone = stage.tell(secs(3), Event::LeaseRead { lease: None, ring: None });
    assert_eq!(gone, [Command::Lost(Loss::Gone)]);
}

#[test]
fn an_idle_object_is_given_up_at_once_and_not_begun_again() {
    let mut stage = Stage::working();
    let (before, draining) = (object("x", 8, false), object("x", 9, true));
    let version = Version("9".to_owned());
    let acknowledge = Command::Acknowledge { name: draining.name.clone(), version };
    assert_eq!(stage.tell(secs(1), seen(&draining)), [acknowledge]);
    assert!(!stage.instance.begin(&before, Moment(secs(1))), "a cache may be behind");
    stage.tell(secs(1), Event::Acknowledged(draining.name.clone(), Outcome::Done(())));
    assert!(!stage.instance.begin(&before, Moment(secs(2))));
    assert!(stage.instance.begin(&object("x", 11, false), Moment(secs(2))), "it came back");
}

#[test]
fn a_running_reconcile_has_its_grace_and_is_then_dropped_before_the_object_is_given_up() {
    let mut stage = Stage::working();
    let draining = object("x", 9, true);
    assert!(stage.instance.begin(&object("x", 8, false), Moment(secs(0))));
    let name = draining.name.clone();
    let is_renewal = |command: &Command| matches!(command, Command::WriteLease { .. });
    let told = |stage: &mut Stage, after: Duration, event: Event| -> Vec<Command> {
        let commands = stage.tell(after, event);
        if let Some(Command::WriteLease { lease, .. }) = commands.iter().find(|it| is_renewal(it)) {
            stage.written(after, (**lease).clone());
        }
        commands.into_iter().filter(|command| !is_renewal(command)).collect()
    };
    assert_eq!(told(&mut stage, secs(1), seen(&draining)), []);
    for second in 2..11 {
        assert_eq!(told(&mut stage, secs(second), Event::Tick), []);
    }
    assert_eq!(told(&mut stage, secs(11) - MS, Event::Tick), []);
    assert_eq!(told(&mut stage, secs(11), Event::Tick), [Command::Cancel(name.clone())]);
    assert_eq!(told(&mut stage, secs(11), Event::Tick), [], "once, and nothing is given up yet");
    let ended = told(&mut stage, secs(12), Event::Ended(name.clone()));
    let version = Version("9".to_owned());
    assert_eq!(ended, [Command::Acknowledge { name, version }]);
}

#[test]
fn an_object_that_may_stay_after_all_is_worked_on() {
    let mut stage = Stage::working();
    let (draining, kept) = (object("x", 9, true), object("x", 10, false));
    stage.tell(secs(1), seen(&draining));
    let conflict = Event::Acknowledged(draining.name.clone(), Outcome::Conflict);
    assert_eq!(stage.tell(secs(1), conflict), [Command::ReadObject(draining.name.clone())]);
    assert_eq!(stage.tell(secs(1), seen(&kept)), []);
    assert!(stage.instance.begin(&kept, Moment(secs(1))));
}

#[test]
fn a_raised_epoch_is_answered_when_everything_was_looked_at() {
    let mut stage = Stage::working();
    let mut lease = stage.renewal(secs(3));
    lease.marks.drain_epoch = 2;
    assert_eq!(stage.written(secs(3), lease), [Command::ListDrains { epoch: 2 }]);
    assert_eq!(stage.renewal(secs(6)).marks.drain_seen, 0, "not before it has looked");
    let objects = vec![object("x", 9, true)];
    let told = stage.tell(secs(6), Event::DrainsListed { epoch: 2, objects });
    assert!(matches!(told[..], [Command::Acknowledge { .. }]), "{told:?}");
    let failed = Event::LeaseWritten { sent: at(secs(6)).mono, outcome: Outcome::Conflict };
    stage.tell(secs(6), failed);
    let again = stage.tell(
        secs(6),
        Event::LeaseRead {
            lease: Some(Box::new(marked(|marks| {
                marks.incarnation = Some("new".to_owned());
                marks.drain_epoch = 2;
            }))),
            ring: None,
        },
    );
    let [Command::WriteLease { lease, .. }] = &again[..] else { panic!("{again:?}") };
    assert_eq!(lease.marks.drain_seen, 2);
}

#[test]
fn an_orderly_end_waits_for_what_runs() {
    for (stop, holder, hold) in
        [(Stop::Release, None, None), (Stop::Hold(secs(60)), Some("a-0"), Some(secs(60)))]
    {
        let mut stage = Stage::working();
        let object = object("x", 8, false);
        assert!(stage.instance.begin(&object, Moment(secs(0))));
        assert_eq!(stage.tell(secs(1), Event::Stop(stop)), []);
        assert!(!stage.instance.begin(&object, Moment(secs(1))), "nothing begins any more");
        assert!(stage.instance.may_go_on(Moment(secs(1))), "what runs may finish");
        let told = stage.tell(secs(2), Event::Ended(object.name.clone()));
        let [Command::WriteLease { lease, .. }] = &told[..] else { panic!("{told:?}") };
        assert_eq!((lease.holder.as_deref(), lease.marks.hold), (holder, hold));
        assert_eq!(lease.duration_s, Some(15));
        assert_eq!(stage.written(secs(2), (**lease).clone()), [Command::Left]);
    }
}

/// The answer to the last write is lost, and meanwhile the sharder or another process may have taken
/// what was let go.
#[test]
fn an_orderly_end_whose_answer_was_lost_is_an_orderly_end() {
    let ours = |hold: Option<Duration>| {
        marked(|marks| {
            marks.incarnation = Some("new".to_owned());
            marks.hold = hold;
        })
    };
    for (stop, found, has_left) in [
        (Stop::Release, Some(lease(None)), true),
        (Stop::Release, Some(lease(Some("windlass-sharder"))), true),
        (Stop::Release, Some(lease(Some("a-0"))), true),
        (Stop::Release, None, true),
        (Stop::Release, Some(ours(None)), false),
        (Stop::Hold(secs(60)), Some(ours(Some(secs(60)))), true),
        (Stop::Hold(secs(60)), Some(ours(None)), false),
    ] {
        let mut stage = Stage::working();
        let told = stage.tell(secs(1), Event::Stop(stop));
        assert!(matches!(told[..], [Command::WriteLease { .. }]), "{told:?}");
        let lost = Event::LeaseWritten { sent: at(secs(1)).mono, outcome: Outcome::Failed };
        assert_eq!(stage.tell(secs(4), lost), []);
        assert_eq!(stage.tell(secs(5), Event::Tick), [Command::ReadLease]);
        let case = format!("{stop:?} {found:?}");
        let read = Event::LeaseRead { lease: found.map(Box::new), ring: None };
        let told = stage.tell(secs(5), read);
        let is_sent_again = matches!(told[..], [Command::WriteLease { .. }]);
        assert_eq!((told == [Command::Left], is_sent_again), (has_left, !has_left), "{case}");
    }
}

#[test]
fn a_lease_lost_before_it_was_let_go_is_lost_even_to_who_stops() {
    let mut stage = Stage::working();
    assert!(stage.instance.begin(&object("x", 8, false), Moment(secs(0))));
    assert_eq!(stage.tell(secs(1), Event::Stop(Stop::Release)), []);
    let read = Event::LeaseRead { lease: Some(Box::new(lease(None))), ring: None };
    assert_eq!(stage.tell(secs(2), read), [Command::Lost(Loss::Taken)]);
}

/// Whoever looks for what an instance said finds it on the page.
#[test]
fn the_operations_page_has_the_words_with_which_a_join_fails() {
    let page = include_str!("../../../../../docs/sharding-operations.md");
    let other = JoinError::LeaseOfOtherRing { ring: "other".to_owned() };
    for (error, ends_before) in [(JoinError::IdentityInUse, ';'), (other, '"')] {
        let words = error.to_string();
        let words = words.split(ends_before).next().unwrap_or_default().trim();
        assert!(page.contains(words), "{words}");
    }
}

/// A weight that somebody had set by hand was gone after every restart.
#[test]
fn the_weight_in_a_lease_stands_unless_the_instance_has_its_own() {
    for (own, expected) in [(None, "200"), (Some(50), "50")] {
        let identity = Identity { weight: own, ..identity() };
        let options = Options { identity, duration: D, grace: GRACE };
        let mut stage = Stage { instance: Instance::new(options, Moment::default()) };
        assert_eq!(stage.tell(Duration::ZERO, Event::Tick), [Command::ReadLease]);
        let found = Lease { weight: Some("200".to_owned()), ..lease(None) };
        let taken = stage.lease_written(Duration::ZERO, Some(found));
        assert_eq!(taken.weight.as_deref(), Some(expected));
    }
}
