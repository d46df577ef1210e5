use super::*;

const DEADLINE: i64 = 1_700_000_030;
const OF_INSTANCE: Holding = Holding::Instance { lasts: Duration::from_secs(15) };
const OF_SHARDER: Holding = Holding::Sharder { lasts: Duration::from_secs(30) };

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn uid(text: &str) -> Uid {
    Uid(text.to_owned())
}

fn worker(id: &str, incarnation: &str) -> Worker {
    Worker { id: id.parse().unwrap(), incarnation: incarnation.to_owned() }
}

/// `-`, `a`, `a+` (draining until second 30).
fn labels(text: &str) -> Labels {
    let shard = text.trim_end_matches('+');
    let drain = Drain::Until(u64::try_from(DEADLINE).unwrap());
    Labels {
        shard: (shard != "-").then(|| shard.parse().unwrap()),
        drain: text.ends_with('+').then_some(drain),
    }
}

struct Story(History);

fn breach(found: Result<(), Violation>) -> Option<Breach> {
    found.err().map(|violation| *violation.breach)
}

impl Story {
    fn new() -> Self {
        Self::with_fence(true)
    }

    fn with_fence(is_fenced: bool) -> Self {
        let unassigned_max = Duration::from_secs(8);
        let (skew, sight_max) = (Duration::ZERO, Duration::from_secs(5));
        let terms = Terms { is_fenced, skew, unassigned_max, sight_max };
        let mut story = Self(History::new(terms));
        story.tell(0, Fact::Created { object: uid("x"), parent: None }).unwrap();
        let child = Fact::Created { object: uid("child"), parent: Some(uid("x")) };
        story.tell(0, child).unwrap();
        story
    }

    fn tell(&mut self, second: i64, fact: Fact) -> Result<(), Violation> {
        self.0.on(at(second), fact)
    }

    fn label(&mut self, second: i64, object: &str, text: &str) -> Result<(), Violation> {
        self.tell(second, Fact::Labelled(uid(object), labels(text)))
    }

    /// Labels of x, one after the other; the last is judged.
    fn labels(story: &[(i64, &str)]) -> Result<(), Violation> {
        let mut told = Self::new();
        let (last, before) = story.split_last().unwrap();
        for (second, text) in before {
            told.label(*second, "x", text).unwrap();
        }
        told.label(last.0, "x", last.1)
    }
}

#[test]
fn labels_go_their_way() {
    for good in [
        &[(0, "a"), (1, "a+"), (2, "-"), (3, "b")][..],
        &[(0, "a"), (1, "a+"), (2, "a")],
        &[(0, "a"), (1, "a+"), (30, "b")],
        &[(0, "a"), (1, "a+"), (31, "-")],
    ] {
        assert_eq!(Story::labels(good), Ok(()), "{good:?}");
    }
    for bad in [&[(0, "a"), (1, "b")][..], &[(0, "a"), (1, "-")], &[(0, "a"), (1, "a+"), (29, "b")]]
    {
        let found = Story::labels(bad);
        assert!(matches!(breach(found.clone()), Some(Breach::Label(_))), "{bad:?}: {found:?}");
    }
}

#[test]
fn the_dead_lose_their_objects_at_once_and_only_while_their_lease_is_held() {
    for (holding, is_good) in [
        (OF_SHARDER, true),
        (OF_INSTANCE, false),
        (Holding::Nobody, false),
        (Holding::Absent, false),
    ] {
        let mut story = Story::new();
        story.label(0, "x", "a").unwrap();
        story.tell(1, Fact::Held("a".parse().unwrap(), holding)).unwrap();
        let found = story.label(2, "x", "b");
        assert_eq!(found.is_ok(), is_good, "{holding:?}: {found:?}");
    }
}

#[test]
fn a_lease_is_taken_only_from_who_was_silent_for_twice_its_duration() {
    for (holding, seconds, is_good) in [
        (OF_INSTANCE, 29, false),
        (OF_INSTANCE, 30, true),
        (Holding::Restarting, 1, true),
        (Holding::Nobody, 1, true),
        (Holding::Absent, 1, true),
    ] {
        let mut story = Story::new();
        let id: InstanceId = "a".parse().unwrap();
        story.label(0, "x", "b").unwrap();
        story.label(0, "child", "b").unwrap();
        story.tell(0, Fact::Held(id.clone(), holding)).unwrap();
        let found = story.tell(seconds, Fact::Held(id, OF_SHARDER));
        assert_eq!(found.is_ok(), is_good, "{holding:?} {seconds}: {found:?}");
    }
}

#[test]
fn two_never_work_at_once() {
    let began = |id, incarnation| Fact::Began(uid("x"), worker(id, incarnation));
    let mut story = Story::new();
    story.tell(0, began("a", "1")).unwrap();
    let found = story.tell(1, began("b", "1"));
    assert!(matches!(breach(found.clone()), Some(Breach::Overlap { .. })), "{found:?}");
    let mut story = Story::new();
    story.tell(0, began("a", "1")).unwrap();
    let found = story.tell(1, began("a", "2"));
    assert!(
        matches!(breach(found.clone()), Some(Breach::Overlap { .. })),
        "an incarnation is another: {found:?}"
    );
    let mut story = Story::new();
    story.tell(0, began("a", "1")).unwrap();
    story.tell(1, Fact::Ended(uid("x"), worker("a", "1"))).unwrap();
    story.tell(1, began("b", "1")).unwrap();
}

#[test]
fn what_hangs_may_hang_but_never_go_on() {
    let mut story = Story::new();
    let (a, b) = (worker("a", "1"), worker("b", "1"));
    story.tell(0, Fact::Began(uid("x"), a.clone())).unwrap();
    story.tell(1, Fact::Stopped(a.clone())).unwrap();
    story.tell(2, Fact::Began(uid("x"), b)).unwrap();
    let found = story.tell(3, Fact::Stepped(uid("x"), a.clone()));
    assert_eq!(breach(found), Some(Breach::Revenant(a)));
}

#[test]
fn nothing_is_given_up_while_it_is_worked_on() {
    let mut story = Story::new();
    story.label(0, "x", "a+").unwrap();
    story.tell(1, Fact::Began(uid("x"), worker("a", "1"))).unwrap();
    let found = story.label(2, "x", "-");
    assert!(matches!(breach(found.clone()), Some(Breach::GivenUpWhileBusy(_))), "{found:?}");
}

#[test]
fn children_do_not_go_before_their_parent_is_given_up() {
    let mut story = Story::new();
    story.label(0, "x", "a").unwrap();
    story.label(0, "child", "a").unwrap();
    let found = story.label(1, "child", "b");
    assert!(matches!(breach(found.clone()), Some(Breach::ChildFirst(_))), "{found:?}");
    let mut story = Story::new();
    story.label(0, "x", "a+").unwrap();
    story.label(0, "child", "a").unwrap();
    story.label(1, "x", "-").unwrap();
    story.label(2, "child", "b").unwrap();
    story.label(3, "x", "b").unwrap();
    assert_eq!(story.0.check_settled(at(4), Duration::ZERO), Ok(()));
    assert_eq!(story.0.moves(), 2);
}

/// Whatever was overdue was excused, whoever worked on it.
#[test]
fn without_a_fence_nothing_is_forced_from_who_works_on_it() {
    for (is_fenced, has_ended, is_good) in
        [(true, false, true), (false, true, true), (false, false, false)]
    {
        let mut story = Story::with_fence(is_fenced);
        story.label(0, "x", "a+").unwrap();
        story.tell(1, Fact::Began(uid("x"), worker("a", "1"))).unwrap();
        if has_ended {
            story.tell(20, Fact::Ended(uid("x"), worker("a", "1"))).unwrap();
        }
        let found = breach(story.label(31, "x", "b"));
        let is_forced = matches!(found, Some(Breach::ForcedWhileBusy(_)));
        assert_eq!((found.is_none(), is_forced), (is_good, !is_good), "{is_fenced} {has_ended}");
    }
}

#[test]
fn only_those_who_are_ready_are_given_something() {
    for (leases, given, is_good) in [
        (&[(0, OF_INSTANCE)][..], 7, true),
        // Its Lease ends at 15, and that may be seen five seconds later.
        (&[(0, OF_INSTANCE)][..], 20, true),
        (&[(0, OF_INSTANCE)][..], 21, false),
        (&[(0, OF_INSTANCE), (2, Holding::Nobody)][..], 7, true),
        (&[(0, OF_INSTANCE), (2, Holding::Nobody)][..], 8, false),
        (&[(0, OF_INSTANCE), (2, Holding::Restarting)][..], 8, false),
        (&[(0, OF_SHARDER)][..], 1, false),
    ] {
        let mut story = Story::new();
        let b: InstanceId = "b".parse().unwrap();
        for (second, holding) in leases {
            story.tell(*second, Fact::Held(b.clone(), *holding)).unwrap();
        }
        let passage = Passage { before: labels("-"), after: labels("b") };
        let found = story.0.check_given(&uid("x"), &passage, at(given)).err();
        let is_unready = matches!(found, Some(Breach::NotReady { .. }));
        assert_eq!((found.is_none(), is_unready), (is_good, !is_good), "{leases:?} {given}");
    }
}

#[test]
fn a_parent_does_not_go_before_its_children() {
    let mut story = Story::new();
    story.label(0, "x", "a+").unwrap();
    story.label(0, "child", "a").unwrap();
    story.label(1, "x", "-").unwrap();
    let found = breach(story.label(2, "x", "b"));
    assert!(matches!(found, Some(Breach::ParentFirst { .. })), "{found:?}");
    for (child_goes, is_good) in [(true, true), (false, false)] {
        let mut story = Story::new();
        story.label(0, "x", "a").unwrap();
        story.label(0, "child", "a").unwrap();
        story.tell(1, Fact::Held("a".parse().unwrap(), OF_SHARDER)).unwrap();
        if child_goes {
            story.label(2, "child", "b").unwrap();
        }
        let found = breach(story.label(3, "x", "b"));
        let is_first = matches!(found, Some(Breach::ParentFirst { .. }));
        assert_eq!((found.is_none(), is_first), (is_good, !is_good), "of the dead");
    }
}

#[test]
fn at_rest_everything_has_an_owner_and_families_are_together() {
    let mut story = Story::new();
    let found = story.0.check_settled(at(9), Duration::from_secs(8));
    assert!(
        matches!(breach(found.clone()), Some(Breach::Unassigned { for_ms: 9000, .. })),
        "{found:?}"
    );
    story.label(1, "x", "a").unwrap();
    story.label(1, "child", "b").unwrap();
    let found = story.0.check_settled(at(9), Duration::ZERO);
    assert!(matches!(breach(found.clone()), Some(Breach::Apart { .. })), "{found:?}");
}

/// An object that had to wait too long has an owner in the end.
#[test]
fn nothing_waits_long_for_an_owner_while_somebody_is_ready() {
    // When x is given to `a`, and how long that took of the time in which somebody was ready.
    for (leases, given, waited) in [
        (&[][..], 60, None),
        (&[(0, OF_INSTANCE)][..], 8, None),
        (&[(0, OF_INSTANCE)][..], 9, Some(9_000)),
        (&[(20, OF_INSTANCE)][..], 28, None),
        (&[(0, OF_INSTANCE), (2, Holding::Nobody)][..], 60, None),
        (&[(0, OF_INSTANCE)][..], 60, Some(15_000)),
        (&[(0, OF_INSTANCE), (9, Holding::Nobody)][..], 9, Some(9_000)),
        (&[(0, OF_INSTANCE), (7, Holding::Nobody), (9, OF_INSTANCE)][..], 17, None),
    ] {
        let mut story = Story::new();
        let mut found = Ok(());
        for (second, holding) in leases {
            let fact = Fact::Held("b".parse().unwrap(), *holding);
            found = found.and(story.tell(*second, fact));
        }
        found = found.and(story.label(given, "child", "a")).and(story.label(given, "x", "a"));
        let expected = waited.map(|for_ms| Breach::Waited { for_ms });
        assert_eq!(breach(found), expected, "{leases:?} {given}");
    }
}

#[test]
fn shares_are_measured_by_the_largest_among_those_who_could_have_some() {
    let mut story = Story::new();
    let ids = ["a", "b", "c"].map(|id| id.parse().unwrap());
    for (number, owner) in ["a", "a", "a", "b", "b", "c"].iter().enumerate() {
        let name = number.to_string();
        story.tell(0, Fact::Created { object: uid(&name), parent: None }).unwrap();
        story.label(0, &name, owner).unwrap();
    }
    story.label(0, "child", "a").unwrap();
    assert!((story.0.imbalance(&ids) - 1.5).abs() < 1e-9);
    assert!((story.0.imbalance(&ids[..2]) - 1.0).abs() < 1e-9);
}

#[test]
fn behind_a_fence_only_owners_write() {
    let write = |object: &str, shard: Option<&str>| Fact::Wrote {
        object: uid(object),
        by: "a".parse().unwrap(),
        shard: shard.map(|shard| shard.parse().unwrap()),
    };
    let mut story = Story::new();
    story.tell(0, write("x", Some("a"))).unwrap();
    story.tell(0, write("child", None)).unwrap();
    for (object, shard) in [("x", None), ("x", Some("b")), ("child", Some("b"))] {
        assert!(story.tell(0, write(object, shard)).is_err(), "{object} {shard:?}");
    }
}

/// The sharder held the Lease, somebody deleted it, and the instance made it anew: what it does not give
/// up in time is taken by force, and its children follow. The judge took it for a move from the dead.
#[test]
fn a_forced_move_goes_first_though_the_lease_was_held_before() {
    for is_deleted in [true, false] {
        let mut story = Story::new();
        let held = |holding| Fact::Held("a".parse().unwrap(), holding);
        story.label(1, "x", "a").unwrap();
        story.label(1, "child", "a").unwrap();
        story.label(2, "x", "a+").unwrap();
        story.tell(5, held(OF_SHARDER)).unwrap();
        if is_deleted {
            story.tell(8, held(Holding::Absent)).unwrap();
            story.tell(9, held(OF_INSTANCE)).unwrap();
        }
        let found = breach(story.label(31, "x", "b"));
        let is_refused = matches!(found, Some(Breach::ParentFirst { .. }));
        assert_eq!(is_refused, !is_deleted, "{found:?}");
    }
}
