//! kill -9, again and again, under load: what was acknowledged stays, revisions are dense, watches
//! resume without a gap, and all answers fit one order.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::check::history::{Interval, Operation};
use e2e::check::watch::Subscription;
use e2e::check::{ledger, linear, watch};
use e2e::load::{self, MixedOptions, Shared, WatcherOptions};
use e2e::report::say;
use e2e::scene::{Scene, bound, suite};
use e2e::store::{Lane, Store, StoreOptions};

use tokio::task::JoinSet;

/// Clients that write at once.
const WRITERS: usize = 16;

/// Kills per run, by default and at length.
const ROUNDS: (usize, usize) = (6, 50);

/// Answers between one kill and the next; the exact number is drawn, so that kills fall anywhere.
const ANSWERS_PER_ROUND: std::ops::Range<usize> = 100..600;

/// Clients whose calls are checked for one order, and how often their store is killed.
const MIXED_CLIENTS: usize = 6;
const MIXED_ROUNDS: (usize, usize) = (4, 20);
const MIXED_ANSWERS_PER_ROUND: std::ops::Range<usize> = 100..300;

/// How long a round may take on a slow disk.
const ROUND_WAIT: Duration = Duration::from_secs(120);

#[test]
fn etcd_keeps_what_it_acknowledged() {
    suite("etcd_keeps_what_it_acknowledged", &[Lane::Etcd.asset()], async |scene| {
        check_kept(scene, Lane::Etcd).await
    });
}

#[test]
fn windlass_keeps_what_it_acknowledged() {
    suite("windlass_keeps_what_it_acknowledged", &[Lane::Windlass.asset()], async |scene| {
        check_kept(scene, Lane::Windlass).await
    });
}

#[test]
fn etcd_is_linearizable() {
    suite("etcd_is_linearizable", &[Lane::Etcd.asset()], async |scene| {
        check_linear(scene, Lane::Etcd).await
    });
}

#[test]
fn windlass_is_linearizable() {
    suite("windlass_is_linearizable", &[Lane::Windlass.asset()], async |scene| {
        check_linear(scene, Lane::Windlass).await
    });
}

async fn check_kept(scene: &Scene, lane: Lane) -> Result<()> {
    let mut store = Store::start(scene, &StoreOptions::new(lane, "store")).await?;
    let shared = Shared::default();
    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        writers.spawn(load::writer(number, store.client()?, shared.clone()));
    }
    let mut watchers = start_watchers(&store, &shared)?;
    let rounds = bound(ROUNDS.0, ROUNDS.1);
    kill_repeatedly(&mut store, &shared, rounds, ANSWERS_PER_ROUND).await?;
    shared.end();
    let mut writes = Vec::new();
    while let Some(ended) = writers.join_next().await {
        writes.extend(ended.context("a writer panicked")??);
    }
    let mut subscriptions: Vec<Subscription> = Vec::new();
    while let Some(ended) = watchers.join_next().await {
        subscriptions.push(ended.context("a watcher panicked")??);
    }
    let truth = load::read_truth(&store.client()?).await?;
    let tally = ledger::check(&truth, &writes)?;
    for subscription in &subscriptions {
        watch::check(&truth, subscription)?;
    }
    let heard: usize = subscriptions.iter().map(|each| each.deliveries.len()).sum();
    say(&format!("{}: {rounds} kills, {tally:?}, {heard} watch answers", scene.name()));
    Ok(())
}

fn start_watchers(store: &Store, shared: &Shared) -> Result<JoinSet<Result<Subscription>>> {
    let interval =
        |start: &str, end: &str| Interval { start: start.to_owned(), end: Some(end.to_owned()) };
    let all = [
        WatcherOptions {
            interval: interval("w", "x"),
            wants_previous: true,
            wants_fragments: false,
        },
        WatcherOptions {
            interval: interval("w", "x"),
            wants_previous: false,
            wants_fragments: true,
        },
        WatcherOptions {
            interval: interval("w03", "w05"),
            wants_previous: true,
            wants_fragments: false,
        },
        // Nothing ever happens here: only progress is heard.
        WatcherOptions {
            interval: interval("y", "z"),
            wants_previous: false,
            wants_fragments: false,
        },
    ];
    let mut watchers = JoinSet::new();
    for options in all {
        watchers.spawn(load::watcher(store.client()?, options, shared.clone()));
    }
    Ok(watchers)
}

/// Kills the store whenever another random number of calls was answered.
async fn kill_repeatedly(
    store: &mut Store,
    shared: &Shared,
    rounds: usize,
    answers: std::ops::Range<usize>,
) -> Result<()> {
    for _ in 0..rounds {
        shared.wait_answers(rand::random_range(answers.clone()), ROUND_WAIT).await?;
        store.kill()?;
        store.restart().await?;
    }
    Ok(())
}

async fn check_linear(scene: &Scene, lane: Lane) -> Result<()> {
    let mut store = Store::start(scene, &StoreOptions::new(lane, "store")).await?;
    let shared = Shared::default();
    let seed = rand::random();
    say(&format!("{}: clients are seeded with {seed}", scene.name()));
    let mut clients = JoinSet::new();
    for number in 0..MIXED_CLIENTS {
        let options = MixedOptions { number, seed };
        clients.spawn(load::mixed(options, store.client()?, shared.clone()));
    }
    let rounds = bound(MIXED_ROUNDS.0, MIXED_ROUNDS.1);
    kill_repeatedly(&mut store, &shared, rounds, MIXED_ANSWERS_PER_ROUND).await?;
    shared.end();
    let mut history: Vec<Operation> = Vec::new();
    while let Some(ended) = clients.join_next().await {
        history.extend(ended.context("a client panicked")??);
    }
    let unknown = history.iter().filter(|each| each.outcome.response().is_none()).count();
    let truth = load::read_truth(&store.client()?).await?;
    linear::check(&history, &truth)?;
    let calls = history.len();
    say(&format!("{}: {calls} calls, {unknown} without answer, in one order", scene.name()));
    Ok(())
}
