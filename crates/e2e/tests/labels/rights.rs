//! What the shipped manifests allow: each account exactly what it needs, the stores to nobody else,
//! and of a Node only its labels.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::kube::Kubectl;
use e2e::labels::{
    CHECKPOINTS, KUBELET_NODE, OUTSIDER, RECORDS, Replica, Role, TRANSACTIONS, labels,
};
use e2e::wait::{Level, wait_for};
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;

use crate::seed::without_version;
use crate::stage::{Stage, cases};

cases! {
    accounts_have_the_rights_of_the_table_and_no_others,
    stores_are_closed_to_the_mightiest_stranger,
    leases_are_closed_to_the_mightiest_stranger,
    processor_changes_labels_and_nothing_else_of_a_node,
    kubelet_that_forges_the_marker_replaces_no_record,
    rights_that_come_back_make_replicas_ready_again,
}

/// A replica takes its Lease when it starts.
const LEASE_WAIT: Duration = Duration::from_secs(60);

/// Missing rights are asked about every 10 s, a refusal that nobody meets any more is over after a
/// minute, and kube-apiserver needs a moment to believe its own bindings.
const READINESS_WAIT: Duration = Duration::from_secs(120);

/// Namespace, resource and verbs; an empty namespace stands for what holds in all of them.
type Rights = &'static [(&'static str, &'static str, &'static str)];

const WATCHER: Rights = &[
    ("", "nodes", "get list watch"),
    ("", "events.events.k8s.io", "create patch"),
    (TRANSACTIONS, "configmaps", "create get list watch"),
    (RECORDS, "configmaps", "get list"),
    (CHECKPOINTS, "configmaps", "create delete get list update watch"),
    (CHECKPOINTS, "leases.coordination.k8s.io", "create delete get list update watch"),
];

const PROCESSOR: Rights = &[
    ("", "nodes", "get list patch watch"),
    ("", "events.events.k8s.io", "create patch"),
    (TRANSACTIONS, "configmaps", "delete get list patch watch"),
    (TRANSACTIONS, "leases.coordination.k8s.io", "create delete get list update"),
    (RECORDS, "configmaps", "create delete get list update"),
    (CHECKPOINTS, "leases.coordination.k8s.io", "create get update"),
];

async fn accounts_have_the_rights_of_the_table_and_no_others(stage: &mut Stage) -> Result<()> {
    for (role, expected) in [(Role::Watch, WATCHER), (Role::Process, PROCESSOR)] {
        let kubectl = stage.world.server.kubectl_of(stage.world.account(role))?.clone();
        for namespace in ["default", "kube-system", TRANSACTIONS, RECORDS, CHECKPOINTS] {
            let seen = rights(&kubectl, namespace).await?;
            let wanted =
                expected.iter().filter(|(place, ..)| place.is_empty() || *place == namespace);
            let wanted = wanted.map(|(_, resource, verbs)| ((*resource).to_owned(), set(verbs)));
            let wanted: BTreeMap<_, _> = wanted.collect();
            ensure!(seen == wanted, "{role:?} in {namespace}: {seen:?}, not {wanted:?}");
        }
    }
    Ok(())
}

/// What somebody may do in a namespace, without what everybody may.
async fn rights(kubectl: &Kubectl, namespace: &str) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let listed =
        kubectl.run(&["auth", "can-i", "--list", "--no-headers", "--namespace", namespace]).await?;
    let mut rights: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in listed.lines() {
        let resource = line.split_whitespace().next().unwrap_or_default();
        let verbs = line.rsplit('[').next().and_then(|rest| rest.strip_suffix(']'));
        let verbs = verbs.with_context(|| format!("no verbs in `{line}`"))?;
        let is_everybodys = resource.starts_with('[') || resource.starts_with("self");
        if !is_everybodys {
            rights.entry(resource.to_owned()).or_default().extend(set(verbs));
        }
    }
    Ok(rights)
}

fn set(words: &str) -> BTreeSet<String> {
    words.split(' ').map(ToOwned::to_owned).collect()
}

/// Somebody with every right RBAC can give still cannot put labels into the stores.
async fn stores_are_closed_to_the_mightiest_stranger(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("guarded", &labels(&[("rack", "r7")])).await?;
    let stranger = stage.world.server.kubectl_of(OUTSIDER)?.clone();
    for namespace in [TRANSACTIONS, RECORDS, CHECKPOINTS] {
        let create =
            stranger.run(&["create", "configmap", "forged", "--namespace", namespace]).await;
        expect_refused(create, "windlass-labels-store")?;
    }
    let record = ["configmap", "guarded", "--namespace", RECORDS];
    let patch = r#"--patch={"data":{"rack":"forged"}}"#;
    let patched = stranger.run(&[&["patch"], &record[..], &["--type=merge", patch]].concat()).await;
    expect_refused(patched, "windlass-labels-store")?;
    let deleted = stranger.run(&[&["delete"], &record[..]].concat()).await;
    expect_refused(deleted, "windlass-labels-store")?;
    stranger.run(&["create", "configmap", "harmless", "--namespace=default"]).await?;
    Ok(())
}

/// Whoever could write the Leases could stop the service: hold every lock, or pass for all replicas.
async fn leases_are_closed_to_the_mightiest_stranger(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    let held = wait_for("a replica's Lease", LEASE_WAIT, async || {
        let leases = cluster.leases(CHECKPOINTS).list(&ListParams::default()).await?;
        Ok(match leases.items.first() {
            Some(lease) => Level::Reached(lease.name_any()),
            None => Level::Below("none".to_owned()),
        })
    })
    .await?;
    let stranger = stage.world.server.kubectl_of(OUTSIDER)?.clone();
    let lease = |namespace: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "forged", "namespace": namespace},
            "spec": {"holderIdentity": "forged", "leaseDurationSeconds": 3600},
        })
    };
    for namespace in [TRANSACTIONS, RECORDS, CHECKPOINTS] {
        let created = stranger.create(&[lease(namespace)]).await;
        expect_refused(created, "windlass-labels-store")?;
    }
    let held = ["lease", held.as_str(), "--namespace", CHECKPOINTS];
    let patch = r#"--patch={"spec":{"holderIdentity":"forged"}}"#;
    let patched = stranger.run(&[&["patch"], &held[..], &["--type=merge", patch]].concat()).await;
    expect_refused(patched, "windlass-labels-store")?;
    let deleted = stranger.run(&[&["delete"], &held[..]].concat()).await;
    expect_refused(deleted, "windlass-labels-store")?;
    stranger.create(&[lease("default")]).await?;
    Ok(())
}

async fn processor_changes_labels_and_nothing_else_of_a_node(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.add("modest", &BTreeMap::new()).await?;
    let processor = stage.world.server.kubectl_of(stage.world.account(Role::Process))?.clone();
    let patch = async |patch: serde_json::Value| {
        let patch = format!("--patch={patch}");
        processor.run(&["patch", "node", "modest", "--type=merge", &patch]).await
    };
    let refused = [
        json!({"spec": {"unschedulable": true}}),
        json!({"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}),
        json!({"metadata": {"annotations": {"example.com/other": "x"}}}),
        json!({"metadata": {"finalizers": ["example.com/stuck"]}}),
    ];
    for change in refused {
        expect_refused(patch(change).await, "windlass-labels-node")?;
    }
    patch(json!({"metadata": {
        "labels": {"rack": "r7"}, "annotations": {"labels.windlass.dev/restored": "1"},
    }}))
    .await?;
    expect_refused(processor.run(&["delete", "node", "modest"]).await, "cannot delete")
}

/// A kubelet may label its own Node, the marker included: it can keep its labels from coming back,
/// but what is stored stays.
async fn kubelet_that_forges_the_marker_replaces_no_record(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    let stored = labels(&[("rack", "r7"), ("node-restriction.kubernetes.io/pool", "secure")]);
    cluster.remember(KUBELET_NODE, &stored).await?;
    stage.run_watcher().await?;
    let kubelet = stage.world.server.kubectl_of(&format!("system:node:{KUBELET_NODE}"))?.clone();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": KUBELET_NODE, "labels": {"labels_restored": "77", "rack": "forged"},
    }});
    kubelet.create(&[node]).await?;
    let restricted =
        r#"--patch={"metadata":{"labels":{"node-restriction.kubernetes.io/pool":"x"}}}"#;
    let patched = kubelet.run(&["patch", "node", KUBELET_NODE, "--type=merge", restricted]).await;
    expect_refused(patched, "not allowed to modify labels")?;
    cluster.remove(KUBELET_NODE).await?;
    stage.run_both().await?;
    cluster.wait_settled(KUBELET_NODE).await?;
    cluster.wait_stored(KUBELET_NODE, &stored).await?;
    cluster.add(KUBELET_NODE, &BTreeMap::new()).await?;
    cluster.wait_restored(KUBELET_NODE, &stored).await
}

/// Each account loses the right to write somewhere while it has something to write, and gets it back.
/// No node comes or goes after that.
async fn rights_that_come_back_make_replicas_ready_again(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.add("patient", &BTreeMap::new()).await?;
    cluster.wait_checkpointed("patient", &BTreeMap::new()).await?;
    let watcher = withdraw(stage, Role::Watch, CHECKPOINTS).await?;
    cluster.edit("patient", &[("rack", Some("r7"))]).await?;
    wait_readiness(&stage.watchers[0], false, "[-]saving").await?;
    give_back(stage, &watcher).await?;
    wait_readiness(&stage.watchers[0], true, "[+]saving").await?;
    let processor = withdraw(stage, Role::Process, RECORDS).await?;
    cluster.remove("patient").await?;
    wait_readiness(&stage.processors[0], false, "[-]work").await?;
    give_back(stage, &processor).await?;
    wait_readiness(&stage.processors[0], true, "[+]work").await
}

/// Takes an account's rights in a namespace away, and returns what gives them back.
async fn withdraw(stage: &Stage, role: Role, namespace: &str) -> Result<String> {
    let account = stage.world.account(role).rsplit(':').next().unwrap_or_default().to_owned();
    let binding = ["rolebinding", &account, "--namespace", namespace];
    let kubectl = stage.world.server.kubectl();
    let saved = kubectl.run(&[&["get"], &binding[..], &["--output=json"]].concat()).await?;
    kubectl.run(&[&["delete"], &binding[..]].concat()).await?;
    without_version(&saved)
}

async fn give_back(stage: &Stage, binding: &str) -> Result<()> {
    let kubectl = stage.world.server.kubectl();
    kubectl.run_with_input(&["create", "--filename=-"], binding.as_bytes()).await.map(drop)
}

async fn wait_readiness(replica: &Replica, is_ready: bool, check: &str) -> Result<()> {
    let what = format!("a replica to say {check} and be ready: {is_ready}");
    wait_for(&what, READINESS_WAIT, async || {
        Ok(match replica.readiness().await? {
            (ready, text) if ready == is_ready && text.contains(check) => Level::Reached(()),
            (_, text) => Level::Below(text),
        })
    })
    .await
}

fn expect_refused(outcome: Result<String>, by: &str) -> Result<()> {
    match outcome {
        Ok(text) => anyhow::bail!("was allowed: {text}"),
        Err(error) => {
            ensure!(error.to_string().contains(by), "refused, but not by {by}: {error:#}");
            Ok(())
        }
    }
}
