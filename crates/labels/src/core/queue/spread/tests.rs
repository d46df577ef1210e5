use super::*;

const MEMBERS: [&str; 4] = ["a", "b", "c", "d"];

fn start() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn nodes() -> impl Iterator<Item = NodeHash> {
    (0..1000).map(|number| NodeHash::of(&format!("node-{number}")))
}

fn met(me: &str, peers: &[&str], now: Instant) -> Spread {
    let mut spread = Spread::new(me);
    for peer in peers {
        spread.on_met(peer, now);
    }
    spread
}

fn wait_ms(spread: &Spread, node: &NodeHash, since: Instant) -> u128 {
    (spread.place(node, since).due - since).as_millis()
}

#[test]
fn one_alone_waits_for_nobody() {
    let now = start();
    assert!(nodes().all(|node| wait_ms(&Spread::new("a"), &node, now) == 0));
}

#[test]
fn of_those_who_know_each_other_one_takes_a_node_at_once() {
    let now = start();
    let spreads = MEMBERS.map(|me| met(me, &MEMBERS, now));
    let mut firsts = [0; MEMBERS.len()];
    for node in nodes() {
        let waits = spreads.each_ref().map(|spread| wait_ms(spread, &node, now));
        let mut sorted = waits;
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 400, 800, 800], "{node}");
        firsts[waits.iter().position(|wait| *wait == 0).unwrap()] += 1;
    }
    assert!(firsts.iter().all(|first| (200..300).contains(first)), "{firsts:?}");
}

#[test]
fn no_node_waits_long_however_many_were_met() {
    let now = start();
    let mut spread = Spread::new("a");
    let changes = (0..1000).filter(|peer| spread.on_met(&format!("peer-{peer}"), now)).count();
    assert_eq!(changes, PEERS_MAX);
    assert!(nodes().all(|node| wait_ms(&spread, &node, now) <= 800));
}

#[test]
fn who_is_not_met_again_is_forgotten() {
    let now = start();
    let at = |seconds| now + Duration::from_secs(seconds);
    let mut spread = met("a", &["b", "c"], now);
    assert!(!spread.on_met("c", at(30)), "a known one changes nothing");
    assert!(!spread.forget(at(59)));
    assert!(spread.forget(at(60)));
    let with_c = met("a", &["c"], now);
    assert!(nodes().all(|node| spread.place(&node, now) == with_c.place(&node, now)));
}

#[test]
fn our_own_lock_tells_of_nobody() {
    assert!(!Spread::new("a").on_met("a", start()));
}

#[test]
fn each_begins_elsewhere_with_nodes_that_are_due_together() {
    let now = start();
    let first_ones = |me: &str| {
        let spread = Spread::new(me);
        let mut places: Vec<Place> = nodes().map(|node| spread.place(&node, now)).collect();
        places.sort();
        places.into_iter().take(16).map(|place| place.node).collect::<Vec<_>>()
    };
    let mut all: Vec<NodeHash> = MEMBERS.iter().flat_map(|me| first_ones(me)).collect();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 64, "sixteen workers of each, and none wants what another has");
}
