use super::*;
use crate::core::watch::notation::{node, rv, saved, uid};

fn start() -> Instant {
    tokio::time::Instant::now().into_std()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn empty() -> Checkpoints {
    Checkpoints::new(Duration::from_secs(5))
}

/// The plan for node `a` at `live` with this checkpoint, where the end of `gone` was told.
fn plan(checkpoint: &str, gone: &str, live: &str) -> Plan {
    let mut checkpoints = empty();
    checkpoints.on_seen(saved(checkpoint));
    let mut index = Index::default();
    index.on_recovered(uid(gone));
    checkpoints.plan(&node(live), &index)
}

#[test]
fn a_checkpoint_is_due_five_seconds_after_the_first_unsaved_change() {
    let (now, a) = (start(), NodeHash::of("a"));
    for (rank, due_ms) in [(Rank::FIRST, 5_000), (Rank::THIRD, 7_000)] {
        let mut checkpoints = empty();
        checkpoints.on_changed(&a, rank, now);
        checkpoints.on_changed(&a, rank, now + ms(3_000));
        assert_eq!(checkpoints.take_due(now + ms(due_ms - 1)), None);
        assert_eq!(checkpoints.take_due(now + ms(due_ms)), Some(a.clone()));
        assert_eq!(checkpoints.take_due(now + ms(60_000)), None, "it is being written");
    }
}

#[test]
fn the_lag_counts_until_the_labels_are_saved() {
    let (now, a) = (start(), NodeHash::of("a"));
    let mut checkpoints = empty();
    assert_eq!(checkpoints.lag(now), Duration::ZERO);
    checkpoints.on_changed(&a, Rank::FIRST, now);
    checkpoints.on_changed(&NodeHash::of("b"), Rank::FIRST, now + ms(1_000));
    assert_eq!(checkpoints.take_due(now + ms(5_000)), Some(a.clone()));
    assert_eq!(checkpoints.lag(now + ms(6_000)), ms(6_000));
    checkpoints.on_postponed(&a, now + ms(6_000));
    assert_eq!(checkpoints.take_due(now + ms(7_999)), Some(NodeHash::of("b")));
    assert_eq!(checkpoints.take_due(now + ms(7_999)), None);
    assert_eq!(checkpoints.take_due(now + ms(8_000)), Some(a.clone()));
    checkpoints.on_settled(&a);
    assert_eq!(checkpoints.lag(now + ms(9_000)), ms(8_000));
}

#[test]
fn labels_that_are_there_are_not_written_again() {
    assert_eq!(empty().plan(&node("a u1 5 x=1"), &Index::default()), Plan::Create);
    assert_eq!(plan("a u1 5 x=1", "", "a u1 9 x=1"), Plan::Nothing);
    let before = "a u1 5 x=1";
    assert_eq!(plan(before, "", "a u1 9 x=2"), Plan::Replace(saved(before)));
    assert_eq!(plan(before, "", "a u1 9 x=1 m=4"), Plan::Replace(saved(before)));
}

#[test]
fn whoever_is_ahead_is_not_undone() {
    assert_eq!(plan("a u1 9 x=2", "", "a u1 5 x=1"), Plan::Nothing);
    assert_eq!(plan("a u2 9 x=2", "", "a u1 5 x=1"), Plan::Nothing);
}

#[test]
fn the_last_word_of_an_incarnation_is_only_written_over_once_it_was_told() {
    let before = "a u1 5 x=1";
    assert_eq!(plan(before, "", "a u2 9 x=1"), Plan::Recover(saved(before)));
    assert_eq!(plan(before, "u1", "a u2 9 x=1"), Plan::Replace(saved(before)));
}

#[test]
fn a_checkpoint_of_a_history_that_is_no_more_is_not_ahead() {
    let (a, index) = (node("a u1 5 x=1"), Index::default());
    let mut checkpoints = empty();
    checkpoints.on_seen(saved("a u1 900 x=2"));
    checkpoints.on_seen(saved("b u2 4 x=2"));
    checkpoints.on_went_back(&rv("50"));
    assert_eq!(checkpoints.plan(&a, &index), Plan::Replace(saved("a u1 900 x=2")));
    checkpoints.on_seen(saved("a u1 60 x=3"));
    assert_eq!(checkpoints.plan(&a, &index), Plan::Nothing);
}

#[test]
fn a_list_of_checkpoints_replaces_what_was_known() {
    let mut checkpoints = empty();
    checkpoints.on_seen(saved("a u1 5"));
    checkpoints.on_listed(vec![saved("b u2 6"), saved("c u3 7")]);
    checkpoints.on_removed(&NodeHash::of("c"));
    let all: Vec<_> = checkpoints.saved().map(|(_, saved)| saved.meta.node.as_str()).collect();
    assert_eq!(all, ["b"]);
}

#[test]
fn the_size_is_that_of_what_the_server_has() {
    let mut checkpoints = empty();
    let [a, b] = ["a u1 5 x=1", "b u2 6"].map(saved);
    checkpoints.on_listed(vec![a.clone(), b.clone()]);
    assert_eq!(checkpoints.bytes(), a.bytes + b.bytes);
    checkpoints.on_removed(&a.node_hash());
    assert_eq!(checkpoints.bytes(), b.bytes);
}
