use std::time::Duration;

use super::*;
use crate::core::{
    transaction::Source,
    watch::notation::{node, rv, show_all},
};

fn start() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn added(text: &str) -> Post {
    Post::added(&node(text), Source::Watch)
}

/// Takes what may go out now.
fn take_all(order: &mut Order, now: Instant) -> Vec<String> {
    let posts: Vec<_> = std::iter::from_fn(|| order.take(now)).collect();
    show_all(&posts).into_iter().map(|line| line[..line.find(' ').unwrap()].to_owned()).collect()
}

fn done(order: &mut Order, name: &str) {
    order.on_done(&NodeHash::of(name));
}

fn watermark(order: &Order) -> Option<&str> {
    order.watermark().map(ResourceVersion::as_str)
}

/// An order that read an event of each of these nodes, all due at `now`.
fn after(events: &[&str], now: Instant) -> Order {
    let mut order = Order::default();
    for event in events {
        order.on_event(node(event).rv, vec![(added(event), now)]);
    }
    order
}

#[test]
fn a_nodes_posts_go_out_one_after_the_other_and_those_of_many_at_once() {
    let now = start();
    let mut order = after(&["a u1 5", "b u2 6", "a u1 7", "a u1 8"], now);
    assert_eq!(take_all(&mut order, now), ["a.5", "b.6"]);
    done(&mut order, "b");
    assert_eq!(take_all(&mut order, now), [""; 0]);
    done(&mut order, "a");
    assert_eq!(take_all(&mut order, now), ["a.7"]);
    assert!(order.has_open(&NodeHash::of("a")) && !order.has_open(&NodeHash::of("b")));
}

#[test]
fn the_watermark_stays_before_the_first_that_is_not_done() {
    let now = start();
    let mut order = Order::default();
    assert_eq!(watermark(&order), None);
    order.on_event(rv("3"), vec![]);
    assert_eq!(watermark(&order), Some("3"));
    order.on_event(rv("5"), vec![(added("a u1 5"), now)]);
    order.on_event(rv("6"), vec![(added("b u2 6"), now)]);
    order.on_event(rv("7"), vec![]);
    order.on_event(rv("9"), vec![]);
    take_all(&mut order, now);
    done(&mut order, "b");
    assert_eq!(watermark(&order), Some("3"));
    done(&mut order, "a");
    assert_eq!(watermark(&order), Some("9"));
    assert!(order.is_empty());
}

#[test]
fn an_event_is_done_with_all_its_posts() {
    let now = start();
    let mut order = Order::default();
    order.on_event(rv("9"), vec![(added("a u1 5"), now), (added("a u2 9"), now)]);
    order.on_event(rv("10"), vec![]);
    for expected in ["a.5", "a.9"] {
        assert_eq!(watermark(&order), None);
        assert_eq!(take_all(&mut order, now), [expected]);
        done(&mut order, "a");
    }
    assert_eq!(watermark(&order), Some("10"));
}

#[test]
fn what_stands_for_no_event_holds_the_watermark_back_and_does_not_move_it() {
    let now = start();
    let mut order = Order::default();
    order.on_event(rv("5"), vec![]);
    order.on_finding(vec![(added("a u1 2"), now)]);
    order.on_event(rv("7"), vec![]);
    assert_eq!(watermark(&order), Some("5"));
    take_all(&mut order, now);
    done(&mut order, "a");
    assert_eq!(watermark(&order), Some("7"));
    order.on_finding(vec![]);
    assert_eq!(watermark(&order), Some("7"));
}

#[test]
fn history_that_went_back_takes_the_watermark_with_it() {
    let mut order = Order::default();
    order.on_event(rv("900"), vec![]);
    order.on_event(rv("80"), vec![]);
    assert_eq!(watermark(&order), Some("80"));
}

#[test]
fn posts_wait_for_their_time_and_not_for_each_other() {
    let now = start();
    let later = now + Duration::from_millis(450);
    let mut order = Order::default();
    order.on_event(rv("5"), vec![(added("a u1 5"), later)]);
    order.on_event(rv("6"), vec![(added("b u2 6"), now)]);
    assert_eq!(take_all(&mut order, now), ["b.6"]);
    assert_eq!(order.next_due(), Some(later));
    assert_eq!(take_all(&mut order, later), ["a.5"]);
    assert_eq!(order.next_due(), None);
}

#[test]
fn no_more_nodes_than_the_bound_are_in_flight() {
    let now = start();
    let events: Vec<_> = (0..40).map(|n| format!("n{n} u{n} {}", n + 1)).collect();
    let events: Vec<_> = events.iter().map(String::as_str).collect();
    let mut order = after(&events, now);
    assert_eq!(take_all(&mut order, now).len(), NODES_IN_FLIGHT_MAX);
    assert_eq!(order.next_due(), None);
    done(&mut order, "n0");
    assert_eq!(take_all(&mut order, now), ["n32.33"]);
}

#[test]
fn reading_stops_when_the_buffer_is_full() {
    let now = start();
    let mut order = Order::default();
    for n in 1..=POSTS_BUFFERED_MAX {
        assert!(!order.is_full(), "{n}");
        order.on_event(rv(&n.to_string()), vec![(added(&format!("a u1 {n}")), now)]);
    }
    assert!(order.is_full());
    take_all(&mut order, now);
    assert!(!order.is_full());
}

#[test]
fn events_that_ask_for_nothing_take_no_memory() {
    let now = start();
    let mut order = after(&["a u1 5"], now);
    (6..1000).for_each(|n| order.on_event(rv(&n.to_string()), vec![]));
    assert_eq!(order.events.len(), 2);
}
