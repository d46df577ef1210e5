//! The watch checker accepts a faithful watcher and refuses each way of being unfaithful.

use e2e::check::history::{Event, Truth};
use e2e::check::watch::{self, Delivery, Subscription, Violation};

use super::simulation;

const SEEDS: u64 = 40;

/// A faithful watcher's deliveries, changed in one place, and what is then said.
fn check(change: impl Fn(&mut Vec<Delivery>)) -> Vec<Violation> {
    let verdicts = (0..SEEDS).filter_map(|seed| {
        let truth = simulation::run(seed, None).truth;
        let mut subscription = simulation::watch(seed, &truth);
        change(&mut subscription.deliveries);
        watch::check(&truth, &subscription).err()
    });
    let verdicts: Vec<Violation> = verdicts.collect();
    assert_eq!(verdicts.len() as u64, SEEDS, "every seed must be caught");
    verdicts
}

/// The first answer, from the middle on, that the test accepts.
fn find(
    deliveries: &mut [Delivery],
    accepts: impl Fn(&[Event]) -> bool,
) -> (usize, &mut Vec<Event>) {
    let middle = deliveries.len() / 4;
    let found =
        deliveries.iter_mut().enumerate().skip(middle).find_map(|(at, delivery)| match delivery {
            Delivery::Events { events, .. } if accepts(events) => Some((at, events)),
            _ => None,
        });
    found.expect("a history of this length has such an answer")
}

fn has_two_of_one_revision(events: &[Event]) -> bool {
    events.windows(2).any(|pair| pair[0].revision == pair[1].revision)
}

#[test]
fn a_faithful_watcher_passes() {
    for seed in 0..SEEDS {
        let truth = simulation::run(seed, None).truth;
        let subscription = simulation::watch(seed, &truth);
        assert_eq!(watch::check(&truth, &subscription), Ok(()), "seed {seed}");
    }
}

#[test]
fn a_missing_event_is_caught() {
    let verdicts = check(|deliveries| {
        find(deliveries, |events| events.len() == 1).1.clear();
    });
    let is_expected =
        |each: &Violation| matches!(each, Violation::Missing(_) | Violation::EarlyProgress { .. });
    assert!(
        verdicts
            .iter()
            .all(|each| is_expected(each) || matches!(each, Violation::ResumedElsewhere { .. })),
        "{verdicts:?}"
    );
}

#[test]
fn a_repeated_event_is_caught() {
    let verdicts = check(|deliveries| {
        let (at, events) = find(deliveries, |events| !events.is_empty());
        let again =
            Delivery::Events { revision: i64::MAX, events: events.clone(), is_fragment: false };
        deliveries.insert(at + 1, again);
    });
    assert!(verdicts.iter().all(|each| matches!(each, Violation::Repeated(_))), "{verdicts:?}");
}

#[test]
fn reordered_events_are_caught() {
    let revisions = check(|deliveries| {
        let (_, events) = find(deliveries, |events| {
            events.windows(2).any(|pair| pair[0].revision < pair[1].revision)
        });
        events.reverse();
    });
    let is_expected =
        |each: &Violation| matches!(each, Violation::Missing(_) | Violation::OutOfOrder(_));
    assert!(revisions.iter().all(is_expected), "{revisions:?}");

    let keys = check(|deliveries| {
        let (_, events) = find(deliveries, has_two_of_one_revision);
        let at = events.windows(2).position(|pair| pair[0].revision == pair[1].revision);
        let at = at.expect("the answer was chosen for it");
        events.swap(at, at + 1);
    });
    assert!(keys.iter().all(|each| matches!(each, Violation::OutOfOrder(_))), "{keys:?}");
}

#[test]
fn a_split_revision_is_caught_unless_it_is_a_fragment() {
    let split = |deliveries: &mut Vec<Delivery>, is_fragment: bool| {
        let (at, events) = find(deliveries, has_two_of_one_revision);
        let cut = events.windows(2).position(|pair| pair[0].revision == pair[1].revision);
        let rest = events.split_off(cut.expect("the answer was chosen for it") + 1);
        let Delivery::Events { revision, is_fragment: flag, .. } = &mut deliveries[at] else {
            unreachable!("only answers are found");
        };
        *flag = is_fragment;
        let rest = Delivery::Events { revision: *revision, events: rest, is_fragment: false };
        deliveries.insert(at + 1, rest);
    };
    let verdicts = check(|deliveries| split(deliveries, false));
    assert!(verdicts.iter().all(|each| matches!(each, Violation::Split { .. })), "{verdicts:?}");

    let truth = simulation::run(3, None).truth;
    let mut subscription = simulation::watch(3, &truth);
    split(&mut subscription.deliveries, true);
    assert_eq!(watch::check(&truth, &subscription), Ok(()));
}

#[test]
fn early_progress_is_caught() {
    let verdicts = check(|deliveries| {
        let (at, events) = find(deliveries, |events| !events.is_empty());
        let promised = events[0].revision;
        deliveries.insert(at, Delivery::Progress { revision: promised });
    });
    let is_expected = |each: &Violation| matches!(each, Violation::EarlyProgress { .. });
    assert!(verdicts.iter().all(is_expected), "{verdicts:?}");
}

#[test]
fn a_wrong_previous_pair_is_caught() {
    let verdicts = check(|deliveries| {
        let (_, events) =
            find(deliveries, |events| events.iter().any(|each| each.previous.is_some()));
        let event = events.iter_mut().find(|each| each.previous.is_some());
        event.expect("the answer was chosen for it").previous = None;
    });
    assert!(verdicts.iter().all(|each| matches!(each, Violation::Invented(_))), "{verdicts:?}");
}

#[test]
fn a_header_behind_its_events_is_caught() {
    let verdicts = check(|deliveries| {
        let (at, events) = find(deliveries, |events| !events.is_empty());
        let behind = events[0].revision - 1;
        if let Delivery::Events { revision, .. } = &mut deliveries[at] {
            *revision = behind;
        }
    });
    let is_expected = |each: &Violation| matches!(each, Violation::HeaderBehind { .. });
    assert!(verdicts.iter().all(is_expected), "{verdicts:?}");
}

#[test]
fn a_watcher_that_heard_nothing_is_caught() {
    let truth = simulation::run(5, None).truth;
    let silent = Subscription { deliveries: Vec::new(), ..simulation::watch(5, &truth) };
    assert!(matches!(watch::check(&truth, &silent), Err(Violation::Missing(_))));
    let nothing = Truth::default();
    let silent = Subscription { deliveries: Vec::new(), ..simulation::watch(5, &nothing) };
    assert_eq!(watch::check(&nothing, &silent), Ok(()));
}
