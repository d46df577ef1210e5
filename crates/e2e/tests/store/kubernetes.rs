//! kube-apiserver on a store: it boots, kubectl works, watches survive a kill, compaction and
//! expiry do what it expects. Every test runs on etcd and on windlass.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::kube::{Apiserver, ApiserverOptions, Kubectl, Watching, objects};
use e2e::report::say;
use e2e::scene::{Scene, bound, suite};
use e2e::store::{Lane, Store, StoreOptions};
use e2e::wait::{Level, wait_for};
use etcd_api::etcdserverpb::RangeRequest;
use futures::future::try_join_all;
use serde_json::Value;
use tokio::sync::watch;

/// Nodes created and listed, by default and at length.
const NODES: (usize, usize) = (500, 5000);

/// Who creates objects around each kill of the store, how many each, and after how many of all the
/// store is killed.
const WRITERS: usize = 3;
const CREATES: usize = 5;
const KILLED_AFTER: usize = 5;

/// How long the API server may take to make something true.
const SETTLE_WAIT: Duration = Duration::from_secs(120);

macro_rules! lanes {
    ($($test:ident / $windlass:ident => $check:ident;)+) => {$(
        #[test]
        fn $test() {
            run(stringify!($test), Lane::Etcd, async |scene, lane| $check(scene, lane).await);
        }

        #[test]
        fn $windlass() {
            run(stringify!($windlass), Lane::Windlass, async |scene, lane| $check(scene, lane).await);
        }
    )+};
}

lanes! {
    etcd_carries_objects / windlass_carries_objects => check_objects;
    etcd_carries_many_nodes / windlass_carries_many_nodes => check_many_nodes;
    etcd_lets_watches_resume / windlass_lets_watches_resume => check_watch_survives_kill;
    etcd_is_compacted / windlass_is_compacted => check_compaction;
    etcd_expires_events / windlass_expires_events => check_expiry;
}

fn run(name: &'static str, lane: Lane, check: impl AsyncFnOnce(&Scene, Lane) -> Result<()>) {
    let needs = [lane.asset(), Asset::KubeApiserver, Asset::Kubectl];
    suite(name, &needs, async |scene| check(scene, lane).await);
}

async fn start(scene: &Scene, lane: Lane, flags: &[&str]) -> Result<(Store, Apiserver)> {
    let store = Store::start(scene, &StoreOptions::new(lane, "store")).await?;
    let flags = flags.iter().map(ToString::to_string).collect();
    let options = ApiserverOptions { flags, ..ApiserverOptions::default() };
    let server = Apiserver::start(scene, &store, &options).await?;
    Ok((store, server))
}

/// Create, list, patch and delete, on kinds that are stored differently.
async fn check_objects(scene: &Scene, lane: Lane) -> Result<()> {
    let (_store, server) = start(scene, lane, &[]).await?;
    let kubectl = server.kubectl();
    kubectl.run(&["create", "namespace", "team"]).await?;
    kubectl.create(&objects::each_kind("team")).await?;
    for resource in ["configmap/settings", "lease.coordination.k8s.io/leader"] {
        check_patch_and_delete(kubectl, &[resource, "--namespace=team"]).await?;
    }
    check_patch_and_delete(kubectl, &["node/n1"]).await?;
    check_custom_resource(kubectl).await?;
    kubectl.run(&["delete", "namespace", "team", "--wait=false"]).await?;
    let namespace = kubectl.json(&["get", "namespace", "team"]).await?;
    ensure!(namespace["metadata"]["deletionTimestamp"].is_string(), "{namespace}");
    Ok(())
}

async fn check_patch_and_delete(kubectl: &Kubectl, object: &[&str]) -> Result<()> {
    let before = kubectl.json(&[&["get"], object].concat()).await?;
    let patch = r#"--patch={"metadata":{"labels":{"seen":"yes"}}}"#;
    kubectl.run(&[&["patch"], object, &["--type=merge", patch]].concat()).await?;
    let after = kubectl.json(&[&["get"], object].concat()).await?;
    ensure!(after["metadata"]["labels"]["seen"] == "yes", "not patched: {after}");
    ensure!(resource_version(&before)? < resource_version(&after)?, "the version did not grow");
    kubectl.run(&[&["delete"], object].concat()).await?;
    let gone = kubectl.run(&[&["get"], object].concat()).await;
    ensure!(gone.is_err_and(|error| error.to_string().contains("NotFound")), "still there");
    Ok(())
}

fn resource_version(object: &Value) -> Result<u64> {
    let text = object["metadata"]["resourceVersion"].as_str().context("no resourceVersion")?;
    text.parse().context("resourceVersion is a number")
}

async fn check_custom_resource(kubectl: &Kubectl) -> Result<()> {
    kubectl.create(&[objects::custom_definition()]).await?;
    kubectl
        .run(&["wait", "--for=condition=Established", "crd/winches.e2e.example", "--timeout=60s"])
        .await?;
    wait_for("the custom resource to be served", SETTLE_WAIT, async || {
        Ok(match kubectl.create(&[objects::custom_object("w1")]).await {
            Ok(_) => Level::Reached(()),
            Err(error) => Level::Below(error.to_string()),
        })
    })
    .await?;
    check_patch_and_delete(kubectl, &["winch/w1"]).await
}

/// Thousands of objects, created and listed whole and in pages.
async fn check_many_nodes(scene: &Scene, lane: Lane) -> Result<()> {
    let flags = [
        "--max-requests-inflight=0",
        "--max-mutating-requests-inflight=0",
        "--enable-priority-and-fairness=false",
    ];
    let (store, server) = start(scene, lane, &flags).await?;
    let count = bound(NODES.0, NODES.1);
    let nodes: Vec<Value> =
        (0..count).map(|number| objects::node(&format!("n{number:05}"))).collect();
    server.kubectl().create(&nodes).await?;
    for chunk in ["--chunk-size=0", "--chunk-size=100"] {
        let names = server.kubectl().run(&["get", "nodes", "--output=name", chunk]).await?;
        ensure!(names.lines().count() == count, "{chunk}: {} nodes", names.lines().count());
    }
    let request = RangeRequest {
        key: "/registry/minions/".into(),
        range_end: "/registry/minions0".into(),
        count_only: true,
        ..Default::default()
    };
    let kept = store.client()?.kv().range(request).await?.into_inner().count;
    ensure!(kept == i64::try_from(count)?, "the store counts {kept} nodes");
    Ok(())
}

/// A watch through the API server while the store below it is killed amid writes: nothing lost,
/// nothing twice.
async fn check_watch_survives_kill(scene: &Scene, lane: Lane) -> Result<()> {
    let (mut store, server) = start(scene, lane, &[]).await?;
    let kubectl = server.kubectl();
    let names = "--output=jsonpath={.type} {.object.metadata.name}{\"\\n\"}";
    let arguments = ["get", "configmaps", "--watch", "--output-watch-events", names];
    let mut watching = kubectl.watch("watch-configmaps", &arguments)?;
    let mut expected = Vec::new();
    for round in 0..3 {
        let (created, progress) = watch::channel(0);
        let writers = (0..WRITERS)
            .map(|writer| create_in_turn(kubectl, format!("c{round}-{writer}"), &created));
        // Neither waits for the other: creates are on their way when the store is killed.
        let (lines, killed) = tokio::join!(try_join_all(writers), kill_amid(&mut store, progress));
        expected.extend(lines?);
        killed?;
        expect_lines(&mut watching, &expected).await?;
    }
    create_patiently(kubectl, "last").await?;
    expected.push(vec!["ADDED last".to_owned()]);
    expect_lines(&mut watching, &expected).await
}

/// Creates one object after the other, whatever happens to the store. Returns what the watch then
/// says of them, in this order.
async fn create_in_turn(
    kubectl: &Kubectl,
    prefix: String,
    created: &watch::Sender<usize>,
) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for number in 0..CREATES {
        let name = format!("{prefix}-{number}");
        create_patiently(kubectl, &name).await?;
        lines.push(format!("ADDED {name}"));
        created.send_modify(|created| *created += 1);
    }
    Ok(lines)
}

/// Kills the store when some objects are created and others are being created, and starts it again.
async fn kill_amid(store: &mut Store, mut created: watch::Receiver<usize>) -> Result<()> {
    created.wait_for(|created| *created >= KILLED_AFTER).await.context("nothing is created")?;
    store.kill()?;
    store.restart().await
}

/// After a kill the API server needs a moment. An attempt that failed may have succeeded.
async fn create_patiently(kubectl: &Kubectl, name: &str) -> Result<()> {
    wait_for("a ConfigMap to be created", SETTLE_WAIT, async || {
        Ok(match kubectl.run(&["create", "configmap", name]).await {
            Ok(_) => Level::Reached(()),
            Err(error) if error.to_string().contains("already exists") => Level::Reached(()),
            Err(error) => Level::Below(error.to_string()),
        })
    })
    .await
}

/// The watch's own lines: those of each writer in its order, each once, and no others.
async fn expect_lines(watching: &mut Watching, expected: &[Vec<String>]) -> Result<()> {
    let total: usize = expected.iter().map(Vec::len).sum();
    wait_for("the watch to show every ConfigMap once", SETTLE_WAIT, async || {
        let lines = watching.lines()?;
        let seen: Vec<&String> = lines.iter().filter(|line| is_ours(line)).collect();
        let mut known = 0;
        for of_writer in expected {
            let seen = seen.iter().filter(|line| of_writer.contains(line));
            let count = seen.clone().count();
            let is_in_turn =
                count <= of_writer.len() && seen.zip(of_writer).all(|(seen, line)| *seen == line);
            ensure!(is_in_turn, "lost, doubled or out of order: {lines:?}");
            known += count;
        }
        ensure!(known == seen.len(), "other events than changes: {lines:?}");
        Ok(if known == total {
            Level::Reached(())
        } else {
            Level::Below(format!("{known} of {total} events"))
        })
    })
    .await
}

fn is_ours(line: &str) -> bool {
    let name = line.split(' ').nth(1).unwrap_or_default();
    name == "last" || (name.starts_with('c') && name[1..].starts_with(|c: char| c.is_ascii_digit()))
}

/// The API server's own compactor, at a short interval, must make old revisions unreadable.
async fn check_compaction(scene: &Scene, lane: Lane) -> Result<()> {
    let (store, server) = start(scene, lane, &["--etcd-compaction-interval=2s"]).await?;
    let client = store.client()?;
    wait_for("the API server to compact the store", SETTLE_WAIT, async || {
        let old = RangeRequest { key: "/registry/".into(), revision: 2, ..Default::default() };
        Ok(match client.kv().range(old).await {
            Err(status) if status.message().contains("compacted") => Level::Reached(()),
            other => Level::Below(format!("{other:?}")),
        })
    })
    .await?;
    server.kubectl().run(&["create", "configmap", "after-compaction"]).await?;
    Ok(())
}

/// Events live by leases; when those end the objects must go, and be seen to go.
async fn check_expiry(scene: &Scene, lane: Lane) -> Result<()> {
    let (store, server) = start(scene, lane, &["--event-ttl=5s"]).await?;
    let kubectl = server.kubectl();
    kubectl.create(&[objects::event("short-lived")]).await?;
    kubectl.run(&["get", "event", "short-lived"]).await?;
    wait_for("the Event to expire", SETTLE_WAIT, async || {
        Ok(match kubectl.run(&["get", "event", "short-lived"]).await {
            Err(error) if error.to_string().contains("NotFound") => Level::Reached(()),
            other => Level::Below(format!("{other:?}")),
        })
    })
    .await?;
    let key =
        RangeRequest { key: "/registry/events/default/short-lived".into(), ..Default::default() };
    let kept = store.client()?.kv().range(key).await?.into_inner().count;
    ensure!(kept == 0, "the store still has the Event");
    say(&format!("{}: an Event expired", scene.name()));
    Ok(())
}
