//! The commands a person types, on a live cluster.

use std::collections::BTreeMap;
use std::fs;
use std::process::Output;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::assets::Asset;
use e2e::labels::{Role, TRANSACTIONS, labels};
use e2e::process::{Process, Program};
use e2e::wait::{Level, wait_for};
use e2e::{http, ports};
use kube::ResourceExt;
use serde_json::Value;

use crate::seed::{data, transaction};
use crate::stage::{Stage, cases, gold};

/// How long a marker may take to be gone.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a replica that was killed in an earlier case holds the Lease of those that look after
/// everything.
const RESYNC_LEASE: Duration = Duration::from_secs(60);

/// What is shipped for kustomize.
const KUSTOMIZATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/kubernetes/labels");

cases! {
    list_and_show_say_what_is_kept,
    diff_and_restore_by_hand,
    history_and_restore_from_the_past,
    forget_needs_an_empty_queue,
    what_is_forgotten_stays_forgotten,
    export_and_import_round_trip,
    dry_run_processor_writes_nothing,
    dry_run_watcher_writes_nothing,
    system_labels_stored_is_the_seeds_pure_rule,
    poison_is_set_aside_and_said,
    run_does_both,
    up_keeps_the_labels_of_a_cluster,
    kustomization_is_applied,
    events_tell_what_was_stored_and_restored,
    metrics_tell_the_size_of_every_store,
    uninstall_waits_for_watchers_and_takes_the_marks_off,
}

async fn json(stage: &Stage, arguments: &[&str]) -> Result<Value> {
    let output = stage.world.command(&[arguments, &["--output=json"]].concat()).await?;
    ensure!(output.status.success(), "{arguments:?}: {output:?}");
    serde_json::from_slice(&output.stdout).context("the command prints JSON")
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

async fn list_and_show_say_what_is_kept(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("listed", &gold()).await?;
    let list = json(stage, &["list"]).await?;
    let entry = list.as_array().and_then(|all| all.iter().find(|entry| entry["node"] == "listed"));
    let entry = entry.with_context(|| format!("not listed: {list}"))?;
    ensure!(entry["isLive"] == false && entry["labels"] == 2, "{entry}");
    let table = stage.world.command(&["list"]).await?;
    ensure!(String::from_utf8_lossy(&table.stdout).contains("listed"), "{table:?}");
    let show = json(stage, &["show", "listed"]).await?;
    ensure!(show["record"]["labels"]["team/tier"] == "gold", "{show}");
    let unknown = stage.world.command(&["show", "nobody"]).await?;
    ensure!(unknown.status.code() == Some(1), "{unknown:?}");
    Ok(())
}

async fn diff_and_restore_by_hand(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("by-hand", &gold()).await?;
    cluster.add("by-hand", &BTreeMap::new()).await?;
    cluster.wait_restored("by-hand", &gold()).await?;
    cluster.wait_settled("by-hand").await?;
    let same = stage.world.command(&["diff", "by-hand"]).await?;
    ensure!(same.status.code() == Some(0), "{same:?}");
    cluster.edit("by-hand", &[("rack", Some("r9"))]).await?;
    let differs = stage.world.command(&["diff", "by-hand"]).await?;
    ensure!(differs.status.code() == Some(1), "{differs:?}");
    ensure!(String::from_utf8_lossy(&differs.stdout).contains("rack"), "{differs:?}");
    let dry = stage.world.command(&["restore", "by-hand", "--dry-run"]).await?;
    ensure!(dry.status.success() && cluster.labels("by-hand").await?["rack"] == "r9", "{dry:?}");
    let restored = stage.world.command(&["restore", "by-hand"]).await?;
    ensure!(restored.status.success(), "{restored:?}");
    ensure!(cluster.labels("by-hand").await? == gold());
    Ok(())
}

async fn history_and_restore_from_the_past(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    let first = cluster.remember("past", &gold()).await?;
    cluster.add("past", &BTreeMap::new()).await?;
    cluster.wait_restored("past", &gold()).await?;
    cluster.edit("past", &[("rack", Some("r9"))]).await?;
    cluster.remove("past").await?;
    let newer = labels(&[("team/tier", "gold"), ("rack", "r9")]);
    cluster.wait_stored("past", &newer).await?;
    let history = json(stage, &["history", "past"]).await?;
    let snapshots = history["snapshots"].as_array().context("history has snapshots")?;
    ensure!(snapshots.len() == 2, "{history}");
    cluster.add("past", &BTreeMap::new()).await?;
    cluster.wait_restored("past", &newer).await?;
    cluster.wait_settled("past").await?;
    let version = data(&first, "labels_restored")?;
    let restored = stage.world.command(&["restore", "past", "--from", &version]).await?;
    ensure!(restored.status.success(), "{restored:?}");
    ensure!(cluster.labels("past").await? == gold());
    Ok(())
}

async fn forget_needs_an_empty_queue(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("forgotten", &gold()).await?;
    stage.run_watcher().await?;
    cluster.add("forgotten", &BTreeMap::new()).await?;
    cluster.wait_queued("forgotten", 1).await?;
    let refused = stage.world.command(&["forget", "forgotten"]).await?;
    ensure!(refused.status.code() == Some(1) && words(&refused).contains("queue"), "{refused:?}");
    ensure!(cluster.record("forgotten").await?.is_some());
    let forced = stage.world.command(&["forget", "forgotten", "--force"]).await?;
    ensure!(forced.status.success(), "{forced:?}");
    ensure!(cluster.record("forgotten").await?.is_none());
    stage.run_both().await?;
    cluster.wait_settled("forgotten").await?;
    ensure!(cluster.labels("forgotten").await?.is_empty(), "restored from nothing");
    Ok(())
}

/// A watcher that started after the deletion knows of it from a checkpoint alone. When the node
/// returns, it would tell the end once more, and the labels that were forgotten would come back.
async fn what_is_forgotten_stays_forgotten(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    let node = "afresh";
    cluster.add(node, &gold()).await?;
    cluster.wait_checkpointed(node, &gold()).await?;
    cluster.remove(node).await?;
    cluster.wait_stored(node, &gold()).await?;
    cluster.wait_settled(node).await?;
    stage.run(0, 1).await?;
    stage.run_both().await?;
    let forgotten = json(stage, &["forget", node]).await?;
    ensure!(forgotten["labels"] == 2 && forgotten["checkpoints"] == 1, "{forgotten}");
    cluster.add(node, &BTreeMap::new()).await?;
    // It has one of its own only when nothing is left to tell of its predecessor.
    cluster.wait_checkpointed(node, &BTreeMap::new()).await?;
    cluster.wait_settled(node).await?;
    ensure!(cluster.labels(node).await?.is_empty(), "restored from nothing");
    ensure!(cluster.record(node).await?.is_none(), "stored again");
    Ok(())
}

/// What is imported is given to nobody who is there already, and to everybody who comes.
async fn export_and_import_round_trip(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    for node in ["moved-away", "moved-live"] {
        cluster.remember(node, &gold()).await?;
    }
    let exported = stage.world.command(&["export"]).await?;
    ensure!(exported.status.success(), "{exported:?}");
    let file = stage.world.scene.folder("export")?.join("records.yaml");
    fs::write(&file, &exported.stdout).context("keep the export")?;
    for node in ["moved-away", "moved-live"] {
        ensure!(stage.world.command(&["forget", node]).await?.status.success());
    }
    cluster.add("moved-live", &labels(&[("own", "label")])).await?;
    cluster.wait_settled("moved-live").await?;
    let imported = stage.world.command(&["import", &file.display().to_string()]).await?;
    ensure!(imported.status.success(), "{imported:?}");
    cluster.add("moved-away", &BTreeMap::new()).await?;
    cluster.wait_restored("moved-away", &gold()).await?;
    ensure!(cluster.labels("moved-live").await? == labels(&[("own", "label")]));
    Ok(())
}

async fn dry_run_processor_writes_nothing(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_watcher().await?;
    cluster.add("rehearsed", &gold()).await?;
    cluster.remove("rehearsed").await?;
    cluster.wait_queued("rehearsed", 2).await?;
    let rehearsal = stage.world.replica_with(Role::Process, &["--dry-run"]).await?;
    wait_for("the rehearsal to say what it would do", PATIENCE, async || {
        let decided = rehearsal.metric("windlass_labels_processed_total").await?;
        Ok(if decided >= 1.0 { Level::Reached(()) } else { Level::Below(format!("{decided}")) })
    })
    .await?;
    ensure!(cluster.transactions("rehearsed").await?.len() == 2);
    ensure!(cluster.record("rehearsed").await?.is_none());
    rehearsal.stop().await?;
    stage.run_both().await?;
    cluster.wait_stored("rehearsed", &gold()).await?;
    Ok(())
}

/// Everything that would be written is said, and nothing is: no transaction, checkpoint, position or
/// Lease.
async fn dry_run_watcher_writes_nothing(stage: &mut Stage) -> Result<()> {
    stage.run(0, 0).await?;
    let cluster = stage.cluster();
    let user = stage.world.account(Role::Watch).to_owned();
    let before = stage.world.audit.requests()?.len();
    let rehearsal = stage.world.replica_with(Role::Watch, &["--dry-run"]).await?;
    cluster.add("imagined", &gold()).await?;
    cluster.remove("imagined").await?;
    wait_for("the rehearsal to say what it would post", PATIENCE, async || {
        let said = rehearsal.metric("windlass_labels_transactions_created_total").await?;
        Ok(if said >= 2.0 { Level::Reached(()) } else { Level::Below(format!("{said}")) })
    })
    .await?;
    rehearsal.stop().await?;
    let requests = stage.world.audit.requests()?;
    let written = requests[before..].iter().find(|request| {
        let reads = ["get", "list", "watch"].contains(&request.verb.as_str());
        request.user == user && !reads && request.resource != "selfsubjectaccessreviews"
    });
    ensure!(written.is_none(), "the rehearsal wrote: {written:?}");
    ensure!(cluster.transactions("imagined").await?.is_empty());
    Ok(())
}

async fn system_labels_stored_is_the_seeds_pure_rule(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    let zone = "topology.kubernetes.io/zone";
    let stored = labels(&[(zone, "zone-a"), ("kubernetes.io/arch", "arm64")]);
    cluster.remember("pure", &stored).await?;
    stage.run_watcher().await?;
    cluster.add("pure", &labels(&[(zone, "zone-b"), ("kubernetes.io/arch", "amd64")])).await?;
    let pure = stage.world.replica_with(Role::Process, &["--system-labels=stored"]).await?;
    cluster.wait_restored("pure", &stored).await?;
    pure.stop().await
}

/// What cannot be read stays, with its reason on it; what comes after it is worked off.
async fn poison_is_set_aside_and_said(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    let uid = "55555555-5555-4555-8555-555555555555";
    let mut poison = transaction("poisoned", "7", uid, Some(&[("rack", "r7")]));
    let broken = BTreeMap::from([
        ("type".to_owned(), "deleted".to_owned()),
        ("snapshot.json".to_owned(), "{not json".to_owned()),
    ]);
    poison.data = Some(broken);
    cluster.post(TRANSACTIONS, &poison).await?;
    cluster.post(TRANSACTIONS, &transaction("poisoned", "8", uid, Some(&[("rack", "r8")]))).await?;
    cluster.wait_stored("poisoned", &labels(&[("rack", "r8")])).await?;
    let left = wait_for("all but the poison to be worked off", PATIENCE, async || {
        let mut queued = cluster.transactions("poisoned").await?;
        Ok(match (queued.len(), queued.pop()) {
            (1, Some(left)) => Level::Reached(left),
            (count, _) => Level::Below(format!("{count} transactions")),
        })
    })
    .await?;
    let reason = left.labels().get("labels.windlass.dev/quarantined");
    ensure!(reason.is_some(), "not marked: {:?}", left.metadata);
    let list = json(stage, &["list"]).await?;
    let is_told = list.as_array().is_some_and(|all| {
        all.iter().any(|entry| entry["node"] == "poisoned" && entry["quarantined"] == 1)
    });
    ensure!(is_told, "{list}");
    let show = stage.world.command(&["show", "poisoned"]).await?;
    let name = format!("(ConfigMap {})", left.name_any());
    ensure!(String::from_utf8_lossy(&show.stdout).contains(&name), "{show:?}");
    Ok(())
}

/// Watcher and processor in one process, as somebody with the rights of both.
async fn run_does_both(stage: &mut Stage) -> Result<()> {
    stage.run(0, 0).await?;
    let cluster = stage.cluster();
    let both = stage.world.replica(Role::Both).await?;
    cluster.remember("one-process", &gold()).await?;
    cluster.add("one-process", &BTreeMap::new()).await?;
    cluster.wait_restored("one-process", &gold()).await?;
    both.stop().await
}

/// Beside a store, with nothing configured but the cluster.
async fn up_keeps_the_labels_of_a_cluster(stage: &mut Stage) -> Result<()> {
    stage.run(0, 0).await?;
    let (cluster, scene) = (stage.cluster(), stage.world.scene.clone());
    let kubeconfig = stage.world.server.kubectl().kubeconfig().display().to_string();
    let data = scene.folder("up")?;
    let [store, labels, sharder, autoscaler] = ports::free()?;
    let mut up = Process::start(&Program {
        name: "up".to_owned(),
        path: scene.program(Asset::Windlass)?,
        arguments: vec![
            "up".to_owned(),
            format!("--data-dir={}", data.display()),
            format!("--socket={}", data.join("node.sock").display()),
            format!("--listen=127.0.0.1:{store}"),
            format!("--kubeconfig={kubeconfig}"),
            format!("--labels-listen=127.0.0.1:{labels}"),
            format!("--sharder-listen=127.0.0.1:{sharder}"),
            format!("--autoscaler-listen=127.0.0.1:{autoscaler}"),
        ],
        environment: Vec::new(),
        log_folder: scene.folder("logs")?,
    })?;
    wait_for("`up` to be ready for the cluster", PATIENCE, async || {
        up.ensure_alive()?;
        Ok(match http::get(labels, "/readyz?verbose").await {
            Ok(answer) if answer.status == 200 => Level::Reached(()),
            other => Level::Below(format!("{other:?}")),
        })
    })
    .await?;
    cluster.remember("beside-store", &gold()).await?;
    cluster.add("beside-store", &BTreeMap::new()).await?;
    cluster.wait_restored("beside-store", &gold()).await?;
    let status = up.stop().await?;
    ensure!(status.success(), "`up` ended with {status}");
    Ok(())
}

/// Over what `manifests` printed, which it holds too: nothing is new, and nothing is refused.
async fn kustomization_is_applied(stage: &mut Stage) -> Result<()> {
    let applied =
        stage.world.server.kubectl().run(&["apply", "--kustomize", KUSTOMIZATION]).await?;
    ensure!(applied.contains("deployment.apps/windlass-labels-watcher"), "{applied}");
    let created: Vec<&str> = applied.lines().filter(|line| line.ends_with(" created")).collect();
    ensure!(created.is_empty(), "not in what `manifests` printed: {created:?}");
    Ok(())
}

async fn events_tell_what_was_stored_and_restored(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("told", &gold()).await?;
    cluster.add("told", &BTreeMap::new()).await?;
    cluster.wait_restored("told", &gold()).await?;
    wait_for("both Events", PATIENCE, async || {
        let told = cluster.told_of("told").await?;
        let is_all = ["LabelsStored", "LabelsRestored"]
            .iter()
            .all(|reason| told.iter().filter(|told| told == reason).count() == 1);
        Ok(if is_all { Level::Reached(()) } else { Level::Below(format!("{told:?}")) })
    })
    .await
}

/// One process that looks at all three: something stays in the queue, something is stored, and a
/// node lives.
async fn metrics_tell_the_size_of_every_store(stage: &mut Stage) -> Result<()> {
    stage.run(0, 0).await?;
    let cluster = stage.cluster();
    let uid = "66666666-6666-4666-8666-666666666666";
    let mut poison = transaction("unreadable", "7", uid, None);
    poison.data = Some(BTreeMap::from([("type".to_owned(), "nonsense".to_owned())]));
    cluster.post(TRANSACTIONS, &poison).await?;
    let first = stage.world.replica(Role::Both).await?;
    cluster.remember("measured", &gold()).await?;
    cluster.add("measured", &BTreeMap::new()).await?;
    cluster.wait_checkpointed("measured", &gold()).await?;
    first.stop().await?;

    // Records are looked at when a processor begins to look after everything, and seldom then.
    let second = stage.world.replica(Role::Both).await?;
    for store in ["transactions", "records", "checkpoints"] {
        let metric = format!("windlass_labels_store_bytes{{store=\"{store}\"}}");
        wait_for(&format!("the size of the {store}"), RESYNC_LEASE + PATIENCE, async || {
            let bytes = second.metric(&metric).await?;
            Ok(if bytes > 0.0 { Level::Reached(()) } else { Level::Below(format!("{bytes}")) })
        })
        .await?;
    }
    second.stop().await
}

async fn uninstall_waits_for_watchers_and_takes_the_marks_off(stage: &mut Stage) -> Result<()> {
    let cluster = stage.run_both().await?;
    cluster.remember("released", &gold()).await?;
    cluster.add("released", &BTreeMap::new()).await?;
    cluster.wait_restored("released", &gold()).await?;
    cluster.wait_settled("released").await?;
    let refused = stage.world.command(&["uninstall"]).await?;
    ensure!(refused.status.code() == Some(1) && words(&refused).contains("watcher"), "{refused:?}");
    stage.run(0, 0).await?;
    let removed = stage.world.command(&["uninstall", "--purge"]).await?;
    ensure!(removed.status.success(), "{removed:?}");
    ensure!(cluster.marker("released").await?.is_none(), "the mark is still there");
    ensure!(cluster.labels("released").await? == gold(), "labels were taken off too");
    ensure!(cluster.record("released").await?.is_none(), "the record was not purged");
    Ok(())
}
