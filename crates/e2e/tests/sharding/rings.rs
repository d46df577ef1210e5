//! Rings that ask for what cannot be had, objects of every sort, and rings that go; with instances
//! that the test plays.

use anyhow::{Context, Result, ensure};
use e2e::sharding::arena::{LEASE, SETTLE_WAIT};
use e2e::sharding::{Arena, Persona, Puppet, Role};
use e2e::wait::{Level, pass, wait_for};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::stage::{Stage, cases};

cases! {
    beside: [
        without_instances_objects_wait,
        a_resource_that_is_not_there_stops_only_itself,
        of_two_rings_for_one_resource_the_younger_stands_back,
        objects_without_namespace_and_with_generated_names_are_spread,
        nobody_but_the_sharder_labels,
        a_namespace_that_leaves_is_stripped,
        a_deleted_ring_leaves_no_label_and_no_fence,
        a_deleted_ring_leaves_its_labels_if_told_so,
        controllers_of_the_go_project_run_unchanged,
    ],
    alone: [
        a_right_that_is_missing_is_named_and_stops_only_its_resource,
        the_manifests_of_the_example_are_all_it_takes,
    ],
}

const OBJECTS: usize = 12;

async fn join(stage: &Stage, arena: &Arena, id: &str) -> Result<Puppet> {
    Puppet::join(&stage.world, arena, id).await
}

async fn finish(stage: &Stage, arena: &Arena) -> Result<()> {
    arena.judge(&stage.world).await?;
    arena.close().await
}

async fn without_instances_objects_wait(stage: &Stage) -> Result<()> {
    let arena = stage.arena("deserted", &json!({})).await?;
    arena.populate("site", OBJECTS).await?;
    arena.wait_reason("Ready", "NoInstances").await?;
    let standings = arena.standings().await?;
    ensure!(standings.values().all(|standing| standing.shard.is_none()), "{standings:?}");
    let _a = join(stage, &arena, "a-0").await?;
    arena.wait_spread(&["a-0"]).await?;
    finish(stage, &arena).await
}

async fn a_resource_that_is_not_there_stops_only_itself(stage: &Stage) -> Result<()> {
    let resources = json!({"resources": [
        {"resource": "secrets"}, {"group": "example.com", "resource": "widgets"},
    ]});
    let arena = stage.arena("missing", &resources).await?;
    arena.populate("site", OBJECTS).await?;
    let _a = join(stage, &arena, "a-0").await?;
    let message = arena.wait_reason("Degraded", "ResourceMissing").await?;
    ensure!(message.contains("widgets.example.com"), "{message}");
    arena.wait_spread(&["a-0"]).await?;
    finish(stage, &arena).await
}

async fn a_right_that_is_missing_is_named_and_stops_only_its_resource(
    stage: &mut Stage,
) -> Result<()> {
    let resources = json!({"resources": [
        {"resource": "secrets"}, {"group": "apps", "resource": "deployments"},
    ]});
    let arena = stage.arena("powerless", &resources).await?;
    let kubectl = stage.world.server.kubectl();
    // What the ring adds to the sharder's rights, without one kind.
    let role = "windlass-sharder-ring-powerless";
    let patch = |rules: &Value| format!("--patch={}", json!({"rules": rules}));
    let all = patch(&kubectl.json(&["get", "clusterrole", role]).await?["rules"]);
    let some = patch(&json!([{
        "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch", "patch"],
    }]));
    kubectl.run(&["patch", "clusterrole", role, "--type=merge", &some]).await?;
    stage.world.gather_rights().await?;
    // A sharder that starts now never had the right.
    stage.run(0).await?;
    stage.run(1).await?;
    arena.populate("site", OBJECTS).await?;
    let _a = join(stage, &arena, "a-0").await?;
    let message = arena.wait_reason("Degraded", "PermissionDenied").await?;
    for verb in ["get", "list", "watch", "patch"] {
        let right = format!("{verb} deployments.apps");
        ensure!(message.contains(&right), "{right} is not in: {message}");
    }
    arena.wait_spread(&["a-0"]).await?;
    // A Ring does not go while nobody can see what of it is left.
    let kubectl = stage.world.server.kubectl();
    kubectl.run(&["patch", "clusterrole", role, "--type=merge", &all]).await?;
    stage.world.gather_rights().await?;
    finish(stage, &arena).await
}

/// As its README says. Alone: its ring selects every namespace.
async fn the_manifests_of_the_example_are_all_it_takes(stage: &mut Stage) -> Result<()> {
    let kubectl = stage.world.server.kubectl();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/checksums/manifests");
    kubectl.run(&["apply", "--filename", folder]).await?;
    let rights = stage.world.command(&["sharder", "manifests", "checksums"]).await?;
    ensure!(rights.status.success(), "{}", String::from_utf8_lossy(&rights.stderr));
    kubectl.run_with_input(&["apply", "--filename=-"], &rights.stdout).await?;
    stage.world.gather_rights().await?;
    for (condition, status) in [("Ready", "False"), ("Degraded", "False")] {
        let told = format!("--for=condition={condition}={status}");
        kubectl.run(&["wait", "ring/checksums", &told, "--timeout=60s"]).await?;
    }
    let account = "--as=system:serviceaccount:checksums:checksums";
    for right in [
        &["create", "leases.coordination.k8s.io", "--namespace=checksums"][..],
        &["get", "statefulsets.apps", "--namespace=checksums"],
        &["get", "rings.windlass.dev"],
        &["patch", "secrets", "--all-namespaces"],
        &["create", "configmaps", "--all-namespaces"],
    ] {
        let may = kubectl.run(&[&["auth", "can-i", account][..], right].concat()).await;
        may.with_context(|| format!("the instances may not {right:?}"))?;
    }
    kubectl.run(&["delete", "--filename", folder, "--wait=false"]).await?;
    kubectl.run(&["wait", "ring/checksums", "--for=delete", "--timeout=60s"]).await?;
    Ok(())
}

async fn of_two_rings_for_one_resource_the_younger_stands_back(stage: &Stage) -> Result<()> {
    let elder = stage.arena("elder-ring", &json!({})).await?;
    elder.populate("site", OBJECTS).await?;
    let selector = json!({"namespaceSelector": {"matchLabels": {"arena": "elder-ring"}}});
    let younger = stage.arena("younger-ring", &selector).await?;
    let _a = join(stage, &elder, "a-0").await?;
    let _b = join(stage, &younger, "b-0").await?;
    let message = younger.wait_reason("Degraded", "ResourceConflict").await?;
    ensure!(message.contains("elder-ring") && message.contains("secrets"), "{message}");
    elder.wait_spread(&["a-0"]).await?;
    let label = younger.names.shard_label();
    let secrets = elder.secrets().list(&kube::api::ListParams::default()).await?;
    ensure!(secrets.iter().all(|secret| !secret.labels().contains_key(&label)));
    younger.close().await?;
    finish(stage, &elder).await
}

async fn objects_without_namespace_and_with_generated_names_are_spread(
    stage: &Stage,
) -> Result<()> {
    let kubectl = stage.world.server.kubectl();
    kubectl.create(&[cluster_kind()]).await?;
    let defined = ["wait", "--for=condition=Established", "customresourcedefinition"];
    kubectl.run(&[&defined[..], &["islands.example.com"]].concat()).await?;
    let resources = json!({"resources": [
        {"resource": "secrets"}, {"group": "example.com", "resource": "islands"},
    ]});
    let arena = stage.arena("sorts", &resources).await?;
    let _a = join(stage, &arena, "a-0").await?;
    let islands = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Island"));
    let islands: Api<DynamicObject> = Api::all_with(arena.client.clone(), &islands);
    let island = json!({
        "apiVersion": "example.com/v1", "kind": "Island", "metadata": {"generateName": "isle-"},
    });
    islands.create(&PostParams::default(), &serde_json::from_value(island)?).await?;
    let secret: Secret = serde_json::from_value(json!({"metadata": {"generateName": "site-"}}))?;
    arena.secrets().create(&PostParams::default(), &secret).await?;
    arena.wait_spread(&["a-0"]).await?;
    let label = arena.names.shard_label();
    wait_for("the island to be somebody's", SETTLE_WAIT, async || {
        let island = islands.list(&kube::api::ListParams::default()).await?.items.remove(0);
        Ok(match island.labels().get(&label) {
            Some(owner) if owner == "a-0" => Level::Reached(()),
            other => Level::Below(format!("{other:?}")),
        })
    })
    .await?;
    finish(stage, &arena).await
}

fn cluster_kind() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "islands.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"kind": "Island", "plural": "islands", "singular": "island"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    })
}

/// The fence the sharder installs, against users and against an instance that does not own.
async fn nobody_but_the_sharder_labels(stage: &Stage) -> Result<()> {
    let arena = stage.arena("relabel", &json!({})).await?;
    arena.populate("site", OBJECTS).await?;
    let _a = join(stage, &arena, "a-0").await?;
    arena.wait_spread(&["a-0"]).await?;
    let label = arena.names.shard_label();
    let user = stage.world.client_as(&Persona::user("somebody")).await?;
    let secrets: Api<Secret> = Api::namespaced(user, &arena.name);
    let theft = Patch::Merge(json!({"metadata": {"labels": {label.as_str(): "b-0"}}}));
    let name = "site-0000";
    let refusal = wait_for("the fence to refuse", SETTLE_WAIT, async || {
        let params = PatchParams { dry_run: true, ..PatchParams::default() };
        Ok(match secrets.patch(name, &params, &theft).await {
            Ok(_) => Level::Below("it passed".to_owned()),
            Err(error) => Level::Reached(error.to_string()),
        })
    })
    .await?;
    ensure!(refusal.contains("only the sharder"), "{refusal}");
    let restored: Secret = serde_json::from_value(json!({
        "metadata": {"name": "restored", "labels": {label: "a-0"}},
    }))?;
    let refusal = secrets.create(&PostParams::default(), &restored).await;
    let refusal = refusal.err().context("a labelled object was created")?.to_string();
    ensure!(refusal.contains("strip them"), "{refusal}");
    let standing = arena.standings().await?.remove(name).context("it is there")?;
    ensure!(standing.shard.as_deref() == Some("a-0"), "{standing:?}");
    finish(stage, &arena).await
}

async fn a_namespace_that_leaves_is_stripped(stage: &Stage) -> Result<()> {
    let arena = stage.arena("leaving", &json!({})).await?;
    arena.populate("site", OBJECTS).await?;
    let _a = join(stage, &arena, "a-0").await?;
    arena.wait_spread(&["a-0"]).await?;
    let namespaces: Api<Namespace> = Api::all(arena.client.clone());
    let patch = Patch::Merge(json!({"metadata": {"labels": {"arena": null}}}));
    namespaces.patch("leaving", &PatchParams::default(), &patch).await?;
    wait_stripped(&arena).await?;
    finish(stage, &arena).await
}

async fn a_deleted_ring_leaves_no_label_and_no_fence(stage: &Stage) -> Result<()> {
    let arena = stage.arena("stripped", &json!({})).await?;
    arena.populate("site", OBJECTS).await?;
    let _a = join(stage, &arena, "a-0").await?;
    arena.wait_spread(&["a-0"]).await?;
    let policies = ["get", "validatingadmissionpolicy", "--output=name"];
    let before = stage.world.server.kubectl().run(&policies).await?;
    ensure!(before.contains("windlass-fence-stripped"), "{before}");
    finish(stage, &arena).await?;
    wait_stripped(&arena).await?;
    let after = stage.world.server.kubectl().run(&policies).await?;
    ensure!(!after.contains("windlass-fence-stripped"), "{after}");
    Ok(())
}

async fn a_deleted_ring_leaves_its_labels_if_told_so(stage: &Stage) -> Result<()> {
    let arena = stage.arena("kept", &json!({"deletionPolicy": "KeepLabels"})).await?;
    arena.populate("site", OBJECTS).await?;
    let _a = join(stage, &arena, "a-0").await?;
    arena.wait_spread(&["a-0"]).await?;
    finish(stage, &arena).await?;
    arena.wait_spread(&["a-0"]).await?;
    Ok(())
}

/// Leases and labels as that project's controllers write them, without annotations.
async fn controllers_of_the_go_project_run_unchanged(stage: &Stage) -> Result<()> {
    let preset = json!({
        "names": {"preset": "Timebertt"}, "partitioning": {"algorithm": "Ring"},
    });
    let arena = stage.arena("timebertt", &preset).await?;
    arena.populate("site", OBJECTS).await?;
    let a = Puppet::join_as(&stage.world, &arena, "a-0", &Role::brief()).await?;
    arena.wait_spread(&["a-0"]).await?;
    let _b = join(stage, &arena, "b-0").await?;
    arena.wait_spread(&["a-0", "b-0"]).await?;
    arena.wait_state("b-0", "ready", SETTLE_WAIT).await?;
    let lease = arena.leases().get("b-0").await?;
    let state = "alpha.sharding.timebertt.dev/state";
    ensure!(lease.labels().contains_key(state), "{:?}", lease.labels());
    ensure!(arena.names.shard_label() == "shard.alpha.sharding.timebertt.dev/timebertt");
    a.fall_silent();
    arena.wait_state("a-0", "expired", SETTLE_WAIT).await?;
    arena.wait_spread(&["b-0"]).await?;
    let lease = arena.leases().get("a-0").await?;
    let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
    ensure!(["", "shardlease-controller"].contains(&holder.as_str()), "{holder}");
    pass(LEASE).await?;
    finish(stage, &arena).await
}

async fn wait_stripped(arena: &Arena) -> Result<()> {
    wait_for("the labels to be gone", SETTLE_WAIT, async || {
        let standings = arena.standings().await?;
        let labelled = standings.values().filter(|it| it.shard.is_some() || it.is_draining).count();
        Ok(if labelled == 0 { Level::Reached(()) } else { Level::Below(format!("{labelled}")) })
    })
    .await
}
