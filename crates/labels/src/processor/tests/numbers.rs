//! What can be scraped, and what is alerted on.

use std::collections::BTreeSet;

use super::*;
use crate::{
    metrics::{Locked, PREFIX, Posted, Store, Watched},
    processor::census::Census,
};

/// All that is promised, but for the requests, which `kubekit` counts and tests.
const PROMISED: [&str; 14] = [
    "checkpoint_lag_seconds",
    "conflicts_total",
    "lock_total",
    "missed_deletes_recovered_total",
    "nodes_restored_ratio",
    "oldest_pending_seconds",
    "processed_total",
    "quarantined",
    "restore_seconds",
    "store_bytes",
    "transactions_created_total",
    "transactions_pending",
    "watch_gap_seconds",
    "watch_restarts_total",
];

const RULES: &str = include_str!("../../../../../deploy/kubernetes/labels/prometheus-rules.yaml");

const GUIDE: &str = include_str!("../../../../../docs/labels.md");

/// What `kubekit` counts of every service.
const SHARED: [&str; 2] = ["api_requests_total", "events_total"];

/// The names of what a replica tells after everything has happened once.
fn scraped() -> BTreeSet<String> {
    let scene = Scene::new(&Server::default(), "p");
    let mut registry = Registry::with_prefix(PREFIX);
    let metrics = Metrics::new(&mut registry);
    metrics.on_posted("added", Posted::Created);
    metrics.on_missed_delete("gap");
    metrics.on_watch_restart(Watched::Nodes, "failed");
    metrics.on_processed("D1");
    metrics.on_lock(Locked::Acquired);
    metrics.set_nodes_restored_ratio(1.0);
    metrics.set_store_bytes(Store::Records, 1);
    registry.register_collector(Box::new(Census::new(Arc::new(scene.context))));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    names(&text)
}

/// Every word that begins as our names do.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let ours = words.filter_map(|word| word.strip_prefix(PREFIX)?.strip_prefix('_'));
    ours.map(ToOwned::to_owned).collect()
}

#[tokio::test]
async fn every_promised_number_is_told() {
    let scraped = scraped();
    let missing: Vec<_> = PROMISED.iter().filter(|name| !scraped.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?} of {scraped:?}");
}

#[test]
fn every_promised_number_is_in_the_guide() {
    let explained = names(GUIDE);
    let missing = PROMISED.iter().chain(&SHARED).filter(|name| !explained.contains(**name));
    assert_eq!(missing.collect::<Vec<_>>(), [&""; 0]);
}

/// Thresholds are read in the guide and acted on by Prometheus.
#[test]
fn alerts_are_the_ones_of_the_guide() {
    let is_alert = |line: &&str| line.starts_with("| `windlass_labels_");
    let section = GUIDE.split("## Health and metrics").nth(1).unwrap();
    let (alerts, _) = section.split_once("as rules of Prometheus").unwrap();
    let alerts: String = alerts.lines().filter(is_alert).collect();
    assert_eq!(names(&alerts), names(RULES));
}

#[tokio::test]
async fn alerts_are_about_what_is_told() {
    let (alerted, scraped) = (names(RULES), scraped());
    assert!(alerted.is_subset(&scraped), "{:?}", alerted.difference(&scraped));
    let wanted = ["checkpoint_lag_seconds", "oldest_pending_seconds", "quarantined"];
    let wanted = wanted.into_iter().chain(["watch_gap_seconds", "watch_restarts_total"]);
    let wanted = wanted.map(ToOwned::to_owned);
    assert_eq!(alerted, wanted.collect());
}

#[tokio::test]
async fn a_replica_that_never_looked_at_everything_tells_no_share() {
    let mut registry = Registry::with_prefix(PREFIX);
    let metrics = Metrics::new(&mut registry);
    let tells = |registry: &Registry| {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).unwrap();
        names(&text).contains("nodes_restored_ratio")
    };
    assert!(!tells(&registry));
    metrics.set_nodes_restored_ratio(0.5);
    assert!(tells(&registry));
    metrics.forget_resync();
    assert!(!tells(&registry));
}

/// Transactions that were set apart were counted under no row.
#[tokio::test(start_paused = true)]
async fn poison_is_a_row_too() {
    let all = [deleted("u1", "8", None, ""), deleted("u1", "10", None, "tier=gold")];
    for (transactions, rows) in [(&all[..1], 1), (&all[..], 2)] {
        let server = world(None, transactions);
        let mut poison = server.get("transaction 8").unwrap();
        poison["data"]["snapshot.json"] = json!("{");
        server.put("transaction 8", poison);
        let scene = Scene::new(&server, "p");
        scene.list();
        assert_eq!(scene.turn().await, TurnEnd::Done);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &scene.registry).unwrap();
        let counted: Vec<_> =
            text.lines().filter(|line| line.starts_with("processed_total")).collect();
        assert_eq!(counted.len(), rows, "{counted:?}");
        assert!(counted.contains(&r#"processed_total{row="poison"} 1"#), "{counted:?}");
    }
}
