//! What the cases share: one cluster per ground, and the sharders that run on it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context, Result, bail, ensure};
use e2e::kube::Ground;
use e2e::replica::Replica;
use e2e::scene::Scene;
use e2e::sharding::arena::SETTLE_WAIT;
use e2e::sharding::{Arena, World};
use e2e::wait::{Level, wait_for};
use futures::future::LocalBoxFuture;
use serde_json::Value;
use tokio::runtime::Runtime;

/// One named test.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) play: Play,
    /// What it needs besides the world, and is not there.
    pub(crate) lacks: fn() -> Option<String>,
}

/// What is played unless everything is asked for with `--full`: one case for each promise, on the store
/// that nobody else tests.
const SHORT: [&str; 12] = [
    "silence_makes_unknown_then_dead_in_time_and_the_dead_come_back",
    "fence_refuses_what_its_rules_refuse_by_the_pod_of_a_token",
    "bad_rings_are_refused_in_words_that_help",
    "nobody_but_the_sharder_labels",
    "who_joins_takes_and_who_leaves_gives_and_nothing_else_moves",
    "a_rolling_restart_with_hold_moves_nothing",
    "an_instance_is_paused_and_wakes_as_a_former_owner",
    "a_watch_hangs_while_renewals_pass",
    "what_an_instance_has_seen_and_keeps_is_taken_after_its_deadline",
    "a_deleted_ring_leaves_no_label_and_no_fence",
    "status_explain_and_simulate_tell_what_is_and_would_be",
    "the_leader_is_killed_in_the_middle_of_a_move",
];
/// Of these, what is played on etcd and on the oldest Kubernetes too: how objects move, who is refused, and
/// who leads.
const SHORT_ELSEWHERE: [&str; 3] = [
    "who_joins_takes_and_who_leaves_gives_and_nothing_else_moves",
    "fence_refuses_what_its_rules_refuse_by_the_pod_of_a_token",
    "the_leader_is_killed_in_the_middle_of_a_move",
];

/// How a case gets on with others.
#[derive(Clone, Copy)]
pub(crate) enum Play {
    /// Its rings and processes are its own: others may be played at the same time.
    Beside(for<'s> fn(&'s Stage) -> LocalBoxFuture<'s, Result<()>>),
    /// It disturbs what all share, or is held to times that a busy machine would not keep.
    Alone(for<'s> fn(&'s mut Stage) -> LocalBoxFuture<'s, Result<()>>),
}

/// Lists functions as cases under their own names.
macro_rules! cases {
    (
        beside: [$($beside:ident),* $(,)?],
        alone: [$($alone:ident),* $(,)?]
        $(, with_python: [$($python:ident),* $(,)?])? $(,)?
    ) => {
        pub(crate) fn cases() -> Vec<$crate::stage::Case> {
            vec![
                $($crate::stage::Case {
                    name: stringify!($beside),
                    play: $crate::stage::Play::Beside(|stage| Box::pin($beside(stage))),
                    lacks: || None,
                },)*
                $($crate::stage::Case {
                    name: stringify!($alone),
                    play: $crate::stage::Play::Alone(|stage| Box::pin($alone(stage))),
                    lacks: || None,
                },)*
                $($($crate::stage::Case {
                    name: stringify!($python),
                    play: $crate::stage::Play::Beside(|stage| Box::pin($python(stage))),
                    lacks: e2e::sharding::lack_of_python,
                },)*)?
            ]
        }
    };
}
pub(crate) use cases;

/// The stage on the ground that is being played, if any.
pub(crate) struct Theatre {
    runtime: Runtime,
    stage: RwLock<Option<Stage>>,
}

/// A cluster, and the sharders that run on it: one between cases. The first that was started leads,
/// until somebody ends it.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) sharders: Vec<Replica>,
    ground: Ground,
    /// A case has failed here, so that anything may be left.
    is_spoilt: AtomicBool,
}

// === impl Case ===

impl Case {
    /// Whether it is left out unless everything is asked for.
    pub(crate) fn is_long(&self, ground: Ground) -> bool {
        let short = if ground == Ground::WINDLASS { &SHORT[..] } else { &SHORT_ELSEWHERE };
        !short.contains(&self.name)
    }
}

/// A name that no case has would be left out, and nobody would notice.
pub(crate) fn check_short(cases: &[Case]) {
    for name in SHORT.iter().chain(&SHORT_ELSEWHERE) {
        assert!(cases.iter().any(|case| case.name == *name), "there is no case {name}");
    }
}

// === impl Theatre ===

impl Theatre {
    pub(crate) fn new(runtime: Runtime) -> Self {
        Self { stage: RwLock::new(None), runtime }
    }

    /// Plays a case; `Some` says why it could not be played. After a failure the next case gets a
    /// new cluster.
    pub(crate) fn play(&self, ground: Ground, case: Case) -> Result<Option<String>> {
        if let Some(reason) = (case.lacks)() {
            ensure!(std::env::var_os("CI").is_none(), "{}: {reason}", case.name);
            return Ok(Some(reason));
        }
        loop {
            match case.play {
                Play::Alone(_) => {
                    let mut stage = self.stage.write().unwrap_or_else(PoisonError::into_inner);
                    if let Some(reason) = self.prepare(&mut stage, ground)? {
                        return Ok(Some(reason));
                    }
                    let stage = stage.as_mut().context("it was prepared")?;
                    return self.runtime.block_on(stage.perform(case)).map(|()| None);
                }
                Play::Beside(play) => {
                    let shared = self.stage.read().unwrap_or_else(PoisonError::into_inner);
                    if let Some(stage) = shared.as_ref().filter(|stage| stage.is_good(ground)) {
                        return self.runtime.block_on(stage.attend(play)).map(|()| None);
                    }
                    drop(shared);
                    let mut stage = self.stage.write().unwrap_or_else(PoisonError::into_inner);
                    if let Some(reason) = self.prepare(&mut stage, ground)? {
                        return Ok(Some(reason));
                    }
                }
            }
        }
    }

    /// Sees to it that there is a good stage on the ground; `Some` says why there is none.
    fn prepare(&self, stage: &mut Option<Stage>, ground: Ground) -> Result<Option<String>> {
        if stage.as_ref().is_some_and(|stage| stage.is_good(ground)) {
            return Ok(None);
        }
        // Two API servers at once would be slow on a small machine.
        drop(stage.take());
        match Scene::open("sharding", &World::needs(ground))? {
            Ok(scene) => {
                *stage = Some(self.runtime.block_on(Stage::set(Arc::new(scene), ground))?);
                Ok(None)
            }
            Err(reason) => Ok(Some(reason)),
        }
    }
}

// === impl Stage ===

impl Stage {
    async fn set(scene: Arc<Scene>, ground: Ground) -> Result<Self> {
        let world = World::start(scene, ground).await?;
        let is_spoilt = AtomicBool::new(false);
        let mut stage = Self { world, sharders: Vec::new(), ground, is_spoilt };
        stage.run(1).await?;
        Ok(stage)
    }

    fn is_good(&self, ground: Ground) -> bool {
        self.ground == ground && !self.is_spoilt.load(Ordering::Relaxed)
    }

    async fn perform(&mut self, case: Case) -> Result<()> {
        let Play::Alone(play) = case.play else { bail!("{} is not to be alone", case.name) };
        let outcome = match play(self).await {
            Ok(()) => self.tidy().await,
            failed => failed,
        };
        self.note(outcome)
    }

    /// As the next case expects it.
    async fn tidy(&mut self) -> Result<()> {
        self.sharders.iter_mut().try_for_each(Replica::ensure_alive)?;
        self.run(1).await
    }

    async fn attend(
        &self,
        play: for<'s> fn(&'s Self) -> LocalBoxFuture<'s, Result<()>>,
    ) -> Result<()> {
        let outcome = match play(self).await {
            Ok(()) => self.sharders[0].readiness().await.map(drop),
            failed => failed,
        };
        self.note(outcome)
    }

    fn note(&self, outcome: Result<()>) -> Result<()> {
        if outcome.is_err() {
            self.is_spoilt.store(true, Ordering::Relaxed);
            self.world.scene.on_failure();
        }
        outcome
    }

    /// Starts or stops sharders until this many run.
    pub(crate) async fn run(&mut self, count: usize) -> Result<()> {
        while self.sharders.len() > count {
            self.sharders.pop().context("more run than wanted")?.stop().await?;
        }
        while self.sharders.len() < count {
            self.sharders.push(self.world.sharder().await?);
        }
        Ok(())
    }

    /// Waits until an Event about something of one of these names says something with these words.
    pub(crate) async fn wait_event(&self, names: &[&str], words: &str) -> Result<()> {
        let kubectl = self.world.server.kubectl();
        wait_for(&format!("an Event with `{words}`"), SETTLE_WAIT, async || {
            let events = kubectl.json(&["get", "events.events.k8s.io", "--all-namespaces"]).await?;
            let items = events["items"].as_array().cloned().unwrap_or_default();
            let is_about =
                |event: &&Value| names.iter().any(|name| event["regarding"]["name"] == *name);
            let about = items.iter().filter(is_about);
            let notes: Vec<&str> = about.filter_map(|event| event["note"].as_str()).collect();
            Ok(if notes.iter().any(|note| note.contains(words)) {
                Level::Reached(())
            } else {
                Level::Below(format!("{notes:?}"))
            })
        })
        .await
    }

    /// A ring of its own for the case.
    pub(crate) async fn arena(&self, name: &str, changes: &Value) -> Result<Arena> {
        Arena::open(&self.world, name, changes).await
    }
}
