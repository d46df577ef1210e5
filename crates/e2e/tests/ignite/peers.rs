//! Three stores beside etcd, and what is known of its answers.

use anyhow::{Result, ensure};
use e2e::assets::Asset;
use e2e::client::Client;
use e2e::differential::generate::Profile;
use e2e::differential::{Comparison, compare, exceptions};
use e2e::report::say;
use e2e::scene::bound;
use e2e::store::{Lane, Store, StoreOptions};
use e2e::stories;

use crate::stage::{Case, Kind, Stage};
use crate::together::{REPLICAS, with};

/// Requests that are compared, by default and at length.
const STEPS: (usize, usize) = (300, 2000);

pub(crate) fn cases() -> Vec<Case> {
    let case = |name: &str, play: fn(&mut Stage) -> Result<()>| {
        Case::new(&format!("three::peers::{name}"), Kind::Three, play).at_length()
    };
    vec![
        case("agree_with_etcd", |stage| agree_with_etcd(stage, Profile::Open)),
        case("answer_as_the_stories_expect", answer_as_the_stories_expect),
        case("guarded_agree_with_etcd", |stage| agree_with_etcd(stage, Profile::Guarded)),
    ]
}

/// Each request goes to a random one of the three, and etcd answers the same.
fn agree_with_etcd(stage: &mut Stage, profile: Profile) -> Result<()> {
    let needs = [Asset::Windlass, Asset::Etcd];
    with(stage, "replicas_agree_with_etcd", &needs, async |together, _| {
        let options = StoreOptions::new(Lane::Etcd, "etcd").flags(Lane::Etcd.without_sync());
        let etcd = Store::start(&together.scene, &options.flags(["--bcrypt-cost", "4"])).await?;
        let ports: Vec<u16> = together.stores.iter().map(Store::port).collect();
        let seed = rand::random();
        let comparison = Comparison {
            seed,
            steps: bound(STEPS.0, STEPS.1),
            profile,
            exceptions: exceptions::WINDLASS,
            record: together.scene.path().join("steps.txt"),
            replay: "cargo test --workspace --features e2e/peers --test ignite".to_owned(),
        };
        let summary = compare(etcd.client()?, Client::spread(&ports)?, comparison).await?;
        say(&format!("{}: seed {seed}: {summary:?}", together.scene.name()));
        Ok(())
    })
}

/// Each story is told to three stores over tables of their own, each step to another one than the step before.
fn answer_as_the_stories_expect(stage: &mut Stage) -> Result<()> {
    let mut differences = Vec::new();
    for story in stories::all()? {
        with(stage, "replicas_tell_stories", &[Asset::Windlass], async |together, _| {
            let members = (0..REPLICAS).map(|index| together.client(index));
            let members = members.collect::<Result<Vec<_>>>()?;
            differences.extend(story.tell(&members).await?);
            Ok(())
        })?;
    }
    ensure!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}
