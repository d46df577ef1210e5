//! Three stores beside etcd, and below an API server.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::assets::Asset;
use e2e::client::Client;
use e2e::differential::generate::Profile;
use e2e::differential::{Comparison, compare, exceptions};
use e2e::kube::{Apiserver, ApiserverOptions};
use e2e::report::say;
use e2e::scene::bound;
use e2e::store::{Lane, Store, StoreOptions};
use e2e::wait::{Level, wait_for};

use crate::stage::{Case, Kind, Stage};
use crate::together::{REPLICAS, with};

/// How long the API server may take to find another store.
const CREATE_WAIT: Duration = Duration::from_secs(180);
/// Requests that are compared, by default and at length.
const STEPS: (usize, usize) = (300, 2000);

pub(crate) fn cases() -> Vec<Case> {
    let case = |name: &str, play: fn(&mut Stage) -> Result<()>| {
        Case::new(&format!("three::peers::{name}"), Kind::Three, play).at_length()
    };
    vec![
        case("agree_with_etcd", |stage| agree_with_etcd(stage, Profile::Open)),
        case("guarded_agree_with_etcd", |stage| agree_with_etcd(stage, Profile::Guarded)),
        case("carry_kubernetes", carry_kubernetes),
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

/// An API server that was given all three goes on when each of them dies in turn.
fn carry_kubernetes(stage: &mut Stage) -> Result<()> {
    let needs = [Asset::Windlass, Asset::KubeApiserver, Asset::Kubectl];
    with(stage, "replicas_carry_kubernetes", &needs, async |together, _| {
        let others: Vec<String> = together.stores[1..].iter().map(Store::endpoint).collect();
        let flags = vec![format!("--etcd-servers={}", others.join(","))];
        let options = ApiserverOptions { flags, ..ApiserverOptions::default() };
        let server = Apiserver::start(&together.scene, &together.stores[0], &options).await?;
        let kubectl = server.kubectl();
        for index in 0..REPLICAS {
            together.stores[index].kill()?;
            let name = format!("without-{index}");
            wait_for("a ConfigMap to be created", CREATE_WAIT, async || {
                Ok(match kubectl.run(&["create", "configmap", &name]).await {
                    Ok(_) => Level::Reached(()),
                    // An attempt that failed may have succeeded.
                    Err(error) if error.to_string().contains("AlreadyExists") => Level::Reached(()),
                    Err(error) => Level::Below(error.to_string()),
                })
            })
            .await?;
            together.stores[index].restart().await?;
        }
        let listed = kubectl.run(&["get", "configmaps", "--output=name"]).await?;
        for index in 0..REPLICAS {
            ensure!(listed.contains(&format!("without-{index}")), "{listed}");
        }
        Ok(())
    })
}
