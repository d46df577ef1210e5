//! What may happen to stores and nodes while clients go on: what was acknowledged stays, watches miss
//! and repeat nothing, and all answers fit one order.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::check::history::{Interval, Operation};
use e2e::check::watch::Subscription;
use e2e::check::{ledger, linear, watch};
use e2e::ignite::Ignite;
use e2e::load::{self, MixedOptions, Shared, WatcherOptions};
use e2e::report::say;
use e2e::scene::{bound, is_full};
use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::stage::{Case, Kind, Stage};
use crate::together::{REPLICAS, Together, with};

/// How long a round of load may take: every commit is one of the grid's, and a node that died or stands
/// still is given up only after a while.
const ROUND_WAIT: Duration = Duration::from_secs(180);
/// Answers before, during and after a fault; how many is drawn, so that faults fall anywhere.
const ANSWERS: std::ops::Range<usize> = 40..120;
const WRITERS: usize = 6;
const MIXED_CLIENTS: usize = 6;
/// How often all faults happen, by default and at length.
const ROUNDS: (usize, usize) = (1, 5);

/// What happens to a store or a node.
#[derive(Clone, Copy, Debug)]
enum Fault {
    KillWriter,
    /// It stands still until another writes, and wakes.
    PauseWriter,
    KillFollower,
    /// It stands still for a while, and wakes.
    PauseFollower,
    /// While it is down, a store is started.
    KillNode(usize),
    /// It stands still for a while, and wakes.
    PauseNode(usize),
}

/// What happens to stores, which any grid has.
const OF_STORES: &[Fault] =
    &[Fault::KillWriter, Fault::PauseWriter, Fault::KillFollower, Fault::PauseFollower];
/// What a grid of three nodes survives. A node takes its time to come back, so the others die only
/// when there is time.
const OF_NODES: &[Fault] = &[Fault::PauseNode(0), Fault::KillNode(1)];
const OF_NODES_FULL: &[Fault] = &[
    Fault::PauseNode(0),
    Fault::KillNode(0),
    Fault::PauseNode(1),
    Fault::KillNode(1),
    Fault::PauseNode(2),
    Fault::KillNode(2),
];

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("single::faults::keep_what_they_acknowledged", Kind::Single, kept).at_length(),
        Case::new("single::faults::are_linearizable", Kind::Single, linearizable),
        Case::new("three::faults::are_linearizable", Kind::Three, linearizable).at_length(),
        Case::new("three::faults::keep_what_they_acknowledged", Kind::Three, kept).at_length(),
        Case::new("three::faults::everything_at_once", Kind::Three, everything_at_once).at_length(),
    ]
}

// === impl Together ===

impl Together {
    async fn suffer(&mut self, ignite: &mut Ignite, shared: &Shared) -> Result<Vec<Fault>> {
        let of_nodes: &[Fault] = match (ignite.addresses().len(), is_full()) {
            (1, _) => &[],
            (_, false) => OF_NODES,
            (_, true) => OF_NODES_FULL,
        };
        let round = [OF_STORES, of_nodes].concat();
        let faults = round.repeat(bound(ROUNDS.0, ROUNDS.1));
        for fault in &faults {
            some_answers(shared).await?;
            say(&format!("{}: {fault:?}", self.scene.name()));
            self.strike(*fault, ignite, shared).await.with_context(|| format!("{fault:?}"))?;
        }
        some_answers(shared).await?;
        Ok(faults)
    }

    async fn strike(&mut self, fault: Fault, ignite: &mut Ignite, shared: &Shared) -> Result<()> {
        match fault {
            Fault::KillWriter => {
                let writer = self.wait_for_writer(None).await?;
                self.stores[writer].kill()?;
                self.wait_for_writer(Some(writer)).await?;
                self.stores[writer].restart().await
            }
            Fault::PauseWriter => {
                let writer = self.wait_for_writer(None).await?;
                self.pause(writer)?;
                let next = self.wait_for_writer(Some(writer)).await?;
                some_answers(shared).await?;
                self.resume(writer)?;
                ensure!(self.wait_for_writer(None).await? == next, "the role moved again");
                Ok(())
            }
            Fault::KillFollower => {
                let follower = (self.wait_for_writer(None).await? + 1) % REPLICAS;
                self.stores[follower].kill()?;
                some_answers(shared).await?;
                self.stores[follower].restart().await
            }
            Fault::PauseFollower => {
                let follower = (self.wait_for_writer(None).await? + 1) % REPLICAS;
                self.pause(follower)?;
                some_answers(shared).await?;
                self.resume(follower)
            }
            Fault::KillNode(node) => {
                let follower = (self.wait_for_writer(None).await? + 1) % REPLICAS;
                ignite.kill(node)?;
                some_answers(shared).await?;
                self.stores[follower].kill()?;
                self.stores[follower].restart().await?;
                ignite.restart(node).await
            }
            Fault::PauseNode(node) => {
                ignite.signal(node, Signal::STOP)?;
                let answered = some_answers(shared).await;
                ignite.signal(node, Signal::CONT)?;
                answered?;
                // A node that the others gave up may not count until it is started again, and the next
                // fault needs it.
                ignite.kill(node)?;
                ignite.restart(node).await
            }
        }
    }
}

async fn some_answers(shared: &Shared) -> Result<()> {
    shared.wait_answers(rand::random_range(ANSWERS), ROUND_WAIT).await
}

fn kept(stage: &mut Stage) -> Result<()> {
    let name = "replicas_keep_what_they_acknowledged";
    with(stage, name, &[Asset::Windlass], async |together, ignite| {
        let shared = Shared::default();
        let mut writers = JoinSet::new();
        for number in 0..WRITERS {
            let client = together.client(number % REPLICAS)?;
            writers.spawn(load::writer(number, client, shared.clone()));
        }
        let mut watchers = JoinSet::new();
        for index in 0..REPLICAS {
            let interval = Interval { start: "w".to_owned(), end: Some("x".to_owned()) };
            let options =
                WatcherOptions { interval, wants_previous: index == 0, wants_fragments: false };
            watchers.spawn(load::watcher(together.client(index)?, options, shared.clone()));
        }
        let faults = together.suffer(ignite, &shared).await?;
        shared.end();
        let mut writes = Vec::new();
        while let Some(ended) = writers.join_next().await {
            writes.extend(ended.context("a writer panicked")??);
        }
        let mut subscriptions: Vec<Subscription> = Vec::new();
        while let Some(ended) = watchers.join_next().await {
            subscriptions.push(ended.context("a watcher panicked")??);
        }
        let truth = load::read_truth(&together.client(0)?).await?;
        let tally = ledger::check(&truth, &writes)?;
        for subscription in &subscriptions {
            watch::check(&truth, subscription)?;
        }
        say(&format!("{name}: {} faults, {tally:?}", faults.len()));
        Ok(())
    })
}

fn linearizable(stage: &mut Stage) -> Result<()> {
    let name = "replicas_are_linearizable";
    with(stage, name, &[Asset::Windlass], async |together, ignite| {
        let shared = Shared::default();
        let seed = rand::random();
        say(&format!("{name}: clients are seeded with {seed}"));
        let mut clients = JoinSet::new();
        for number in 0..MIXED_CLIENTS {
            let client = together.client(number % REPLICAS)?;
            clients.spawn(load::mixed(MixedOptions { number, seed }, client, shared.clone()));
        }
        let faults = together.suffer(ignite, &shared).await?;
        shared.end();
        let mut history: Vec<Operation> = Vec::new();
        while let Some(ended) = clients.join_next().await {
            history.extend(ended.context("a client panicked")??);
        }
        let truth = load::read_truth(&together.client(0)?).await?;
        linear::check(&history, &truth)?;
        say(&format!("{name}: {} calls in one order, {} faults", history.len(), faults.len()));
        Ok(())
    })
}

/// Every store and every node is killed at once and started again: nothing is missing.
fn everything_at_once(stage: &mut Stage) -> Result<()> {
    let name = "replicas_everything_at_once";
    with(stage, name, &[Asset::Windlass], async |together, ignite| {
        let shared = Shared::default();
        let mut writers = JoinSet::new();
        for number in 0..WRITERS {
            let client = together.client(number % REPLICAS)?;
            writers.spawn(load::writer(number, client, shared.clone()));
        }
        some_answers(&shared).await?;
        for store in &mut together.stores {
            store.kill()?;
        }
        ignite.kill_all()?;
        shared.end();
        let mut writes = Vec::new();
        while let Some(ended) = writers.join_next().await {
            writes.extend(ended.context("a writer panicked")??);
        }
        ignite.restart_all().await?;
        for store in &mut together.stores {
            store.restart().await?;
        }
        together.wait_for_writer(None).await?;
        for index in 0..REPLICAS {
            let truth = load::read_truth(&together.client(index)?).await?;
            let tally = ledger::check(&truth, &writes)?;
            say(&format!("{name}: replica {index}: {tally:?}"));
        }
        Ok(())
    })
}
