//! What the API server says to a Ring before any sharder sees it: each rule of the definition refuses
//! what it should, in words that help, and the defaults are those of the core.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use sharding::core::spec::{self, Spec};

use crate::stage::{Stage, cases};

cases! {
    beside: [
        bad_rings_are_refused_in_words_that_help,
        what_cannot_change_is_refused,
        defaults_are_those_of_the_core,
    ],
    alone: [],
}

/// Pointer, value put there, and what the refusal says.
type Mistake = (&'static str, Value, &'static str);

async fn bad_rings_are_refused_in_words_that_help(stage: &Stage) -> Result<()> {
    for (pointer, value, words) in mistakes() {
        let mut ring = good("mistaken");
        set(&mut ring, pointer, value.clone());
        let refusal = stage.world.server.kubectl().create(std::slice::from_ref(&ring)).await;
        let refusal = refusal.err().with_context(|| format!("{pointer} = {value} passed"))?;
        let refusal = format!("{refusal:#}");
        ensure!(refusal.contains(words), "{pointer} = {value}: {refusal}");
        ensure!(is_refused_by_core(&ring), "the core has no objection to {pointer} = {value}");
    }
    Ok(())
}

fn mistakes() -> Vec<Mistake> {
    let sites = json!({"group": "example.com", "resource": "sites"});
    let many = (0..33).map(|number| json!({"resource": format!("kind{number}")}));
    vec![
        ("/spec/resources", many.collect(), "at most 32 items"),
        ("/metadata/name", json!("a.b"), "RFC 1123 label"),
        ("/spec/resources", json!([]), "at least 1 items"),
        ("/spec/resources", json!([sites, sites]), "Duplicate value"),
        ("/spec/resources/0/controlled", json!([sites]), "either a main one or controlled"),
        ("/spec/handover", json!({"graceSeconds": 30}), "less than drainTimeoutSeconds"),
        ("/spec/handover", json!({"concurrentMoves": 0}), "greater than or equal to 1"),
        ("/spec/partitioning", json!({"slots": 1000}), "Unsupported value"),
        ("/spec/partitioning", json!({"slots": 32}), "Unsupported value"),
        ("/spec/partitioning", json!({"maxMovePercent": 101}), "less than or equal to 100"),
        ("/spec/names", json!({"prefix": "Not_a_domain"}), "is a DNS subdomain"),
        ("/spec/names", json!({"preset": "Timebertt"}), "needs partitioning.algorithm Ring"),
        ("/spec/instances", json!({}), "or say fence: Off"),
        ("/spec/instances/identity", json!("Username"), "needs usernamePrefix"),
        ("/spec/instances/serviceAccounts", json!(["sites"]), "write namespace/name"),
    ]
}

async fn what_cannot_change_is_refused(stage: &Stage) -> Result<()> {
    let kubectl = stage.world.server.kubectl();
    kubectl.create(&[good("settled")]).await?;
    let changes = [
        (
            json!({"partitioning": {"algorithm": "Ring"}}),
            "partitioning.algorithm cannot be changed",
        ),
        (json!({"partitioning": {"slots": 2048}}), "partitioning.slots cannot be changed"),
        (json!({"names": {"prefix": "example.com"}}), "names cannot be changed"),
    ];
    for (change, words) in changes {
        let patch = format!("--patch={}", json!({"spec": change}));
        let refusal = kubectl.run(&["patch", "ring", "settled", "--type=merge", &patch]).await;
        let refusal = refusal.err().with_context(|| format!("{change} passed"))?;
        ensure!(format!("{refusal:#}").contains(words), "{change}: {refusal:#}");
    }
    kubectl.run(&["delete", "ring", "settled"]).await?;
    Ok(())
}

async fn defaults_are_those_of_the_core(stage: &Stage) -> Result<()> {
    let kubectl = stage.world.server.kubectl();
    let sent = good("plain");
    kubectl.create(std::slice::from_ref(&sent)).await?;
    let stored = kubectl.json(&["get", "ring", "plain"]).await?;
    let read = |ring: &Value| serde_json::from_value::<Spec>(ring["spec"].clone());
    let (sent, stored) = (read(&sent)?, read(&stored)?);
    ensure!(sent == stored, "the core has {sent:?}, the server {stored:?}");
    kubectl.run(&["delete", "ring", "plain"]).await?;
    Ok(())
}

/// A Ring that says no more than it must. Nobody serves its kind: it stands in no other ring's way, and
/// goes when it is deleted. One of a kind that the sharder may not look at would stay, as nobody could
/// tell what is left of it.
fn good(name: &str) -> Value {
    json!({
        "apiVersion": "windlass.dev/v1alpha1",
        "kind": "Ring",
        "metadata": {"name": name},
        "spec": {
            "resources": [{"group": "example.com", "resource": "sites"}],
            "instances": {"serviceAccounts": ["shop/sites"]},
        },
    })
}

fn set(ring: &mut Value, pointer: &str, value: Value) {
    let (parent, field) = pointer.rsplit_once('/').expect("a pointer has a slash");
    let parent = ring.pointer_mut(parent).expect("the parent of what is set exists");
    parent[field] = value;
}

fn is_refused_by_core(ring: &Value) -> bool {
    let name = ring["metadata"]["name"].as_str().unwrap_or_default();
    let spec = serde_json::from_value::<Spec>(ring["spec"].clone());
    spec.map_or(true, |spec| !spec::check(name, &spec).is_empty())
}
