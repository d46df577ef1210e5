//! The same requests to two stores: first etcd against itself, which proves the driver, then
//! etcd 3.6, then windlass with either.

use std::env;

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::differential::exceptions::{self, Exception};
use e2e::differential::generate::Profile;
use e2e::differential::{Comparison, compare};
use e2e::report::say;
use e2e::scene::{Scene, bound, suite};
use e2e::store::{Lane, Store, StoreOptions};
use etcd_api::etcdserverpb::PutRequest;

/// Requests per seed: long enough for compactions and collisions, short enough to be replayed.
const STEPS_PER_SEED: usize = 500;

/// Requests per pair of stores and profile, by default and at length.
const STEPS: (usize, usize) = (1500, 50_000);

struct Pair {
    left: Lane,
    right: Lane,
    profile: Profile,
    exceptions: &'static [Exception],
    test: &'static str,
}

/// The driver proves itself: a single key that only one side has must not go unnoticed.
#[test]
fn a_difference_is_found() {
    suite("a_difference_is_found", &[Asset::Etcd], async |scene| {
        let left = Store::start(scene, &options(Lane::Etcd, "left")).await?;
        let right = Store::start(scene, &options(Lane::Etcd, "right")).await?;
        let extra = PutRequest { key: "k/2".into(), value: "extra".into(), ..Default::default() };
        right.client()?.kv().put(extra).await?;
        let comparison = Comparison {
            seed: 1,
            steps: STEPS_PER_SEED,
            profile: Profile::Open,
            exceptions: &[],
            record: scene.path().join("steps.txt"),
            replay: String::new(),
        };
        let outcome = compare(left.client()?, right.client()?, comparison).await;
        let told = format!("{:#}", outcome.err().context("the difference went unnoticed")?);
        ensure!(told.contains("seed 1") && told.contains("right:"), "{told}");
        Ok(())
    });
}

#[test]
fn etcd_agrees_with_itself() {
    let pair = Pair {
        left: Lane::Etcd,
        right: Lane::Etcd,
        profile: Profile::Open,
        exceptions: &[],
        test: "etcd_agrees_with_itself",
    };
    check(pair);
}

#[test]
fn guarded_etcd_agrees_with_itself() {
    let pair = Pair {
        left: Lane::Etcd,
        right: Lane::Etcd,
        profile: Profile::Guarded,
        exceptions: &[],
        test: "guarded_etcd_agrees_with_itself",
    };
    check(pair);
}

#[test]
fn etcd_36_agrees_but_for_what_is_listed() {
    let pair = Pair {
        left: Lane::Etcd,
        right: Lane::Etcd36,
        profile: Profile::Open,
        exceptions: exceptions::ETCD_36,
        test: "etcd_36_agrees_but_for_what_is_listed",
    };
    check(pair);
}

#[test]
fn guarded_etcd_36_agrees_but_for_what_is_listed() {
    let pair = Pair {
        left: Lane::Etcd,
        right: Lane::Etcd36,
        profile: Profile::Guarded,
        exceptions: exceptions::ETCD_36,
        test: "guarded_etcd_36_agrees_but_for_what_is_listed",
    };
    check(pair);
}

#[test]
fn windlass_agrees_with_etcd() {
    let pair = Pair {
        left: Lane::Etcd,
        right: Lane::Windlass,
        profile: Profile::Open,
        exceptions: exceptions::WINDLASS,
        test: "windlass_agrees_with_etcd",
    };
    check(pair);
}

#[test]
fn guarded_windlass_agrees_with_etcd() {
    let pair = Pair {
        left: Lane::Etcd,
        right: Lane::Windlass,
        profile: Profile::Guarded,
        exceptions: exceptions::WINDLASS,
        test: "guarded_windlass_agrees_with_etcd",
    };
    check(pair);
}

#[test]
fn windlass_agrees_with_etcd_36() {
    let pair = Pair {
        left: Lane::Etcd36,
        right: Lane::Windlass,
        profile: Profile::Open,
        exceptions: exceptions::WINDLASS_36,
        test: "windlass_agrees_with_etcd_36",
    };
    check(pair);
}

#[test]
fn guarded_windlass_agrees_with_etcd_36() {
    let pair = Pair {
        left: Lane::Etcd36,
        right: Lane::Windlass,
        profile: Profile::Guarded,
        exceptions: exceptions::WINDLASS_36,
        test: "guarded_windlass_agrees_with_etcd_36",
    };
    check(pair);
}

fn check(pair: Pair) {
    suite(pair.test, &[pair.left.asset(), pair.right.asset()], async |scene| {
        if let Some(seed) = number("WINDLASS_DIFFERENTIAL_SEED")? {
            let steps = number("WINDLASS_DIFFERENTIAL_STEPS")?.unwrap_or(STEPS_PER_SEED as u64);
            return check_seed(scene, &pair, seed, usize::try_from(steps)?).await;
        }
        let seeds = bound(STEPS.0, STEPS.1) / STEPS_PER_SEED;
        for seed in 1..=seeds as u64 {
            check_seed(scene, &pair, seed, STEPS_PER_SEED).await?;
        }
        Ok(())
    });
}

async fn check_seed(scene: &Scene, pair: &Pair, seed: u64, steps: usize) -> Result<()> {
    let left = Store::start(scene, &options(pair.left, &format!("left-{seed}"))).await?;
    let right = Store::start(scene, &options(pair.right, &format!("right-{seed}"))).await?;
    let comparison = Comparison {
        seed,
        steps,
        profile: pair.profile,
        exceptions: pair.exceptions,
        record: scene.path().join(format!("steps-{seed}.txt")),
        replay: format!(
            "cargo test -p e2e --features peers -- --exact differential::{}",
            pair.test
        ),
    };
    let summary = compare(left.client()?, right.client()?, comparison).await?;
    say(&format!("{}: seed {seed}: {steps} steps alike, {summary:?}", pair.test));
    left.discard()?;
    right.discard()
}

/// Passwords are hashed at the lowest cost: their strength is not the subject.
fn options(lane: Lane, label: &str) -> StoreOptions {
    StoreOptions::new(lane, label).flags(lane.without_sync()).flags(["--bcrypt-cost", "4"])
}

fn number(variable: &str) -> Result<Option<u64>> {
    let parse = |text: String| text.parse().with_context(|| format!("{variable} is no number"));
    env::var(variable).ok().map(parse).transpose()
}
