//! The queue as workers see it: one line per step, in and out.

use std::time::Duration;

use super::*;
use crate::core::rv::ResourceVersion;

mod several;

const ME: &str = "processor-1";

/// A queue, and the moment its clock began.
struct Scene {
    queue: Queue,
    start: Instant,
}

fn name(node: &str, rv: &str) -> TransactionName {
    TransactionName::new(NodeHash::of(node), rv.parse::<ResourceVersion>().unwrap())
}

fn uid(text: &str) -> Uid {
    Uid(text.to_owned())
}

fn seen(node: &str, rv: &str) -> Seen {
    Seen {
        name: name(node, rv),
        uid: Some(uid("1")),
        document: Some(Document::default()),
        created: Timestamp::from_second(1_000).unwrap(),
        is_quarantined: false,
        bytes: 100,
    }
}

fn listed(all: impl IntoIterator<Item = Seen>) -> Listed {
    let mut listed = Listed::default();
    all.into_iter().for_each(|seen| listed.push(seen));
    listed
}

// === impl Scene ===

impl Scene {
    #[expect(clippy::disallowed_methods, reason = "only differences from it are used")]
    fn new(queue: Queue) -> Self {
        Self { queue, start: Instant::now() }
    }

    fn with(transactions: &[(&str, &str)]) -> Self {
        let mut scene = Self::new(Queue::new(ME));
        for (node, rv) in transactions {
            scene.see(seen(node, rv));
        }
        scene
    }

    fn see(&mut self, seen: Seen) {
        self.queue.on_seen(seen, self.start);
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    fn pick(&mut self, at_ms: u64) -> Option<NodeHash> {
        self.queue.pick(self.at(at_ms))
    }

    /// Without a random part in the waits.
    fn release(&mut self, hash: &NodeHash, end: TurnEnd, at_ms: u64) {
        let now = self.at(at_ms);
        self.queue.release(hash, end, now, 0.0);
    }

    fn rvs(&self, node: &str) -> Vec<String> {
        let batch = self.queue.batch(&NodeHash::of(node));
        batch.entries.iter().map(|entry| entry.name.rv().to_string()).collect()
    }
}

#[test]
fn a_node_is_worked_off_by_the_rv_in_the_names() {
    let scene = Scene::with(&[("a", "10"), ("a", "9"), ("b", "1"), ("a", "100")]);
    assert_eq!(scene.rvs("a"), ["9", "10", "100"]);
}

#[test]
fn a_node_has_one_worker_at_a_time() {
    let mut scene = Scene::with(&[("a", "1")]);
    let a = NodeHash::of("a");
    assert_eq!(scene.pick(0), Some(a.clone()));
    scene.see(seen("a", "2"));
    assert_eq!(scene.pick(0), None);

    scene.queue.on_gone(&name("a", "1"), Some(&uid("1")));
    scene.release(&a, TurnEnd::Done, 0);
    assert_eq!(scene.pick(0), Some(a), "what came meanwhile is still to be done");
    assert_eq!(scene.rvs("a"), ["2"]);
}

#[test]
fn who_waits_longest_goes_first() {
    let mut scene = Scene::with(&[]);
    let nodes = ["c", "a", "d", "b"];
    for (ms, node) in (0..).zip(nodes) {
        scene.queue.on_seen(seen(node, "1"), scene.at(ms));
    }
    let picked: Vec<_> = std::iter::from_fn(|| scene.pick(10)).collect();
    assert_eq!(picked, nodes.map(NodeHash::of));
}

#[test]
fn a_node_set_aside_waits_while_others_proceed() {
    let mut scene = Scene::with(&[("a", "1")]);
    let a = scene.pick(0).unwrap();
    scene.release(&a, TurnEnd::Refused, 0);
    assert_eq!(scene.queue.next_due(), Some(scene.at(500)));
    scene.see(seen("b", "1"));
    scene.see(seen("a", "2"));

    assert_eq!(scene.queue.next_due(), Some(scene.at(0)));
    assert_eq!(scene.pick(499), Some(NodeHash::of("b")));
    assert_eq!(scene.pick(499), None);
    assert_eq!(scene.pick(500), Some(a));
    assert_eq!(scene.queue.next_due(), None);
}

#[test]
fn failed_turns_lie_further_and_further_apart() {
    let mut scene = Scene::with(&[("a", "1")]);
    let a = NodeHash::of("a");
    let mut now_ms = 0;
    for (end, wait_ms) in [
        (TurnEnd::Failed, 250),
        (TurnEnd::Failed, 500),
        (TurnEnd::Refused, 500),
        (TurnEnd::Failed, 1000),
        (TurnEnd::Done, 0),
        (TurnEnd::Failed, 250),
    ] {
        scene.pick(now_ms).unwrap();
        scene.release(&a, end, now_ms);
        now_ms += wait_ms;
        assert_eq!(scene.queue.next_due(), Some(scene.at(now_ms)));
    }
}

#[test]
fn quarantined_transactions_are_passed_over_until_their_label_goes() {
    let mut scene = Scene::with(&[("a", "2")]);
    scene.see(Seen { is_quarantined: true, ..seen("a", "1") });
    assert_eq!(scene.rvs("a"), ["2"], "later ones proceed");

    scene.queue.on_gone(&name("a", "2"), Some(&uid("1")));
    assert_eq!(scene.pick(0), None);
    let census = scene.queue.census();
    assert_eq!((census.pending, census.quarantined, census.oldest), (0, 1, None));

    scene.see(seen("a", "1"));
    assert_eq!(scene.pick(0), Some(NodeHash::of("a")));
    assert_eq!(scene.rvs("a"), ["1"]);
}

#[test]
fn what_we_quarantine_is_passed_over_at_once() {
    let mut scene = Scene::with(&[("a", "1"), ("a", "2")]);
    scene.queue.on_quarantined(&name("a", "1"));
    assert_eq!(scene.rvs("a"), ["2"]);
}

#[test]
fn a_transaction_posted_again_outlives_the_end_of_the_first() {
    let mut scene = Scene::with(&[]);
    scene.see(Seen { uid: Some(uid("2")), ..seen("a", "1") });
    scene.queue.on_gone(&name("a", "1"), Some(&uid("1")));
    assert_eq!(scene.rvs("a"), ["1"]);
    scene.queue.on_gone(&name("a", "1"), Some(&uid("2")));
    assert_eq!(scene.rvs("a"), [""; 0]);
}

#[test]
fn beyond_the_bound_only_names_are_kept() {
    let mut scene = Scene::new(Queue::bounded(ME, 250, 100));
    let documents = |scene: &Scene| -> Vec<bool> {
        let batch = scene.queue.batch(&NodeHash::of("a"));
        batch.entries.iter().map(|entry| entry.document.is_some()).collect()
    };
    for rv in ["1", "2", "3"] {
        scene.see(seen("a", rv));
    }
    assert_eq!(documents(&scene), [true, true, false]);
    assert_eq!(scene.queue.bytes(), 300);

    scene.queue.on_gone(&name("a", "1"), Some(&uid("1")));
    scene.see(seen("a", "2"));
    scene.see(seen("a", "4"));
    assert_eq!(documents(&scene), [true, false, true], "room is what others have left");
}

#[test]
fn an_overflow_takes_in_nothing_until_it_is_listed_again() {
    let mut scene = Scene::new(Queue::bounded(ME, 1000, 2));
    for rv in ["1", "2", "3"] {
        scene.see(seen("a", rv));
    }
    scene.queue.on_gone(&name("a", "1"), Some(&uid("1")));
    scene.see(seen("a", "4"));
    assert_eq!(scene.rvs("a"), ["2"], "4 may not overtake 3, which was left out");
    assert!(scene.queue.needs_listing());

    scene.queue.on_listed(listed([seen("a", "3"), seen("a", "4")]), scene.start);
    assert_eq!(scene.rvs("a"), ["3", "4"]);
    assert!(!scene.queue.needs_listing());
}

#[test]
fn a_list_is_all_there_is() {
    let mut scene = Scene::with(&[("a", "1"), ("b", "1")]);
    scene.queue.on_listed(listed([seen("b", "1"), seen("c", "1")]), scene.start);
    assert_eq!(scene.rvs("a"), [""; 0]);
    assert_eq!(scene.queue.census().pending, 2);
    assert_eq!(scene.queue.bytes(), 200);
}

#[test]
fn a_node_can_be_settled_without_transactions() {
    let mut scene = Scene::with(&[]);
    let a = NodeHash::of("a");
    let wish = Wish { node: "a".to_owned(), cause: Cause::Resync };
    scene.queue.on_wish(wish.clone(), scene.start);
    assert_eq!(scene.pick(0), Some(a.clone()));
    assert_eq!(scene.queue.batch(&a).wish, Some(wish));

    scene.queue.on_settled(&a);
    scene.release(&a, TurnEnd::Done, 0);
    assert_eq!(scene.pick(0), None);
}

#[test]
fn nothing_is_kept_of_a_node_that_is_done() {
    let mut scene = Scene::with(&[("a", "1")]);
    let a = scene.pick(0).unwrap();
    scene.queue.on_gone(&name("a", "1"), Some(&uid("1")));
    scene.release(&a, TurnEnd::Failed, 0);
    assert_eq!(scene.pick(250), None);
    assert!(scene.queue.nodes.is_empty() && scene.queue.aside.is_empty());
    let queue = &scene.queue;
    assert_eq!(queue.payload_bytes + queue.bytes + queue.transactions, 0);
}
