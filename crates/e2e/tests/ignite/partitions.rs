//! Networks that fail: between nodes, between stores and nodes, for a while or in the middle of a commit.
//! What was acknowledged stays, watches miss and repeat nothing, and all answers fit one order.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::assets::Asset;
use e2e::check::history::{Interval, Operation};
use e2e::check::watch::Subscription;
use e2e::check::{linear, watch};
use e2e::ignite::Ignite;
use e2e::load::{self, MixedOptions, Shared, WatcherOptions};
use e2e::report::say;
use e2e::scene::{bound, is_full};
use e2e::tasks::link::Link;
use rustix::process::Signal;
use tokio::task::JoinSet;

use crate::cuts::after;
use crate::stage::{Case, Kind, Stage};
use crate::together::{REPLICAS, Together, with_ways};

/// How long a round of load may take, with a change of the writer and of the primary in it.
const ROUND_WAIT: Duration = Duration::from_secs(180);
/// Answers before, during and after a trouble; how many is drawn, so that troubles fall anywhere.
const ANSWERS: std::ops::Range<usize> = 30..80;
const CLIENTS: usize = 6;
/// Each way, for every piece: a quorum is asked twice in a commit.
const SLOW: Duration = Duration::from_millis(40);
/// A node that stands still for most of the time.
const STUTTERS: u32 = 20;
const STILL: Duration = Duration::from_millis(150);
const AWAKE: Duration = Duration::from_millis(50);
/// Cuts of a writer's connections, one after the other, by default and at length.
const CUTS: (usize, usize) = (10, 100);
/// A commit takes some ten milliseconds, so cuts fall before it, into it and behind it.
const CUT_WITHIN_MS: std::ops::Range<u64> = 0..120;
/// How long requests arrive whose answers do not.
const DEAF: Duration = Duration::from_millis(30);

/// What happens to the network or to a node.
#[derive(Clone, Copy, Debug)]
enum Trouble {
    /// A node that no other node hears, and stores do.
    NodeAlone(usize),
    /// A node that nobody hears.
    NodeGone(usize),
    /// A node whose every word takes its time.
    NodeSlow(usize),
    /// A node that stands still most of the time, and never for long.
    NodeStutters(usize),
    /// The writer reaches no node, and finds out when another one writes.
    WriterAlone,
    /// What the writer asks arrives, and what it is answered does not.
    WriterDeaf,
    FollowerAlone,
    /// Connections of the writer end, again and again, some after answers were held back.
    WriterCut,
    /// Nothing more passes on the writer's connections, which nobody is told.
    WriterHangs,
}

/// Of stores, on any grid.
const OF_STORES: &[Trouble] = &[
    Trouble::WriterCut,
    Trouble::WriterAlone,
    Trouble::WriterDeaf,
    Trouble::FollowerAlone,
    Trouble::WriterHangs,
];
/// A node that was alone for long does not come back by itself, so that it is started anew, which
/// takes time.
const OF_NODES: &[Trouble] =
    &[Trouble::NodeSlow(0), Trouble::NodeAlone(1), Trouble::NodeStutters(2)];
const OF_NODES_FULL: &[Trouble] = &[
    Trouble::NodeSlow(0),
    Trouble::NodeAlone(0),
    Trouble::NodeGone(1),
    Trouble::NodeStutters(1),
    Trouble::NodeAlone(2),
    Trouble::NodeSlow(2),
    Trouble::NodeGone(0),
];

pub(crate) fn cases() -> Vec<Case> {
    let name = "partitions::of_stores";
    vec![
        Case::new(&format!("single::{name}"), Kind::Single, of_stores),
        Case::new(&format!("apart::{name}"), Kind::Apart, of_stores).at_length(),
        Case::new("apart::partitions::of_nodes", Kind::Apart, of_nodes),
    ]
}

fn of_stores(stage: &mut Stage) -> Result<()> {
    troubled(stage, "partitions_of_stores", OF_STORES)
}

fn of_nodes(stage: &mut Stage) -> Result<()> {
    let troubles = if is_full() { OF_NODES_FULL } else { OF_NODES };
    troubled(stage, "partitions_of_nodes", troubles)
}

/// Clients of all kinds go on while all of this happens, and what they saw is judged.
fn troubled(stage: &mut Stage, name: &'static str, troubles: &[Trouble]) -> Result<()> {
    let targets = stage.ignite.targets();
    with_ways(stage, name, &[Asset::Windlass], targets, async |together, ignite| {
        let shared = Shared::default();
        let load = Load::start(together, &shared)?;
        for trouble in troubles {
            some_answers(&shared).await?;
            say(&format!("{name}: {trouble:?}"));
            let stirred = together.stir(*trouble, ignite, &shared).await;
            stirred.with_context(|| format!("{trouble:?}"))?;
        }
        some_answers(&shared).await?;
        shared.end();
        load.judge(together).await
    })
}

async fn some_answers(shared: &Shared) -> Result<()> {
    shared.wait_answers(rand::random_range(ANSWERS), ROUND_WAIT).await
}

// === impl Together ===

impl Together {
    async fn stir(&mut self, trouble: Trouble, ignite: &mut Ignite, shared: &Shared) -> Result<()> {
        match trouble {
            Trouble::NodeAlone(node) => {
                ignite.links_of(node).for_each(Link::cut);
                let answered = some_answers(shared).await;
                ignite.links_of(node).for_each(Link::heal);
                answered?;
                self.renew(node, ignite).await
            }
            Trouble::NodeGone(node) => {
                let ways = || self.ways.iter().map(|of_store| &of_store[node]);
                ignite.links_of(node).chain(ways()).for_each(Link::cut);
                let answered = some_answers(shared).await;
                ignite.links_of(node).chain(ways()).for_each(Link::heal);
                answered?;
                self.renew(node, ignite).await
            }
            Trouble::NodeSlow(node) => {
                let ways = || self.ways.iter().map(|of_store| &of_store[node]);
                ignite.links_of(node).chain(ways()).for_each(|link| link.slow(SLOW));
                let answered = some_answers(shared).await;
                ignite.links_of(node).chain(ways()).for_each(Link::heal);
                answered
            }
            Trouble::NodeStutters(node) => {
                for _ in 0..STUTTERS {
                    ignite.signal(node, Signal::STOP)?;
                    after(STILL).await?;
                    ignite.signal(node, Signal::CONT)?;
                    after(AWAKE).await?;
                }
                some_answers(shared).await
            }
            Trouble::WriterAlone => self.depose(Link::cut, shared).await,
            Trouble::WriterDeaf => self.depose(Link::cut_back, shared).await,
            Trouble::FollowerAlone => {
                let follower = (self.wait_for_writer(None).await? + 1) % REPLICAS;
                self.ways[follower].iter().for_each(Link::cut);
                let answered = some_answers(shared).await;
                self.ways[follower].iter().for_each(Link::heal);
                answered
            }
            Trouble::WriterCut => {
                for _ in 0..bound(CUTS.0, CUTS.1) {
                    let writer = self.wait_for_writer(None).await?;
                    after(Duration::from_millis(rand::random_range(CUT_WITHIN_MS))).await?;
                    if rand::random() {
                        self.ways[writer].iter().for_each(Link::cut_back);
                        after(DEAF).await?;
                    }
                    self.ways[writer].iter().for_each(Link::break_connections);
                    self.ways[writer].iter().for_each(Link::heal);
                }
                some_answers(shared).await
            }
            Trouble::WriterHangs => {
                let writer = self.wait_for_writer(None).await?;
                self.ways[writer].iter().for_each(Link::hang_connections);
                some_answers(shared).await
            }
        }
    }

    /// Spoils the writer's ways until another one writes, and some time longer.
    async fn depose(&mut self, spoil: fn(&Link), shared: &Shared) -> Result<()> {
        let writer = self.wait_for_writer(None).await?;
        self.ways[writer].iter().for_each(spoil);
        let deposed = self.wait_for_writer(Some(writer)).await;
        let answered = some_answers(shared).await;
        self.ways[writer].iter().for_each(Link::heal);
        deposed?;
        answered?;
        self.wait_for_writer(None).await.map(drop)
    }

    /// Starts a node anew that the others gave up: it does not count before.
    async fn renew(&self, node: usize, ignite: &mut Ignite) -> Result<()> {
        ignite.kill(node)?;
        ignite.restart(node).await
    }
}

/// Clients that read, write and swap through all stores, and watches of what they change.
struct Load {
    clients: JoinSet<Result<Vec<Operation>>>,
    watchers: JoinSet<Result<Subscription>>,
}

// === impl Load ===

impl Load {
    fn start(together: &Together, shared: &Shared) -> Result<Self> {
        let seed = rand::random();
        say(&format!("{}: clients are seeded with {seed}", together.scene.name()));
        let (mut clients, mut watchers) = (JoinSet::new(), JoinSet::new());
        for number in 0..CLIENTS {
            let client = together.client(number % REPLICAS)?;
            clients.spawn(load::mixed(MixedOptions { number, seed }, client, shared.clone()));
        }
        for index in 0..REPLICAS {
            let interval = Interval { start: "a".to_owned(), end: Some("z".to_owned()) };
            let options =
                WatcherOptions { interval, wants_previous: index == 0, wants_fragments: false };
            watchers.spawn(load::watcher(together.client(index)?, options, shared.clone()));
        }
        Ok(Self { clients, watchers })
    }

    /// Waits for all to end, and judges.
    async fn judge(mut self, together: &Together) -> Result<()> {
        let mut history = Vec::new();
        while let Some(ended) = self.clients.join_next().await {
            history.extend(ended.context("a client panicked")??);
        }
        let mut subscriptions = Vec::new();
        while let Some(ended) = self.watchers.join_next().await {
            subscriptions.push(ended.context("a watcher panicked")??);
        }
        let truth = load::read_truth(&together.client(0)?).await?;
        linear::check(&history, &truth)?;
        for subscription in &subscriptions {
            watch::check(&truth, subscription)?;
        }
        say(&format!("{}: {} calls in one order", together.scene.name(), history.len()));
        Ok(())
    }
}
