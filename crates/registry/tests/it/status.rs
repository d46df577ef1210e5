//! The published status.

use expect_test::expect;
use registry::status::AutoscalerStatus;
use registry::{Registry, Step};

use crate::story::{Story, config};

#[test]
fn before_anything_is_observed_it_initializes() {
    let story = Story::new();
    let status = story.registry.status(story.now);
    assert_eq!(status.autoscaler_status, AutoscalerStatus::Initializing);
    assert_eq!((status.cluster_wide, status.node_groups.len()), (None, 0));
}

#[test]
fn counts_classes_under_upstream_s_names() {
    let mut story = Story::new();
    story.observe("g1 T=9: 2 ready, starting, leaving, unready, ready lacks=gpu, instance");
    let cluster = story.registry.status(story.now).cluster_wide.unwrap();
    let counts = serde_json::to_string_pretty(&cluster.health.node_counts).unwrap();
    expect![[r#"
        {
          "registered": {
            "total": 6,
            "ready": 2,
            "notStarted": 1,
            "suspended": 0,
            "beingDeleted": 1,
            "unready": {
              "total": 2,
              "resourceUnready": 1
            }
          },
          "longUnregistered": 0,
          "unregistered": 1
        }"#]]
    .assert_eq(&counts);
}

#[test]
fn tells_of_each_group() {
    let mut story = Story::new();
    story.observe("g1 T=1 max=12: ready");
    story.increased("g1", 1, Step::Failed { message: "no".to_owned() });
    let status = story.registry.status(story.now);
    let mut group = serde_json::to_value(&status.node_groups[0]).unwrap();
    group["health"].as_object_mut().unwrap().remove("nodeCounts");
    expect![[r#"
        {
          "health": {
            "cloudProviderTarget": 1,
            "lastProbeTime": "2026-03-01T10:00:00Z",
            "lastTransitionTime": "2026-03-01T10:00:00Z",
            "maxSize": 12,
            "minSize": 0,
            "status": "Healthy"
          },
          "name": "g1",
          "scaleDown": {
            "candidates": 0,
            "lastProbeTime": "2026-03-01T10:00:00Z",
            "lastTransitionTime": "2026-03-01T10:00:00Z",
            "status": "NoCandidates"
          },
          "scaleUp": {
            "backoffInfo": {
              "errorCode": "apiCallError",
              "errorMessage": "no"
            },
            "lastProbeTime": "2026-03-01T10:00:00Z",
            "lastTransitionTime": "2026-03-01T10:00:00Z",
            "status": "Backoff"
          }
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&group).unwrap());
}

#[test]
fn a_halt_is_its_message() {
    let mut story = Story::new();
    story.observe("g1 T=2: 2 unready");
    let message = story.registry.status(story.now).message.unwrap();
    assert!(message.starts_with("2 of 2 autoscaled nodes are unready"), "{message}");
}

#[test]
fn long_messages_are_cut() {
    let mut story = Story::new();
    story.observe("g1 T=0");
    story.increased("g1", 1, Step::Failed { message: "ü".repeat(600) });
    let status = story.registry.status(story.now);
    let message = &status.node_groups[0].scale_up.backoff_info.as_ref().unwrap().error_message;
    assert_eq!(message.chars().count(), 500);
    assert!(message.ends_with("ü<truncated>"));
}

#[test]
fn times_of_changes_outlive_a_restart() {
    let mut story = Story::new();
    story.observe("g1 T=1: ready");
    story.at("1m").observe("g1 T=1: ready");
    let mut registry = Registry::restore(config(), &story.registry.save(), story.now).unwrap();
    let restarted = registry.status(story.now);
    assert_eq!(restarted.autoscaler_status, AutoscalerStatus::Initializing);
    std::mem::swap(&mut registry, &mut story.registry);
    story.at("2m").observe("g1 T=1: ready");
    let cluster = story.registry.status(story.now).cluster_wide.unwrap();
    assert_eq!(cluster.health.last_transition_time, crate::scene::beginning());
    assert_eq!(cluster.health.last_probe_time, story.now);
}
