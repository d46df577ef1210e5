//! Faults of an earlier implementation of the same design, each put to the test.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::labels::{RECORDS, Role, TRANSACTIONS, labels, stored_labels};
use e2e::wait::{Level, wait_for};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::seed::{data, hold_lock, transaction, without_version};
use crate::stage::{Stage, cases, gold};

/// What slow steps may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

cases! {
    reg01_order_by_name_not_by_object_rv,
    reg02_rv_9_before_10,
    reg03_failed_post_is_retried,
    reg04_api_error_does_not_end_process,
    reg05_takeover_has_one_winner,
    reg06_unknown_node_fields_survive,
    reg07_label_named_like_control_key,
    reg08_no_locks_left_behind,
    reg09_true_zone_survives_return,
    reg10_flat_only_snapshots_are_decoded,
}

/// The ConfigMap that was created first has the smaller version of its own, and is the later word.
async fn reg01_order_by_name_not_by_object_rv(stage: &mut Stage) -> Result<()> {
    check_order(stage, "reg01", ["5000", "4000"]).await
}

/// As strings, "10" comes before "9".
async fn reg02_rv_9_before_10(stage: &mut Stage) -> Result<()> {
    check_order(stage, "reg02", ["10", "9"]).await
}

/// Two deletions of one incarnation, the later one posted first.
async fn check_order(stage: &mut Stage, node: &str, [late, early]: [&str; 2]) -> Result<()> {
    stage.run(0, 0).await?;
    let cluster = stage.cluster();
    let uid = "44444444-4444-4444-8444-444444444444";
    for (version, rack) in [(late, "late"), (early, "early")] {
        cluster
            .post(TRANSACTIONS, &transaction(node, version, uid, Some(&[("rack", rack)])))
            .await?;
    }
    stage.run_processor().await?;
    let record = cluster.wait_stored(node, &labels(&[("rack", "late")])).await?;
    ensure!(data(&record, "labels_restored")? == late);
    ensure!(data(&record, "history.json")?.contains("early"), "the early one was dropped");
    Ok(())
}

/// A watcher without the right to queue holds on to what it saw until it has it again.
async fn reg03_failed_post_is_retried(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_watcher().await?;
    let kubectl = stage.world.server.kubectl().clone();
    let binding = ["rolebinding", "windlass-labels-watcher", "--namespace", TRANSACTIONS];
    let saved = kubectl.run(&[&["get"], &binding[..], &["--output=json"]].concat()).await?;
    kubectl.run(&[&["delete"], &binding[..]].concat()).await?;
    let user = stage.world.account(Role::Watch).to_owned();
    cluster.add("reg03", &gold()).await?;
    cluster.remove("reg03").await?;
    wait_for("a post to be refused", PATIENCE, async || {
        let refused = stage.world.audit.requests()?.into_iter().filter(|request| {
            request.user == user && request.verb == "create" && request.code == 403
        });
        let refused = refused.count();
        Ok(if refused > 0 { Level::Reached(()) } else { Level::Below("none yet".to_owned()) })
    })
    .await?;
    kubectl
        .run_with_input(&["create", "--filename=-"], without_version(&saved)?.as_bytes())
        .await?;
    let queued = cluster.wait_queued("reg03", 2).await?;
    ensure!(stored_labels(&queued[1])? == gold());
    stage.run_both().await?;
    cluster.wait_stored("reg03", &gold()).await?;
    Ok(())
}

async fn reg04_api_error_does_not_end_process(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("reg04", &gold()).await?;
    stage.world.server.kill()?;
    stage.world.server.restart().await?;
    for replica in stage.watchers.iter_mut().chain(&mut stage.processors) {
        replica.ensure_alive()?;
    }
    cluster.add("reg04", &BTreeMap::new()).await?;
    cluster.wait_restored("reg04", &gold()).await
}

async fn reg05_takeover_has_one_winner(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_watcher().await?;
    hold_lock(stage, "reg05").await?;
    cluster.add("reg05", &gold()).await?;
    cluster.remove("reg05").await?;
    cluster.wait_queued("reg05", 2).await?;
    stage.run(1, 4).await?;
    cluster.wait_stored("reg05", &gold()).await?;
    cluster.wait_settled("reg05").await?;
    let taken = stage.world.audit.requests()?.into_iter().filter(|request| {
        request.verb == "update"
            && request.resource == "leases"
            && request.name == "reg05"
            && request.code == 200
    });
    let taken = taken.count();
    ensure!(taken == 1, "{taken} replicas took the lock over");
    stage.run(1, 1).await
}

/// Whatever else is on a Node is still there after its labels came back.
async fn reg06_unknown_node_fields_survive(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("reg06", &gold()).await?;
    stage.run_watcher().await?;
    cluster.add("reg06", &BTreeMap::new()).await?;
    let patch = json!({
        "metadata": {"annotations": {"example.com/kept": "yes"}},
        "spec": {
            "unschedulable": true,
            "taints": [{"key": "example.com/busy", "effect": "NoExecute", "value": "x"}],
            "podCIDR": "10.9.0.0/24", "podCIDRs": ["10.9.0.0/24"],
        },
    });
    let nodes = cluster.nodes();
    nodes.patch("reg06", &PatchParams::default(), &Patch::Merge(patch)).await?;
    let status = json!({"status": {"capacity": {"cpu": "7", "example.com/gadget": "2"}}});
    let before =
        nodes.patch_status("reg06", &PatchParams::default(), &Patch::Merge(status)).await?;
    stage.run_both().await?;
    cluster.wait_restored("reg06", &gold()).await?;
    let after = nodes.get("reg06").await?;
    ensure!(without_ours(&after)? == without_ours(&before)?, "{after:?}");
    Ok(())
}

/// A Node without what a restore may change.
fn without_ours(node: &Node) -> Result<serde_json::Value> {
    let mut node = serde_json::to_value(node)?;
    let metadata = node["metadata"].as_object_mut().context("a node has metadata")?;
    for field in ["labels", "resourceVersion", "managedFields"] {
        metadata.remove(field);
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(|map| map.as_object_mut()) {
        annotations.remove("labels.windlass.dev/restored");
    }
    Ok(node)
}

async fn reg07_label_named_like_control_key(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    let names = ["type", "node_name", "transaction_type", "snapshot.json", "history.json"];
    let control: BTreeMap<String, String> =
        names.iter().map(|name| ((*name).to_owned(), "a-label".to_owned())).collect();
    cluster.remember("reg07", &control).await?;
    cluster.add("reg07", &BTreeMap::new()).await?;
    cluster.wait_restored("reg07", &control).await
}

async fn reg08_no_locks_left_behind(stage: &mut Stage) -> Result<()> {
    stage.run(2, 2).await?;
    let cluster = stage.cluster();
    for number in 0..5 {
        let node = format!("reg08-{number}");
        cluster.remember(&node, &gold()).await?;
        cluster.add(&node, &BTreeMap::new()).await?;
        cluster.wait_restored(&node, &gold()).await?;
        cluster.wait_settled(&node).await?;
    }
    let locks = cluster.locks().await?;
    ensure!(locks.iter().all(|name| !name.starts_with("reg08")), "{locks:?}");
    stage.run(1, 1).await
}

/// The machine that returns stands elsewhere; what it says of itself is true.
async fn reg09_true_zone_survives_return(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    let zone = "topology.kubernetes.io/zone";
    let with_zone = |zone_name: &str| {
        let mut labels = gold();
        labels.insert(zone.to_owned(), zone_name.to_owned());
        labels
    };
    cluster.remember("reg09", &with_zone("zone-a")).await?;
    cluster.add("reg09", &labels(&[(zone, "zone-b")])).await?;
    cluster.wait_restored("reg09", &with_zone("zone-b")).await
}

/// A record of the earlier implementation: labels as flat keys, no snapshot.
async fn reg10_flat_only_snapshots_are_decoded(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    let data = labels(&[
        ("team---SLASH---tier", "gold"),
        ("rack", "r7"),
        ("last_store_resource_version", "17"),
        ("transaction_type", "deleted"),
        ("node_name", "reg10"),
    ]);
    let mut record = ConfigMap { data: Some(data), ..ConfigMap::default() };
    record.metadata.name = Some("reg10".to_owned());
    cluster.post(RECORDS, &record).await?;
    cluster.add("reg10", &BTreeMap::new()).await?;
    cluster.wait_restored("reg10", &gold()).await?;
    ensure!(cluster.marker("reg10").await?.as_deref() == Some("17"));
    Ok(())
}
