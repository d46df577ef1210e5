//! Three stores below an API server, each of which dies in turn.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::kube::{Apiserver, ApiserverOptions, Kubectl, Watching, objects};
use e2e::store::Store;
use e2e::wait::{Level, wait_for};
use serde_json::{Value, json};

use crate::stage::{Case, Kind, Stage};
use crate::together::{REPLICAS, with};

/// How long the API server may take to find another store.
const SETTLE_WAIT: Duration = Duration::from_secs(180);
/// What is patched while each store is down, of kinds that are stored differently.
const PATCHED: [&str; 4] =
    ["node/n1", "configmap/settings", "lease.coordination.k8s.io/leader", "winch/first"];
/// What a watch tells of each change.
const LINES: &str = "--output=jsonpath={.type} {.object.metadata.name}{\"\\n\"}";

pub(crate) fn cases() -> Vec<Case> {
    let name = "three::kubernetes::goes_on_without_each_store";
    vec![Case::new(name, Kind::Three, goes_on_without_each_store).at_length()]
}

/// Objects are created and patched while each store is down, and watches that began before tell of each
/// change once and in order.
fn goes_on_without_each_store(stage: &mut Stage) -> Result<()> {
    let needs = [Asset::Windlass, Asset::KubeApiserver, Asset::Kubectl];
    with(stage, "replicas_carry_kubernetes", &needs, async |together, _| {
        let others: Vec<String> = together.stores[1..].iter().map(Store::endpoint).collect();
        let flags = vec![format!("--etcd-servers={}", others.join(","))];
        let options = ApiserverOptions { flags, ..ApiserverOptions::default() };
        let server = Apiserver::start(&together.scene, &together.stores[0], &options).await?;
        let kubectl = server.kubectl();
        create(kubectl, objects::each_kind("default")).await?;
        create(kubectl, vec![objects::custom_definition()]).await?;
        create(kubectl, vec![objects::custom_object("first")]).await?;
        let watch = |kind| {
            let words = ["get", kind, "--watch", "--output-watch-events", LINES];
            kubectl.watch(&format!("watch-{kind}"), &words)
        };
        let (mut nodes, mut winches) = (watch("nodes")?, watch("winches")?);
        expect(&mut nodes, &["ADDED n1".to_owned()]).await?;
        expect(&mut winches, &["ADDED first".to_owned()]).await?;
        let (mut of_nodes, mut of_winches) =
            (vec!["ADDED n1".to_owned()], vec!["ADDED first".to_owned()]);
        for index in 0..REPLICAS {
            together.stores[index].kill()?;
            let name = format!("without-{index}");
            create(kubectl, vec![objects::node(&name)]).await?;
            create(kubectl, vec![objects::custom_object(&name), objects::event(&name)]).await?;
            for object in PATCHED {
                patch(kubectl, object, &name).await?;
            }
            of_nodes.extend([format!("ADDED {name}"), "MODIFIED n1".to_owned()]);
            of_winches.extend([format!("ADDED {name}"), "MODIFIED first".to_owned()]);
            expect(&mut nodes, &of_nodes).await?;
            expect(&mut winches, &of_winches).await?;
            together.stores[index].restart().await?;
        }
        for object in PATCHED {
            let found = kubectl.json(&["get", object]).await?;
            let label = &found["metadata"]["labels"]["seen"];
            ensure!(*label == format!("without-{}", REPLICAS - 1), "{object}: {label}");
        }
        let listed = kubectl.json(&["get", "events"]).await?;
        let events = listed["items"].as_array().context("a list")?.iter();
        let ours = events.filter(|event| event["reason"] == "Tested").count();
        ensure!(ours == REPLICAS, "{ours} events of ours in {listed}");
        Ok(())
    })
}

/// An attempt that failed may have succeeded, for some of the objects.
async fn create(kubectl: &Kubectl, objects: Vec<Value>) -> Result<()> {
    for object in objects {
        let what = format!("{} {}", object["kind"], object["metadata"]["name"]);
        wait_for(&format!("{what} to be created"), SETTLE_WAIT, async || {
            Ok(match kubectl.create(std::slice::from_ref(&object)).await {
                Ok(_) => Level::Reached(()),
                Err(error) if error.to_string().contains("AlreadyExists") => Level::Reached(()),
                Err(error) => Level::Below(error.to_string()),
            })
        })
        .await?;
    }
    Ok(())
}

/// Done twice it changes nothing, which no watch is told of.
async fn patch(kubectl: &Kubectl, object: &str, label: &str) -> Result<()> {
    let patch = json!({"metadata": {"labels": {"seen": label}}}).to_string();
    wait_for(&format!("{object} to be patched"), SETTLE_WAIT, async || {
        let words = ["patch", object, "--type=merge", "--patch", &patch];
        Ok(match kubectl.run(&words).await {
            Ok(_) => Level::Reached(()),
            Err(error) => Level::Below(error.to_string()),
        })
    })
    .await
}

/// Waits until a watch has told all of this, and checks that it told nothing else.
async fn expect(watching: &mut Watching, expected: &[String]) -> Result<()> {
    wait_for("a watch to tell every change", SETTLE_WAIT, async || {
        let lines = watching.lines()?;
        ensure!(expected.starts_with(&lines), "lost, doubled or out of order: {lines:?}");
        Ok(if lines.len() == expected.len() {
            Level::Reached(())
        } else {
            Level::Below(format!("{lines:?}"))
        })
    })
    .await
}
