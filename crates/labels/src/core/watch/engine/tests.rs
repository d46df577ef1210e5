use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::core::watch::{
    index::EventKind,
    notation::{node, rv, saved, show, uid},
};

const DELAY: Duration = Duration::from_secs(5);

/// A lone watcher at a time of its own.
struct Watcher {
    engine: Engine,
    now: Instant,
}

impl Watcher {
    fn new() -> Self {
        let now = tokio::time::Instant::now().into_std();
        Self { engine: Engine::new("w".to_owned(), DELAY, now), now }
    }

    fn read(&mut self, kind: EventKind, line: &str) {
        self.engine.on_event(NodeEvent { kind, node: node(line) }, self.now);
    }

    fn relist(&mut self, position: &str, alive: &[&str], reason: Reason) {
        let listing = Listing {
            position: rv(position),
            nodes: alive.iter().map(|line| node(line)).collect(),
            checkpoints: Vec::new(),
            records: [].into(),
            queued: BTreeSet::new(),
        };
        let retention = Retention { period: SignedDuration::ZERO, now: Timestamp::UNIX_EPOCH };
        self.engine.on_relisted(listing, reason, retention, self.now);
    }

    fn sweep(&mut self, position: &str, alive: &[&str]) {
        let nodes = alive.iter().map(|line| node(line)).collect();
        let roll = Roll { position: rv(position), nodes, stored: BTreeSet::new() };
        self.engine.on_swept(roll, self.now);
    }

    /// Posts what is due and tells it: `a.5 added …` or `seen: …`.
    fn post_all(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        while let Some(turn) = self.engine.take_post(self.now) {
            match turn {
                Turn::Post(post) => {
                    self.engine.on_posted(&post);
                    told.push(show(&post));
                }
                Turn::Seen(post) => told.push(format!("seen: {}", show(&post))),
            }
        }
        told
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }
}

fn transaction(node: &str, version: &str) -> TransactionName {
    TransactionName::new(NodeHash::of(node), rv(version))
}

#[test]
fn what_another_watcher_posted_is_not_posted_again() {
    let mut watcher = Watcher::new();
    watcher.engine.on_transaction(transaction("a", "5"));
    watcher.read(EventKind::Added, "a u1 5");
    watcher.read(EventKind::Deleted, "a u1 6");
    assert_eq!(watcher.post_all(), ["seen: a.5 added u1 (watch)", "a.6 deleted u1 (watch)"]);
    assert_eq!(watcher.engine.watermark(), Some(&rv("6")));
}

#[test]
fn a_name_of_a_history_that_is_no_more_proves_nothing() {
    let mut watcher = Watcher::new();
    watcher.engine.on_transaction(transaction("a", "90"));
    watcher.relist("80", &[], Reason::WentBack);
    watcher.read(EventKind::Added, "a u2 90");
    assert_eq!(watcher.post_all(), ["a.90 added u2 (watch)"]);
}

/// A post that is refused for hours kept a new node's labels from being saved. Whoever was stopped then
/// took them along, if the node went before the next watcher came.
#[test]
fn labels_are_saved_though_the_nodes_arrival_cannot_be_posted() {
    let mut watcher = Watcher::new();
    watcher.read(EventKind::Added, "a u1 5 x=1");
    assert!(watcher.engine.take_post(watcher.now).is_some(), "and the server refuses it");
    watcher.wait(DELAY);
    let save = Upkeep::Save { live: node("a u1 5 x=1"), over: None };
    assert_eq!(watcher.engine.take_upkeep(watcher.now), Some(save));
    watcher.read(EventKind::Modified, "a u1 6 x=2");
    watcher.engine.on_saved(saved("a u1 5 x=1"), watcher.now);
    watcher.wait(DELAY);
    assert_eq!(
        watcher.engine.take_upkeep(watcher.now),
        save_over("a u1 6 x=2", "a u1 5 x=1"),
        "changed while being saved"
    );
}

#[test]
fn a_checkpoint_is_not_written_over_before_the_end_it_knows_is_posted() {
    let mut watcher = Watcher::new();
    watcher.engine.on_checkpoint(saved("a u1 5 x=1"));
    watcher.read(EventKind::Deleted, "a u1 8 x=1");
    watcher.read(EventKind::Added, "a u2 9 x=2");
    watcher.wait(DELAY);
    assert_eq!(watcher.engine.take_upkeep(watcher.now), None);
    watcher.post_all();
    watcher.wait(DELAY);
    assert_eq!(watcher.engine.take_upkeep(watcher.now), save_over("a u2 9 x=2", "a u1 5 x=1"));
}

#[test]
fn an_end_that_only_a_checkpoint_knows_is_told_before_it_is_written_over() {
    let mut watcher = Watcher::new();
    watcher.engine.on_checkpoint(saved("a u1 5 x=1"));
    watcher.read(EventKind::Modified, "a u2 9 x=2");
    watcher.wait(DELAY);
    assert_eq!(watcher.engine.take_upkeep(watcher.now), None);
    assert_eq!(watcher.post_all(), ["deleted u1 (checkpoint)"]);
    watcher.wait(DELAY);
    let save = Upkeep::Save { live: node("a u2 9 x=2"), over: Some(saved("a u1 5 x=1")) };
    assert_eq!(watcher.engine.take_upkeep(watcher.now), Some(save));
}

/// A node `a` that is back as u2, and whose labels of before are in a checkpoint and queued.
fn returned() -> Watcher {
    let mut watcher = Watcher::new();
    watcher.engine.on_checkpoint(saved("a u1 5 x=1"));
    watcher.read(EventKind::Deleted, "a u1 8 x=1");
    watcher.read(EventKind::Added, "a u2 9");
    assert_eq!(watcher.post_all().len(), 2);
    for version in ["8", "9"] {
        watcher.engine.on_transaction(transaction("a", version));
    }
    watcher.wait(DELAY);
    assert_eq!(watcher.engine.take_upkeep(watcher.now), None, "it is about to get its labels");
    watcher
}

fn save_over(live: &str, over: &str) -> Option<Upkeep> {
    Some(Upkeep::Save { live: node(live), over: Some(saved(over)) })
}

#[test]
fn a_returned_node_is_saved_once_with_the_labels_that_it_was_given() {
    let mut watcher = returned();
    watcher.read(EventKind::Modified, "a u2 10 x=1 m=8");
    watcher.wait(DELAY);
    let save = save_over("a u2 10 x=1 m=8", "a u1 5 x=1");
    assert_eq!(watcher.engine.take_upkeep(watcher.now), save, "though it is still queued");
}

/// However long the queue is: nobody is to look for what keeps a watcher from saving.
#[test]
fn a_returned_node_that_waits_for_its_labels_does_not_lag() {
    let mut watcher = returned();
    for _ in 0..60 {
        watcher.wait(Duration::from_secs(1));
        assert_eq!(watcher.engine.take_upkeep(watcher.now), None);
        assert!(watcher.engine.checkpoint_lag(watcher.now) < DELAY);
    }
    watcher.read(EventKind::Modified, "a u2 10 x=1 m=8");
    watcher.wait(Duration::from_secs(60));
    assert!(watcher.engine.checkpoint_lag(watcher.now) >= Duration::from_secs(60));
}

#[test]
fn a_returned_node_that_is_given_nothing_is_saved_when_that_is_known() {
    let mut watcher = returned();
    watcher.engine.on_transaction_ended(transaction("a", "8"));
    watcher.wait(DELAY);
    assert_eq!(watcher.engine.take_upkeep(watcher.now), None, "one is still queued");
    watcher.engine.on_transaction_ended(transaction("a", "9"));
    watcher.wait(DELAY);
    assert_eq!(watcher.engine.take_upkeep(watcher.now), save_over("a u2 9", "a u1 5 x=1"));
}

#[test]
fn nobody_waits_for_what_a_list_does_not_have() {
    let mut watcher = returned();
    watcher.engine.on_transactions_listed();
    watcher.wait(DELAY);
    assert_eq!(watcher.engine.take_upkeep(watcher.now), save_over("a u2 9", "a u1 5 x=1"));
}

#[test]
fn who_is_new_or_known_is_saved_though_something_is_queued() {
    let mut watcher = Watcher::new();
    watcher.engine.on_checkpoint(saved("b u3 5 x=1"));
    for line in ["a u1 7 x=1", "b u3 8 x=2"] {
        watcher.read(EventKind::Added, line);
    }
    watcher.post_all();
    watcher.engine.on_transaction(transaction("a", "7"));
    watcher.engine.on_transaction(transaction("b", "8"));
    watcher.wait(DELAY);
    let mut saves = [(); 2].map(|()| watcher.engine.take_upkeep(watcher.now));
    saves.sort_by_key(|save| matches!(save, Some(Upkeep::Save { over: Some(_), .. })));
    let create = Some(Upkeep::Save { live: node("a u1 7 x=1"), over: None });
    assert_eq!(saves, [create, save_over("b u3 8 x=2", "b u3 5 x=1")]);
}

#[test]
fn a_living_node_whose_checkpoint_was_removed_gets_a_new_one() {
    let mut watcher = Watcher::new();
    watcher.engine.on_checkpoint(saved("a u1 5 x=1"));
    watcher.read(EventKind::Modified, "a u1 5 x=1");
    watcher.wait(DELAY);
    assert_eq!(watcher.engine.take_upkeep(watcher.now), None);
    watcher.engine.on_checkpoint_removed(&NodeHash::of("a"), watcher.now);
    watcher.wait(DELAY);
    let save = Upkeep::Save { live: node("a u1 5 x=1"), over: None };
    assert_eq!(watcher.engine.take_upkeep(watcher.now), Some(save));
}

#[test]
fn a_sweep_tells_before_it_removes_and_saves_who_has_no_checkpoint() {
    let mut watcher = Watcher::new();
    watcher.engine.on_checkpoint(saved("a u1 5 x=1"));
    watcher.sweep("9", &["b u2 6"]);
    assert_eq!(watcher.engine.take_upkeep(watcher.now), None);
    assert_eq!(watcher.post_all(), ["deleted u1 (checkpoint)"]);
    let remove = Upkeep::Remove(saved("a u1 5 x=1"));
    assert_eq!(watcher.engine.take_upkeep(watcher.now), Some(remove));
    watcher.wait(DELAY);
    let save = Upkeep::Save { live: node("b u2 6"), over: None };
    assert_eq!(watcher.engine.take_upkeep(watcher.now), Some(save));
}

/// An end counted as told once it was read. While its post waited for a server that refused, the
/// hourly look removed the checkpoint, and a watcher that died then took the labels with it.
#[test]
fn a_checkpoint_whose_end_is_read_and_not_posted_is_not_removed() {
    let mut watcher = Watcher::new();
    watcher.engine.on_checkpoint(saved("a u1 5 x=1"));
    watcher.read(EventKind::Deleted, "a u1 8 x=1");
    watcher.sweep("9", &["b u2 6"]);
    assert_eq!(watcher.engine.take_upkeep(watcher.now), None, "its post waits");
    let Some(Turn::Post(post)) = watcher.engine.take_post(watcher.now) else {
        panic!("the end of u1 is to be told");
    };
    watcher.sweep("9", &["b u2 6"]);
    assert_eq!(watcher.engine.take_upkeep(watcher.now), None, "its post is under way");
    watcher.engine.on_posted(&post);
    watcher.sweep("9", &["b u2 6"]);
    let remove = Upkeep::Remove(saved("a u1 5 x=1"));
    assert_eq!(watcher.engine.take_upkeep(watcher.now), Some(remove));
}

/// An end was read, then the server's storage was put back to before it. The incarnation lived on
/// and ended for good while no events came, and nobody told: it was remembered as gone.
#[test]
fn an_end_that_was_rolled_back_is_told_when_it_comes_unseen() {
    let mut watcher = Watcher::new();
    watcher.read(EventKind::Added, "a u1 5 x=1");
    watcher.read(EventKind::Deleted, "a u1 8 x=1");
    watcher.post_all();
    watcher.relist("6", &["a u1 5 x=1", "b u2 6"], Reason::WentBack);
    watcher.relist("20", &["b u2 6"], Reason::Expired);
    assert_eq!(watcher.post_all(), ["a.5 deleted u1 (list) x=1"]);
}

/// The same where versions had risen again before anyone asked, so that the rollback went unnoticed
/// and an event is the only sign that the incarnation lives.
#[test]
fn an_event_of_who_was_gone_brings_it_back() {
    let mut watcher = Watcher::new();
    watcher.read(EventKind::Added, "a u1 5 x=1");
    watcher.read(EventKind::Deleted, "a u1 8 x=1");
    watcher.read(EventKind::Modified, "a u1 12 x=2");
    watcher.post_all();
    watcher.relist("20", &["b u2 6"], Reason::Expired);
    assert_eq!(watcher.post_all(), ["a.12 deleted u1 (list) x=2"]);
}

#[test]
fn a_checkpoint_that_was_taken_over_meanwhile_is_not_removed() {
    let mut watcher = Watcher::new();
    watcher.engine.on_checkpoint(saved("a u1 5 x=1"));
    watcher.sweep("9", &["b u2 6"]);
    watcher.engine.on_checkpoint(saved("a u3 10 x=2"));
    watcher.post_all();
    assert_eq!(watcher.engine.take_upkeep(watcher.now), None);
    assert!(watcher.engine.index.is_gone(&uid("u1")));
}

#[test]
fn a_checkpoint_that_cannot_be_read_is_neither_removed_nor_written_over() {
    let mut watcher = Watcher::new();
    watcher.engine.on_checkpoint(saved("a u1 5 x=1"));
    watcher.sweep("9", &["b u2 6"]);
    let Some(Turn::Post(post)) = watcher.engine.take_post(watcher.now) else {
        panic!("the end of u1 is to be told");
    };
    watcher.engine.on_untold(&post);
    assert_eq!(watcher.engine.take_upkeep(watcher.now), None, "it stays");
    watcher.read(EventKind::Added, "a u3 10 x=2");
    watcher.post_all();
    watcher.wait(DELAY);
    let save = Upkeep::Save { live: node("b u2 6"), over: None };
    assert_eq!(watcher.engine.take_upkeep(watcher.now), Some(save), "others are saved");
    assert_eq!(watcher.engine.take_upkeep(watcher.now), None, "it is not written over");
    assert_eq!(watcher.post_all(), [""; 0], "nor read again and again");
    assert!(watcher.engine.checkpoint_lag(watcher.now) >= DELAY, "which shows");
    watcher.engine.on_checkpoint_removed(&NodeHash::of("a"), watcher.now);
    watcher.wait(2 * DELAY);
    let save = Upkeep::Save { live: node("a u3 10 x=2"), over: None };
    assert_eq!(watcher.engine.take_upkeep(watcher.now), Some(save), "until it is gone");
}
