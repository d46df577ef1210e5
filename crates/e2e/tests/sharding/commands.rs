//! The commands a person types, on a live cluster: what is there, why, and what would be.

use anyhow::{Context, Result, ensure};
use e2e::sharding::Puppet;
use serde_json::{Value, json};

use crate::stage::{Stage, cases};

cases! {
    beside: [
        status_explain_and_simulate_tell_what_is_and_would_be,
        questions_without_an_answer_say_so,
        metrics_and_health_are_served,
    ],
    alone: [],
}

const OBJECTS: usize = 12;

async fn said(stage: &Stage, arguments: &[&str]) -> Result<String> {
    let output = stage.world.command(&[&["sharder"], arguments].concat()).await?;
    ensure!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).context("commands print text")
}

async fn json_of(stage: &Stage, arguments: &[&str]) -> Result<Value> {
    let text = said(stage, &[arguments, &["--output=json"]].concat()).await?;
    serde_json::from_str(&text).with_context(|| format!("{arguments:?} prints JSON"))
}

async fn status_explain_and_simulate_tell_what_is_and_would_be(stage: &Stage) -> Result<()> {
    let arena = stage.arena("asked", &json!({})).await?;
    arena.populate("site", OBJECTS).await?;
    let _a = Puppet::join(&stage.world, &arena, "a-0").await?;
    let _b = Puppet::join(&stage.world, &arena, "b-0").await?;
    let owners = arena.wait_spread(&["a-0", "b-0"]).await?;
    arena.wait_reason("Ready", "InstancesReady").await?;

    let status = json_of(stage, &["status", "asked"]).await?;
    let ring = &status["rings"][0];
    ensure!(ring["ring"] == "asked" && !status["sharder"]["holder"].is_null(), "{status}");
    let members = ring["members"].as_array().context("members are a list")?;
    let ids: Vec<_> = members.iter().filter_map(|it| it["id"].as_str()).collect();
    ensure!(ids == ["a-0", "b-0"], "{status}");
    ensure!(members.iter().all(|it| it["state"] == "ready" && it["slots"] == 512), "{status}");
    let table = said(stage, &["status", "asked"]).await?;
    ensure!(table.contains("leads, renewed") && table.contains("a-0"), "{table}");

    let (name, owner) = owners.iter().next().context("there are objects")?;
    let object = format!("secret/{name}");
    let explained = json_of(stage, &["explain", &object, "-n", "asked"]).await?;
    let text = explained.to_string();
    ensure!(text.contains(&format!("asked/{name}")) && text.contains(owner.as_str()), "{text}");
    let words = said(stage, &["explain", &object, "-n", "asked"]).await?;
    ensure!(words.contains(&format!("belongs to   {owner}")), "{words}");
    ensure!(words.contains(&format!("label        {owner} (ready)")), "{words}");

    let joined = json_of(stage, &["simulate", "asked", "--join", "c-0"]).await?;
    let moves = joined["moves"].as_array().context("moves are a list")?;
    ensure!(!moves.is_empty() && moves.iter().all(|it| it["to"] == "c-0"), "{joined}");
    let words = said(stage, &["simulate", "asked", "--leave", "a-0"]).await?;
    ensure!(words.contains("max/mean") && words.contains("writes"), "{words}");
    ensure!(arena.wait_spread(&["a-0", "b-0"]).await? == owners, "a simulation moved something");
    arena.judge(&stage.world).await?;
    arena.close().await
}

async fn questions_without_an_answer_say_so(stage: &Stage) -> Result<()> {
    for (arguments, code, words) in [
        (&["sharder", "status", "nowhere"][..], 1, "nowhere"),
        (&["sharder", "explain", "secret/nothing", "-n", "nowhere"], 1, "hint: "),
        (&["sharder", "explain", "nonsense"], 2, "KIND/NAME"),
        (&["sharder", "simulate", "nowhere", "--join", "a"], 1, "nowhere"),
        (&["sharder", "simulate", "nowhere", "--join", "a:many"], 2, "--join"),
    ] {
        let output = stage.world.command(arguments).await?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(code), "{arguments:?}: {output:?}");
        ensure!(told.contains(words), "{arguments:?}: {told}");
    }
    Ok(())
}

/// Under the names that the documentation has.
async fn metrics_and_health_are_served(stage: &Stage) -> Result<()> {
    let arena = stage.arena("counted", &json!({})).await?;
    arena.populate("site", OBJECTS).await?;
    let _a = Puppet::join(&stage.world, &arena, "a-0").await?;
    arena.wait_spread(&["a-0"]).await?;
    let _b = Puppet::join(&stage.world, &arena, "b-0").await?;
    arena.wait_spread(&["a-0", "b-0"]).await?;
    let sharder = &stage.sharders[0];
    for name in ["assignments_total", "moves_total", "drains_total", "drain_seconds_count"] {
        let value = sharder.metric(&format!("windlass_sharding_{name}")).await?;
        ensure!(value > 0.0, "{name} is {value}");
    }
    let page = sharder.metrics().await?;
    for name in METRICS {
        let line = format!("# TYPE windlass_sharding_{name} ");
        ensure!(page.contains(&line), "no {name} in\n{page}");
    }
    let (is_ready, words) = sharder.readiness().await?;
    ensure!(is_ready && words.contains("watches"), "{words}");
    arena.judge(&stage.world).await?;
    arena.close().await
}

/// Without what the text format adds to counters.
const METRICS: [&str; 13] = [
    "assignments",
    "moves",
    "drains",
    "forced_moves",
    "drain_seconds",
    "unassigned",
    "unassigned_seconds",
    "instances",
    "objects",
    "imbalance_ratio",
    "table_epoch",
    "pass_seconds",
    "queue_depth",
];
