//! What the design document promises, one case per sentence; of processors that die and stall, see
//! [`deaths`](crate::deaths).

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::labels::{RECORDS, Role, TRANSACTIONS, hash, labels, stored_labels};
use e2e::wait::{Level, wait_for};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::PostParams;
use serde_json::json;

use crate::stage::{CROWD, Stage, cases, gold};

/// A lock is taken over after this long without a sign of life.
pub(crate) const LOCK_DURATION: Duration = Duration::from_secs(10);

/// What slow steps may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

cases! {
    transaction_name_is_sha256_dot_rv,
    transaction_type_added_or_deleted,
    stores_in_both_namespaces,
    first_delete_creates_record_with_labels_restored,
    marked_node_replaces_record,
    unmarked_node_leaves_record,
    added_restores_all_labels_and_marker,
    added_for_missing_node_is_removed,
    added_without_record_is_removed_and_node_untouched,
    smallest_rv_first,
    transaction_removed_only_after_success,
    lock_refused_goes_on_with_another_node,
    edge_delete_add_delete_keeps_labels,
    edge_change_just_before_delete_is_kept,
    edge_change_before_restore_is_overwritten,
    node_returning_with_labels_gets_stored_ones,
    removed_label_stays_removed,
    slash_keys_round_trip,
    node_name_of_253_characters,
    rv_of_188_digits,
    four_replicas_of_each_restore_once,
    executed_twice_same_result,
}

async fn transaction_name_is_sha256_dot_rv(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_watcher().await?;
    let node = cluster.add("name-rule", &gold()).await?;
    let version = node.resource_version().context("a created node has a version")?;
    let added = cluster.wait_queued("name-rule", 1).await?;
    ensure!(added[0].name_any() == format!("{}.{version}", hash("name-rule")));
    cluster.remove("name-rule").await?;
    let queued = cluster.wait_queued("name-rule", 2).await?;
    let name = queued[1].name_any();
    let of_delete = name.rsplit('.').next().context("the name has a dot")?;
    ensure!(of_delete.parse::<u64>()? > version.parse()?, "{name} is not after {version}");
    stage.run_both().await?;
    cluster.wait_settled("name-rule").await
}

async fn transaction_type_added_or_deleted(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_watcher().await?;
    cluster.add("type-rule", &gold()).await?;
    cluster.remove("type-rule").await?;
    let queued = cluster.wait_queued("type-rule", 2).await?;
    let kinds: Vec<_> = queued.iter().map(|map| data(map, "type")).collect::<Result<_>>()?;
    ensure!(kinds == ["added", "deleted"], "{kinds:?}");
    ensure!(stored_labels(&queued[1])? == gold());
    ensure!(queued.iter().all(|map| map.immutable == Some(true)));
    stage.run_both().await?;
    cluster.wait_settled("type-rule").await
}

async fn stores_in_both_namespaces(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_watcher().await?;
    cluster.add("both-stores", &gold()).await?;
    cluster.remove("both-stores").await?;
    let queued = cluster.wait_queued("both-stores", 2).await?;
    ensure!(queued.iter().all(|map| map.namespace().as_deref() == Some(TRANSACTIONS)));
    stage.run_both().await?;
    let record = cluster.wait_stored("both-stores", &gold()).await?;
    ensure!(record.namespace().as_deref() == Some(RECORDS));
    Ok(())
}

async fn first_delete_creates_record_with_labels_restored(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_watcher().await?;
    cluster.add("first-delete", &gold()).await?;
    cluster.remove("first-delete").await?;
    let queued = cluster.wait_queued("first-delete", 2).await?;
    let version = queued[1].name_any().rsplit('.').next().map(ToOwned::to_owned);
    stage.run_both().await?;
    let record = cluster.wait_stored("first-delete", &gold()).await?;
    ensure!(Some(data(&record, "labels_restored")?) == version);
    ensure!(data(&record, "team---SLASH---tier")? == "gold" && data(&record, "rack")? == "r7");
    Ok(())
}

async fn marked_node_replaces_record(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("marked", &gold()).await?;
    cluster.add("marked", &BTreeMap::new()).await?;
    cluster.wait_restored("marked", &gold()).await?;
    cluster.edit("marked", &[("rack", Some("r8")), ("new", Some("yes"))]).await?;
    cluster.remove("marked").await?;
    let expected = labels(&[("team/tier", "gold"), ("rack", "r8"), ("new", "yes")]);
    cluster.wait_stored("marked", &expected).await?;
    Ok(())
}

async fn unmarked_node_leaves_record(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    let before = cluster.remember("unmarked", &gold()).await?;
    stage.run_watcher().await?;
    cluster.add("unmarked", &labels(&[("other", "label")])).await?;
    cluster.remove("unmarked").await?;
    cluster.wait_queued("unmarked", 2).await?;
    stage.run_both().await?;
    cluster.wait_settled("unmarked").await?;
    let after = cluster.record("unmarked").await?.context("the record is there")?;
    ensure!(after.data == before.data, "{:?}", after.data);
    Ok(())
}

async fn added_restores_all_labels_and_marker(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    let record = cluster.remember("restored", &gold()).await?;
    cluster.add("restored", &BTreeMap::new()).await?;
    cluster.wait_restored("restored", &gold()).await?;
    let marker = cluster.marker("restored").await?;
    ensure!(marker == Some(data(&record, "labels_restored")?), "{marker:?}");
    Ok(())
}

async fn added_for_missing_node_is_removed(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    let before = cluster.remember("missing", &gold()).await?;
    let added = transaction("missing", "99999999", "11111111-1111-4111-8111-111111111111", None);
    cluster.post(TRANSACTIONS, &added).await?;
    cluster.wait_settled("missing").await?;
    let after = cluster.record("missing").await?.context("the record is there")?;
    ensure!(after.data == before.data, "{:?}", after.data);
    Ok(())
}

async fn added_without_record_is_removed_and_node_untouched(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_watcher().await?;
    let created = cluster.add("newcomer", &gold()).await?;
    cluster.wait_queued("newcomer", 1).await?;
    stage.run_both().await?;
    cluster.wait_settled("newcomer").await?;
    let node = cluster.nodes().get("newcomer").await?;
    ensure!(node.resource_version() == created.resource_version(), "the node was written");
    ensure!(cluster.record("newcomer").await?.is_none());
    Ok(())
}

/// Posted in the wrong order; the later one replaces the earlier one, which becomes the past.
async fn smallest_rv_first(stage: &mut Stage) -> Result<()> {
    stage.run(0, 0).await?;
    let cluster = stage.cluster();
    let uid = "22222222-2222-4222-8222-222222222222";
    for (version, rack) in [("120", "late"), ("110", "early")] {
        let deleted = transaction("in-order", version, uid, Some(&[("rack", rack)]));
        cluster.post(TRANSACTIONS, &deleted).await?;
    }
    stage.run_processor().await?;
    let record = cluster.wait_stored("in-order", &labels(&[("rack", "late")])).await?;
    let past = data(&record, "history.json")?;
    ensure!(past.contains("early"), "the past is {past}");
    Ok(())
}

/// Without the right to write records nothing may be taken off the queue.
async fn transaction_removed_only_after_success(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_watcher().await?;
    let kubectl = stage.world.server.kubectl().clone();
    let binding = ["rolebinding", "windlass-labels-processor", "--namespace", RECORDS];
    let saved = kubectl.run(&[&["get"], &binding[..], &["--output=json"]].concat()).await?;
    cluster.add("no-rights", &gold()).await?;
    cluster.remove("no-rights").await?;
    cluster.wait_queued("no-rights", 2).await?;
    kubectl.run(&[&["delete"], &binding[..]].concat()).await?;
    let mut processor = stage.world.launch(Role::Process, &[])?;
    wait_for("the processor to name the right it lacks", PATIENCE, async || {
        processor.ensure_alive()?;
        Ok(match processor.readiness().await {
            Ok((false, text)) if text.contains("configmaps") && text.contains(RECORDS) => {
                Level::Reached(())
            }
            other => Level::Below(format!("{other:?}")),
        })
    })
    .await?;
    ensure!(cluster.transactions("no-rights").await?.len() == 2, "the queue was worked off");
    kubectl
        .run_with_input(&["create", "--filename=-"], without_version(&saved)?.as_bytes())
        .await?;
    cluster.wait_stored("no-rights", &gold()).await?;
    cluster.wait_settled("no-rights").await?;
    stage.processors.push(processor);
    Ok(())
}

async fn lock_refused_goes_on_with_another_node(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_watcher().await?;
    hold_lock(stage, "locked").await?;
    for node in ["locked", "free"] {
        cluster.add(node, &gold()).await?;
        cluster.remove(node).await?;
        cluster.wait_queued(node, 2).await?;
    }
    stage.run_both().await?;
    cluster.wait_stored("free", &gold()).await?;
    ensure!(cluster.record("locked").await?.is_none(), "worked on what another holds");
    cluster.wait_stored("locked", &gold()).await?;
    cluster.wait_settled("locked").await
}

/// A Lease of somebody who has died since.
pub(crate) async fn hold_lock(stage: &Stage, node: &str) -> Result<()> {
    let lease: Lease = serde_json::from_value(json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": node},
        "spec": {
            "holderIdentity": "somebody-else",
            "leaseDurationSeconds": LOCK_DURATION.as_secs(),
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "acquireTime": "2026-01-01T00:00:00.000000Z",
        },
    }))?;
    stage.cluster().leases(TRANSACTIONS).create(&PostParams::default(), &lease).await?;
    Ok(())
}

async fn edge_delete_add_delete_keeps_labels(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_watcher().await?;
    cluster.add("rapid", &gold()).await?;
    cluster.remove("rapid").await?;
    cluster.add("rapid", &BTreeMap::new()).await?;
    cluster.remove("rapid").await?;
    cluster.wait_queued("rapid", 4).await?;
    stage.run_both().await?;
    cluster.wait_stored("rapid", &gold()).await?;
    cluster.wait_settled("rapid").await?;
    cluster.add("rapid", &BTreeMap::new()).await?;
    cluster.wait_restored("rapid", &gold()).await
}

async fn edge_change_just_before_delete_is_kept(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.add("last-moment", &gold()).await?;
    cluster.edit("last-moment", &[("rack", Some("r9"))]).await?;
    cluster.remove("last-moment").await?;
    let expected = labels(&[("team/tier", "gold"), ("rack", "r9")]);
    cluster.wait_stored("last-moment", &expected).await?;
    Ok(())
}

async fn edge_change_before_restore_is_overwritten(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("too-early", &gold()).await?;
    stage.run_watcher().await?;
    cluster.add("too-early", &BTreeMap::new()).await?;
    cluster.edit("too-early", &[("rack", Some("edited")), ("early", Some("gone"))]).await?;
    stage.run_both().await?;
    cluster.wait_restored("too-early", &gold()).await
}

async fn node_returning_with_labels_gets_stored_ones(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("dressed", &gold()).await?;
    cluster.add("dressed", &labels(&[("rack", "other"), ("brought", "along")])).await?;
    cluster.wait_restored("dressed", &gold()).await
}

async fn removed_label_stays_removed(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("reduced", &gold()).await?;
    cluster.add("reduced", &BTreeMap::new()).await?;
    cluster.wait_restored("reduced", &gold()).await?;
    cluster.edit("reduced", &[("rack", None)]).await?;
    cluster.remove("reduced").await?;
    let expected = labels(&[("team/tier", "gold")]);
    cluster.wait_stored("reduced", &expected).await?;
    cluster.add("reduced", &BTreeMap::new()).await?;
    cluster.wait_restored("reduced", &expected).await
}

async fn slash_keys_round_trip(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    let slashes = labels(&[
        ("example.com/role", "db"),
        ("example.com/a---SLASH---b", "token-in-key"),
        ("plain", ""),
    ]);
    cluster.remember("slashes", &slashes).await?;
    cluster.add("slashes", &BTreeMap::new()).await?;
    cluster.wait_restored("slashes", &slashes).await
}

async fn node_name_of_253_characters(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    let name = [["a"; 63].concat(), ["b"; 63].concat(), ["c"; 63].concat(), ["d"; 61].concat()];
    let name = name.join(".");
    ensure!(name.len() == 253);
    cluster.remember(&name, &gold()).await?;
    cluster.add(&name, &BTreeMap::new()).await?;
    cluster.wait_restored(&name, &gold()).await
}

/// The longest version a name has room for: it is no label value, so the annotation marks alone.
async fn rv_of_188_digits(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_processor().await?;
    let version = "9".repeat(188);
    let uid = "33333333-3333-4333-8333-333333333333";
    let deleted = transaction("long-version", &version, uid, Some(&[("rack", "r7")]));
    cluster.post(TRANSACTIONS, &deleted).await?;
    let record = cluster.wait_stored("long-version", &labels(&[("rack", "r7")])).await?;
    ensure!(data(&record, "labels_restored")? == version);
    stage.run_both().await?;
    cluster.add("long-version", &BTreeMap::new()).await?;
    wait_for("the node to be restored", PATIENCE, async || {
        let node = cluster.nodes().get("long-version").await?;
        let annotation = node.annotations().get("labels.windlass.dev/restored");
        let is_restored = annotation == Some(&version)
            && cluster.labels("long-version").await? == labels(&[("rack", "r7")]);
        Ok(if is_restored { Level::Reached(()) } else { Level::Below(format!("{annotation:?}")) })
    })
    .await
}

async fn four_replicas_of_each_restore_once(stage: &mut Stage) -> Result<()> {
    stage.run(CROWD, CROWD).await?;
    let cluster = stage.cluster();
    let nodes: Vec<String> = (0..8).map(|number| format!("crowd-{number}")).collect();
    for node in &nodes {
        cluster.remember(node, &gold()).await?;
    }
    for node in &nodes {
        cluster.add(node, &BTreeMap::new()).await?;
    }
    for node in &nodes {
        cluster.wait_restored(node, &gold()).await?;
        cluster.wait_settled(node).await?;
    }
    stage.restored_once(&nodes).await?;
    stage.run(1, 1).await
}

/// The very same transactions once more: a replica that died before it could delete them.
async fn executed_twice_same_result(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("twice", &gold()).await?;
    stage.run_watcher().await?;
    cluster.add("twice", &BTreeMap::new()).await?;
    let queued = cluster.wait_queued("twice", 1).await?;
    stage.run_both().await?;
    cluster.wait_restored("twice", &gold()).await?;
    cluster.wait_settled("twice").await?;
    cluster.edit("twice", &[("rack", Some("edited"))]).await?;
    let before = cluster.record("twice").await?.context("the record is there")?;
    cluster.post(TRANSACTIONS, &queued[0]).await?;
    cluster.wait_settled("twice").await?;
    let expected = labels(&[("team/tier", "gold"), ("rack", "edited")]);
    ensure!(cluster.labels("twice").await? == expected, "restored twice");
    let after = cluster.record("twice").await?.context("the record is there")?;
    ensure!(after.resource_version() == before.resource_version(), "the record was written");
    Ok(())
}

pub(crate) fn data(map: &ConfigMap, key: &str) -> Result<String> {
    let data = map.data.as_ref().context("the ConfigMap has no data")?;
    data.get(key).cloned().with_context(|| format!("{} has no {key}", map.name_any()))
}

/// A transaction as a watcher writes it; `deleted` if there are labels.
pub(crate) fn transaction(
    node: &str,
    version: &str,
    uid: &str,
    labels: Option<&[(&str, &str)]>,
) -> ConfigMap {
    let labels = labels.map(e2e::labels::labels);
    let snapshot = labels.as_ref().map(|labels| {
        json!({"v": 1, "node": node, "uid": uid, "rv": version, "marker": null, "labels": labels})
    });
    let mut data = BTreeMap::from([(
        "type".to_owned(),
        if snapshot.is_some() { "deleted" } else { "added" }.to_owned(),
    )]);
    data.extend(snapshot.map(|snapshot| ("snapshot.json".to_owned(), snapshot.to_string())));
    let annotation =
        |name: &str, value: &str| (format!("labels.windlass.dev/{name}"), value.to_owned());
    let mut map = ConfigMap { immutable: Some(true), data: Some(data), ..ConfigMap::default() };
    map.metadata.name = Some(format!("{}.{version}", hash(node)));
    map.metadata.labels =
        Some(e2e::labels::labels(&[("app.kubernetes.io/managed-by", "windlass-labels")]));
    map.metadata.annotations = Some(BTreeMap::from([
        annotation("node", node),
        annotation("node-uid", uid),
        annotation("node-created", "2026-03-01T08:00:00Z"),
        annotation("source", "watch"),
    ]));
    map
}

/// An object as it was, to be created again.
pub(crate) fn without_version(object: &str) -> Result<String> {
    let mut object: serde_json::Value = serde_json::from_str(object)?;
    let metadata = object["metadata"].as_object_mut().context("the object has metadata")?;
    for field in ["resourceVersion", "uid", "creationTimestamp", "managedFields"] {
        metadata.remove(field);
    }
    Ok(object.to_string())
}
