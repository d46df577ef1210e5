//! The crate `fit` beside a real kube-scheduler: random clusters, one pending pod at a time. Where the
//! scheduler puts a pod, it must fit; where the scheduler finds no place, there must be none.
//!
//! `WINDLASS_FIT_SEED` plays one world again; `WINDLASS_FIT_WORLDS` says how many there are.

mod generate;
mod model;
mod stage;

use std::env;

use anyhow::{Context, Result, bail, ensure};
use chance::Chance;
use e2e::assets::Asset;
use e2e::report::say;
use e2e::scene::{bound, suite};
use e2e::store::Lane;

use generate::World;
use model::Model;
use stage::{Decision, Stage};

/// Worlds, by default and at length.
const WORLDS: (usize, usize) = (200, 5_000);

/// Pods that look for a place in each.
const PENDING_PODS: usize = 8;

/// Likewise with our own store behind the API server: the scheduler is the same, so few suffice to see
/// that what it is told is too.
const WORLDS_ON_WINDLASS: (usize, usize) = (20, 200);

/// Beside the store of the lane.
const PEERS: [Asset; 3] = [Asset::KubeApiserver, Asset::Kubectl, Asset::KubeScheduler];

/// What became of the pods of some worlds.
#[derive(Debug, Default)]
struct Tally {
    placed: usize,
    unplaced: usize,
}

#[test]
fn the_scheduler_agrees() {
    agrees("the_scheduler_agrees", Lane::Etcd, WORLDS);
}

#[test]
fn the_scheduler_agrees_on_windlass() {
    agrees("the_scheduler_agrees_on_windlass", Lane::Windlass, WORLDS_ON_WINDLASS);
}

fn agrees(name: &'static str, lane: Lane, worlds: (usize, usize)) {
    let needs = [&[lane.asset()], &PEERS[..]].concat();
    suite(name, &needs, async |scene| {
        let mut stage = Stage::set(scene, lane).await?;
        let mut tally = Tally::default();
        for seed in seeds(worlds)? {
            let outcome = play(&mut stage, seed, &mut tally).await;
            outcome
                .with_context(|| format!("world {seed}; again with WINDLASS_FIT_SEED={seed}"))?;
        }
        say(&format!("{name}: {tally:?}"));
        Ok(())
    });
}

/// The judge proves itself: both kinds of disagreement are found.
#[test]
fn a_disagreement_is_found() {
    let fitting = ["a".to_owned(), "b".to_owned()];
    assert!(judge(&Decision::Placed("a".to_owned()), &fitting).is_ok());
    assert!(judge(&Decision::Placed("c".to_owned()), &fitting).is_err());
    assert!(judge(&Decision::Unschedulable(String::new()), &fitting).is_err());
    assert!(judge(&Decision::Unschedulable(String::new()), &[]).is_ok());
}

fn seeds((few, many): (usize, usize)) -> Result<std::ops::RangeInclusive<u64>> {
    if let Some(seed) = number("WINDLASS_FIT_SEED")? {
        return Ok(seed..=seed);
    }
    let worlds = number("WINDLASS_FIT_WORLDS")?;
    Ok(1..=worlds.unwrap_or(bound(few, many) as u64))
}

fn number(variable: &str) -> Result<Option<u64>> {
    let parse = |text: String| text.parse().with_context(|| format!("{variable} is no number"));
    env::var(variable).ok().map(parse).transpose()
}

async fn play(stage: &mut Stage, seed: u64, tally: &mut Tally) -> Result<()> {
    let mut chance = Chance::new(seed);
    let world = World::draw(seed, &mut chance);
    let mut model = Model::new(&stage.fixtures);
    stage.build(&world, &mut model).await?;
    for number in 0..PENDING_PODS {
        let pod = stage.create(&world.pending_pod(&mut chance, number)).await?;
        let fitting = model.fitting(&pod)?;
        let decision = stage.decide(&pod).await?;
        if let Err(error) = judge(&decision, &fitting) {
            bail!(
                "{error:#}\npod: {}\n{}",
                serde_json::to_string(&pod.spec)?,
                model.explain(&pod)?
            );
        }
        match decision {
            Decision::Placed(node) => {
                tally.placed += 1;
                model.place(&pod, &node)?;
            }
            Decision::Unschedulable(_) => {
                tally.unplaced += 1;
                stage.delete(&pod).await?;
            }
        }
    }
    stage.clear().await
}

fn judge(decision: &Decision, fitting: &[String]) -> Result<()> {
    match decision {
        Decision::Placed(node) => {
            ensure!(fitting.contains(node), "the scheduler chose {node}, we allow {fitting:?}");
        }
        Decision::Unschedulable(words) => {
            ensure!(fitting.is_empty(), "we allow {fitting:?}, the scheduler says: {words}");
        }
    }
    Ok(())
}
