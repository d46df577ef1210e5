use std::time::{Duration, Instant};

use super::{InvalidTimings, Roster, Sighting, Tenure, Timings, Verdict, Vigil, Vigils};

const DURATION: Duration = Timings::LOCK.duration;

fn sighting(holder: &str, renewed_s: i64, resource_version: &str) -> Sighting {
    Sighting {
        holder: Some(holder.to_owned()),
        renew_time: jiff::Timestamp::from_second(renewed_s).ok(),
        resource_version: resource_version.to_owned(),
        stated_duration: Some(DURATION),
    }
}

/// Any moment to count from.
fn moment() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Looks at each moment in turn and tells when it may be taken over.
fn first_takeover(looks: &[(u64, Sighting)]) -> Option<u64> {
    let start = moment();
    let mut vigil = Vigil::begin(DURATION, looks[0].1.clone(), start + ms(looks[0].0));
    let mut verdicts = looks.iter().map(|(at, seen)| {
        let now = start + ms(*at);
        vigil.on_seen(seen.clone(), now);
        (*at, vigil.verdict(now))
    });
    verdicts.find(|(_, verdict)| *verdict == Verdict::TakeOver).map(|(at, _)| at)
}

#[test]
fn a_silent_holder_is_replaced_after_the_duration_and_not_before() {
    let silent = sighting("a", 100, "7");
    for (looks, expected) in [
        (vec![0, 9_999], None),
        (vec![0, 10_000], Some(10_000)),
        (vec![0, 10_001], Some(10_001)),
        // Counted from the first look, however late that was.
        (vec![5_000, 14_999], None),
        (vec![5_000, 15_000], Some(15_000)),
    ] {
        let looks: Vec<_> = looks.into_iter().map(|at| (at, silent.clone())).collect();
        assert_eq!(first_takeover(&looks), expected, "{looks:?}");
    }
}

#[test]
fn any_change_starts_the_wait_anew() {
    let first = sighting("a", 100, "7");
    for changed in [sighting("b", 100, "7"), sighting("a", 101, "7"), sighting("a", 100, "8")] {
        let looks =
            |last: u64| [(0, first.clone()), (6_000, changed.clone()), (last, changed.clone())];
        assert_eq!(first_takeover(&looks(15_999)), None, "{changed:?}");
        assert_eq!(first_takeover(&looks(16_000)), Some(16_000), "{changed:?}");
    }
}

#[test]
fn what_nobody_holds_is_free_at_once() {
    let released = Sighting { holder: None, ..sighting("a", 100, "7") };
    assert_eq!(first_takeover(&[(0, released)]), Some(0));
}

#[test]
fn a_longer_stated_duration_is_respected_and_a_shorter_one_is_not() {
    let states = |seconds| Sighting {
        stated_duration: Some(Duration::from_secs(seconds)),
        ..sighting("a", 100, "7")
    };
    let at = |seen: Sighting, last: u64| first_takeover(&[(0, seen.clone()), (last, seen)]);
    assert_eq!(at(states(30), 29_999), None);
    assert_eq!(at(states(30), 30_000), Some(30_000));
    assert_eq!(at(states(1), 9_999), None);
    let silent = Sighting { stated_duration: None, ..sighting("a", 100, "7") };
    assert_eq!(at(silent.clone(), 9_999), None);
    assert_eq!(at(silent, 10_000), Some(10_000));
}

#[test]
fn the_verdict_names_the_moment_to_ask_again() {
    let start = moment();
    let vigil = Vigil::begin(DURATION, sighting("a", 100, "7"), start);
    assert_eq!(vigil.verdict(start + ms(1)), Verdict::Wait { until: start + DURATION });
}

#[test]
fn a_tenure_counts_from_before_the_request_left() {
    let sent = moment();
    let mut tenure = Tenure::begin(Timings::LOCK, sent);
    for (at, may_write, is_due) in [
        (0, true, false),
        (2_999, true, false),
        (3_000, true, true),
        (5_999, true, true),
        (6_000, false, true),
        (60_000, false, true),
    ] {
        let now = sent + ms(at);
        assert_eq!(
            (tenure.may_write(now), tenure.is_renewal_due(now)),
            (may_write, is_due),
            "{at}"
        );
    }
    // Sent at 4 s and answered at 5.9 s: what counts is 4 s.
    tenure.on_renewed(sent + ms(4_000));
    assert!(tenure.may_write(sent + ms(9_999)));
    assert!(!tenure.may_write(sent + ms(10_000)));
    assert!(!tenure.is_renewal_due(sent + ms(6_999)));
}

/// Whatever the timings, and however late the answer: when another may take over, the holder has
/// stopped writing.
#[test]
fn writing_ends_before_the_takeover() {
    for timings in [Timings::LOCK, Timings::LEADER] {
        timings.validate().unwrap();
        let sent = moment();
        let tenure = Tenure::begin(timings, sent);
        // The other sees the write at the earliest when it was sent.
        let vigil = Vigil::begin(timings.duration, sighting("a", 100, "7"), sent);
        assert!(tenure.may_write_until() < vigil.lapses_at());
    }
}

#[test]
fn timings_that_leave_no_time_are_refused() {
    let with = |renew_after: u64, write_until: u64, duration: u64, timeout: u64| {
        Timings {
            duration: ms(duration),
            renew_after: ms(renew_after),
            write_until: ms(write_until),
            request_timeout: ms(timeout),
        }
        .validate()
    };
    assert_eq!(with(3, 6, 10, 2), Ok(()));
    assert!(matches!(with(6, 6, 10, 2), Err(InvalidTimings::NoTimeToRenew { .. })));
    assert!(matches!(with(3, 10, 10, 2), Err(InvalidTimings::NoTimeToStop { .. })));
    assert_eq!(with(3, 6, 10, 0), Err(InvalidTimings::NoTimeToAnswer));
}

#[test]
fn each_lease_has_its_own_vigil() {
    let start = moment();
    let mut vigils = Vigils::new(DURATION, 8);
    let mut look = |name: &str, at: u64, version: &str| {
        vigils.on_seen(name, sighting("a", 100, version), start + ms(at)) == Verdict::TakeOver
    };
    assert!(!look("x", 0, "7"));
    assert!(!look("y", 5_000, "7"));
    assert!(look("x", 10_000, "7"));
    assert!(!look("y", 10_000, "7"));
    assert!(!look("y", 14_000, "8"));
    assert!(!look("y", 15_000, "8"));
    assert!(look("y", 24_000, "8"));
}

#[test]
fn a_forgotten_lease_is_waited_for_anew() {
    let start = moment();
    let mut vigils = Vigils::new(DURATION, 8);
    vigils.on_seen("x", sighting("a", 100, "7"), start);
    vigils.forget("x");
    let verdict = vigils.on_seen("x", sighting("a", 100, "7"), start + DURATION);
    assert_eq!(verdict, Verdict::Wait { until: start + DURATION * 2 });
}

#[test]
fn vigils_are_bounded_and_the_oldest_make_room() {
    let start = moment();
    let mut vigils = Vigils::new(DURATION, 2);
    vigils.on_seen("old", sighting("a", 100, "7"), start);
    let fresh = start + DURATION + ms(5_000);
    vigils.on_seen("fresh", sighting("a", 100, "7"), fresh);
    // "old" lapsed a whole duration ago and nobody asked since.
    let now = start + DURATION * 2;
    vigils.on_seen("new", sighting("a", 100, "7"), now);
    let verdict = vigils.on_seen("fresh", sighting("a", 100, "7"), now);
    assert_eq!(verdict, Verdict::Wait { until: fresh + DURATION });
    let verdict = vigils.on_seen("old", sighting("a", 100, "7"), now);
    assert_eq!(verdict, Verdict::Wait { until: now + DURATION });
}

/// The living members at some moment, in one line.
fn live(roster: &Roster, now: Instant) -> String {
    roster.live(now).into_iter().collect::<Vec<_>>().join(" ")
}

#[test]
fn members_are_gone_when_silent_released_or_deleted() {
    let start = moment();
    let mut roster = Roster::new(DURATION);
    for name in ["a", "b", "c"] {
        roster.on_seen(name.to_owned(), sighting(name, 100, "1"), start);
    }
    assert_eq!(live(&roster, start), "a b c");
    assert_eq!(roster.next_lapse(start), Some(start + DURATION));
    roster.on_seen("a".to_owned(), sighting("a", 105, "2"), start + ms(5_000));
    roster.on_deleted("c");
    assert_eq!(live(&roster, start + ms(9_999)), "a b");
    assert_eq!(live(&roster, start + DURATION), "a");
    assert_eq!(roster.next_lapse(start + DURATION), Some(start + ms(15_000)));
    let released = Sighting { holder: None, ..sighting("a", 106, "3") };
    roster.on_seen("a".to_owned(), released, start + ms(6_000));
    assert_eq!(live(&roster, start + ms(6_000)), "b");
}

#[test]
fn a_new_list_replaces_the_members_but_not_the_time_they_were_silent() {
    let start = moment();
    let mut roster = Roster::new(DURATION);
    for name in ["gone", "silent", "renewed"] {
        roster.on_seen(name.to_owned(), sighting(name, 100, "1"), start);
    }
    let listed = [("silent", "1"), ("renewed", "2"), ("new", "1")];
    let listed = listed.map(|(name, rv)| (name.to_owned(), sighting(name, 100, rv)));
    roster.on_listed(listed, start + ms(9_000));
    assert_eq!(live(&roster, start + ms(9_000)), "new renewed silent");
    assert_eq!(live(&roster, start + ms(10_000)), "new renewed");
}

#[test]
fn what_was_left_behind_is_found_after_its_time() {
    let start = moment();
    let mut roster = Roster::new(DURATION);
    roster.on_seen("a".to_owned(), sighting("a", 100, "41"), start);
    let hour = Duration::from_secs(3600);
    assert_eq!(roster.left_behind(hour, start + DURATION + hour - ms(1)), []);
    let found = roster.left_behind(hour, start + DURATION + hour);
    assert_eq!(found, [("a".to_owned(), "41".to_owned())]);
}
