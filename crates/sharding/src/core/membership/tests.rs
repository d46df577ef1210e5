use super::*;
use crate::core::lease::Marks;
use crate::core::names::InstanceId;
use crate::core::object::Version;
use crate::core::time::{Moment, Now};

const SHARDER: &str = "windlass-sharder";
const MS: Duration = Duration::from_millis(1);
const HOLD_MAX: Duration = Duration::from_secs(120);

fn id(name: &str) -> InstanceId {
    name.parse().unwrap()
}

/// The wall clock, so many seconds after some hour.
fn wall(seconds: u64) -> Timestamp {
    later(Timestamp::from_second(1_700_000_000).unwrap(), Duration::from_secs(seconds))
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A Lease of 15 seconds, renewed at the hour.
fn lease(holder: Option<&str>) -> Lease {
    Lease {
        namespace: "shop".to_owned(),
        id: id("a-0"),
        version: Version("1".to_owned()),
        created: wall(0),
        holder: holder.map(ToOwned::to_owned),
        duration_s: Some(15),
        renewed: Some(wall(0)),
        transitions: 0,
        weight: None,
        state: None,
        marks: Marks::default(),
    }
}

fn held() -> Lease {
    lease(Some("a-0"))
}

fn holding(seconds: u64) -> Lease {
    let marks = Marks { hold: Some(secs(seconds)), ..Marks::default() };
    Lease { marks, ..held() }
}

fn look(lease: &Lease, silent_for: Duration) -> Standing {
    look_at(lease, silent_for, wall(0))
}

fn look_at(lease: &Lease, silent_for: Duration, wall: Timestamp) -> Standing {
    let (sharder, hold_max) = (SHARDER, HOLD_MAX);
    judge(&Sight { lease, sharder, silent_for, wall, hold_max, is_eldest: true })
}

/// What a Lease is just before and right at an edge, and that the edge was foretold.
#[track_caller]
fn check_edge(lease: &Lease, edge: Duration, before: State, (at, due): (State, Option<Due>)) {
    let standing = look(lease, edge - MS);
    assert_eq!((standing.state, standing.due), (before, None), "before {edge:?}");
    assert_eq!(standing.changes_in, Some(MS), "before {edge:?}");
    for late in [Duration::ZERO, MS] {
        let standing = look(lease, edge + late);
        assert_eq!((standing.state, standing.due), (at, due), "{late:?} after {edge:?}");
    }
}

#[test]
fn an_instance_that_falls_silent_is_unknown_and_then_taken() {
    check_edge(&held(), secs(15), State::Ready, (State::Unknown, None));
    check_edge(&held(), secs(30), State::Unknown, (State::Unknown, Some(Due::Acquire)));
    let short = Lease { duration_s: Some(2), ..held() };
    check_edge(&short, secs(2), State::Ready, (State::Unknown, None));
    check_edge(&short, secs(4), State::Unknown, (State::Unknown, Some(Due::Acquire)));
    let unsaid = Lease { duration_s: None, renewed: None, ..held() };
    check_edge(&unsaid, secs(15), State::Ready, (State::Unknown, None));
}

#[test]
fn the_clock_of_the_instance_decides_nothing() {
    for renewed in [wall(0), wall(1_000_000), Timestamp::UNIX_EPOCH] {
        let lease = Lease { renewed: Some(renewed), ..held() };
        assert_eq!(look(&lease, secs(14)).state, State::Ready);
        assert_eq!(look(&lease, secs(15)).state, State::Unknown);
    }
}

#[test]
fn a_restarting_instance_is_waited_for_as_long_as_it_said_and_no_longer_than_allowed() {
    for (said, waited) in [(40, 40), (120, 120), (500, 120), (5, 5)] {
        let taken = (State::Unknown, Some(Due::Acquire));
        check_edge(&holding(said), secs(waited), State::Restarting, taken);
    }
    assert_eq!(look(&holding(0), Duration::ZERO).due, Some(Due::Acquire));
}

#[test]
fn a_stranger_in_the_holders_place_is_never_ready() {
    let stranger = lease(Some("somebody"));
    assert_eq!(look(&stranger, Duration::ZERO).state, State::Unknown);
    check_edge(&stranger, secs(30), State::Unknown, (State::Unknown, Some(Due::Acquire)));
}

#[test]
fn what_is_gone_is_removed_when_it_is_forgotten_by_both_clocks() {
    let dead = Lease { duration_s: Some(30), ..lease(Some(SHARDER)) };
    for (gone, state) in [(dead, State::Dead), (lease(None), State::Released)] {
        let at = |silent_for, seconds| look_at(&gone, silent_for, wall(seconds));
        let just_before = look_at(&gone, secs(500), later(wall(150), Duration::ZERO) - MS);
        assert_eq!((just_before.state, just_before.changes_in), (state, Some(MS)));
        assert_eq!(
            (at(secs(500), 150).state, at(secs(500), 150).due),
            (State::Orphan, Some(Due::Delete))
        );
        // The wall clock alone does not suffice: it may be wrong.
        assert_eq!(at(secs(15) - MS, 1_000_000).state, state);
        assert_eq!(at(secs(15) - MS, 1_000_000).changes_in, Some(MS));
        assert_eq!(at(secs(15), 1_000_000).state, State::Orphan);
    }
}

#[test]
fn short_leases_are_kept_for_a_minute() {
    let released = Lease { duration_s: Some(1), ..lease(None) };
    assert_eq!(look_at(&released, secs(500), wall(60) - MS).state, State::Released);
    assert_eq!(look_at(&released, secs(500), wall(60)).state, State::Orphan);
    let unsaid = Lease { renewed: None, ..released };
    assert_eq!(look(&unsaid, secs(60) - MS).state, State::Released);
    assert_eq!(look(&unsaid, secs(60)).state, State::Orphan);
}

#[test]
fn of_two_with_one_id_the_younger_is_in_conflict_whatever_it_does() {
    for lease in [held(), lease(None), lease(Some(SHARDER)), holding(9)] {
        let (sharder, hold_max) = (SHARDER, HOLD_MAX);
        let (silent_for, wall) = (secs(500), wall(0));
        let sight = Sight { lease: &lease, sharder, silent_for, wall, hold_max, is_eldest: false };
        let nothing = Standing { state: State::Conflict, due: None, changes_in: None };
        assert_eq!(judge(&sight), nothing);
    }
}

fn now(seconds: u64) -> Now {
    Now { mono: Moment(secs(seconds)), wall: wall(seconds) }
}

fn roster_with(lease: Lease) -> Roster {
    let mut roster = Roster::new(SHARDER, HOLD_MAX);
    roster.on_seen(lease, now(0).mono);
    roster
}

#[test]
fn only_a_change_of_holder_or_renewal_counts_as_a_sign_of_life() {
    let mut roster = roster_with(held());
    let version = |text: &str| Version(text.to_owned());
    let labelled = Lease { weight: Some("50".to_owned()), version: version("2"), ..held() };
    roster.on_seen(labelled, now(10).mono);
    assert_eq!(roster.state(&id("a-0"), now(15)), Some(State::Unknown));
    assert_eq!(roster.members(now(15))[0].weight, 50);
    roster.on_seen(Lease { renewed: Some(wall(7)), version: version("3"), ..held() }, now(16).mono);
    assert_eq!(roster.state(&id("a-0"), now(30)), Some(State::Ready));
    assert_eq!(roster.next_edge(now(30)), Some(now(31).mono));
    roster.on_seen(held(), now(30).mono);
    assert_eq!(
        roster.state(&id("a-0"), now(31)),
        Some(State::Unknown),
        "old news is no sign of life"
    );
}

#[test]
fn a_cold_start_counts_from_its_own_first_sight() {
    let mut roster = Roster::new(SHARDER, HOLD_MAX);
    roster.on_listed(vec![held()], now(1000).mono);
    assert_eq!(roster.state(&id("a-0"), now(1014)), Some(State::Ready));
    assert_eq!(roster.standing(&id("a-0"), now(1029)).unwrap().due, None);
    assert_eq!(roster.standing(&id("a-0"), now(1030)).unwrap().due, Some(Due::Acquire));
}

#[test]
fn a_lease_that_vanishes_says_nothing_for_its_duration() {
    let mut roster = roster_with(held());
    roster.on_listed(vec![], now(5).mono);
    assert_eq!(roster.state(&id("a-0"), now(19)), Some(State::Unknown));
    assert_eq!(roster.standing(&id("a-0"), now(19)).unwrap().due, None);
    assert_eq!(roster.next_edge(now(19)), Some(now(20).mono));
    assert_eq!(roster.standing(&id("a-0"), now(20)).unwrap().due, Some(Due::Acquire));
    let namespace = Some("shop".to_owned());
    let suspect = Suspect::NoLease { namespace, duration: secs(15) };
    assert_eq!(roster.suspect(&id("a-0")), Some(suspect));
    roster.on_seen(held(), now(20).mono);
    assert_eq!(roster.state(&id("a-0"), now(20)), Some(State::Ready));
}

#[test]
fn a_lease_that_was_over_is_forgotten_with_its_deletion() {
    for gone in [lease(None), lease(Some(SHARDER))] {
        let mut roster = roster_with(gone);
        roster.on_deleted(&id("a-0"), "shop", now(5).mono);
        assert_eq!(roster.members(now(5)), []);
    }
}

/// The end of a Lease, shown late, took away the one that had been made in its place; what the watch
/// showed next, older still, counted.
#[test]
fn a_watch_that_is_behind_does_not_take_away_a_lease_that_was_made_anew() {
    let of = |version: &str| Lease { version: Version(version.to_owned()), ..held() };
    let mut roster = roster_with(of("9"));
    roster.on_seen_deleted(&of("8"), now(5).mono);
    assert_eq!(roster.state(&id("a-0"), now(5)), Some(State::Ready));
    roster.on_seen_deleted(&of("10"), now(5).mono);
    assert_eq!(roster.state(&id("a-0"), now(5)), Some(State::Unknown));
}

#[test]
fn an_id_known_from_objects_alone_is_waited_for() {
    let mut roster = roster_with(held());
    roster.on_carried(&id("a-0"), now(1).mono);
    roster.on_carried(&id("b-0"), now(1).mono);
    roster.on_carried(&id("b-0"), now(9).mono);
    assert_eq!(roster.state(&id("b-0"), now(15)), Some(State::Unknown));
    assert_eq!(roster.standing(&id("b-0"), now(16)).unwrap().due, Some(Due::Acquire));
    let Some(Suspect::NoLease { namespace, .. }) = roster.suspect(&id("b-0")) else { panic!() };
    assert_eq!(namespace.as_deref(), Some("shop"), "where the others are");
    roster.forget_missing(&id("b-0"));
    assert_eq!(roster.state(&id("b-0"), now(16)), None);
}

#[test]
fn the_elder_of_two_leases_counts_until_it_is_gone() {
    let mut roster = roster_with(held());
    let younger = Lease { namespace: "bank".to_owned(), created: wall(1), ..held() };
    roster.on_seen(younger.clone(), now(1).mono);
    assert_eq!(roster.members(now(1)).len(), 1);
    assert_eq!(roster.conflicts(), [&younger]);
    assert!(roster.is_contested(&id("a-0"), now(1)));
    assert!(!roster.is_contested(&id("a-0"), now(31)), "nobody is there any more");
    roster.on_deleted(&id("a-0"), "shop", now(2).mono);
    assert_eq!(roster.members(now(2))[0].namespace.as_deref(), Some("bank"));
    assert_eq!(roster.conflicts(), [] as [&Lease; 0]);
}

#[test]
fn echoes_count_from_when_they_were_first_seen() {
    let mut roster = roster_with(held());
    let echo = |epoch: u64, version: &str| Lease {
        marks: Marks { drain_seen: epoch, ..Marks::default() },
        version: Version(version.to_owned()),
        ..held()
    };
    roster.on_seen(echo(3, "2"), now(10).mono);
    roster.on_seen(echo(3, "3"), now(20).mono);
    roster.on_seen(echo(5, "4"), now(30).mono);
    let seen_for = |epoch| roster.seen_for(&id("a-0"), epoch, now(40).mono);
    assert_eq!(seen_for(2), Some(secs(30)));
    assert_eq!(seen_for(3), Some(secs(30)));
    assert_eq!(seen_for(4), Some(secs(10)));
    assert_eq!(seen_for(6), None);
}
