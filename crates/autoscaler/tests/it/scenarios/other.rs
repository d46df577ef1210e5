//! What is not understood is not guessed; who does not lead does not call.

use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, Volume};

use crate::sim::{Sim, mins};

#[test]
fn sc9_2_a_constraint_that_is_not_understood_brings_no_node() {
    let mut sim = Sim::new("groups: [{id: a, max: 10}]");
    sim.deploy("web", 1, "1").spec.volumes = Some(vec![Volume {
        name: "data".to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: "data".to_owned(),
            read_only: None,
        }),
        ..Volume::default()
    }]);
    sim.run_for(mins(5));
    assert!(sim.calls.is_empty(), "{}", sim.story());
    let words = "pod didn't trigger scale-up: unsupported constraint missing volume claim data";
    assert!(sim.has_event(words), "{}", sim.story());
}

#[test]
fn sc9_3_who_cannot_save_does_not_call() {
    let mut sim = Sim::new("groups: [{id: a, min: 1, max: 10, target: 3}]");
    sim.run_for(mins(1));
    sim.is_fenced = true;
    sim.deploy("web", 20, "3");
    sim.run_for(mins(20));
    let provider = |what: &str| what.starts_with("increase") || what.starts_with("delete");
    assert!(!sim.calls.iter().any(|noted| provider(&noted.what)), "{}", sim.story());
}

#[test]
fn groups_alike_share_an_increase() {
    let mut sim = Sim::new(
        "groups: [{id: a, max: 10, target: 1, zones: [z1]}, {id: b, max: 10, zones: [z2]}, {id: c, max: 10, zones: [z3]}]",
    )
    .with_config(|it| {
        it.scale_up.balances_similar_groups = true;
        it.scale_up.balancing_ignored_labels =
            ["simcloud.windlass.dev/group".to_owned()].into();
    });
    sim.deploy("web", 12, "2");
    sim.run_for(mins(3));
    let targets = ["a", "b", "c"].map(|group| sim.target(group));
    assert_eq!(targets, [2, 2, 2], "{}", sim.story());
    assert_eq!(sim.running("web"), 12);
}

/// A provider that does not answer for one group is waited for once; then the other has its turn.
#[test]
fn a_group_that_does_not_answer_holds_up_one_call() {
    let mut sim = Sim::new(
        "groups: [{id: a, max: 5, target: 3}, {id: b, max: 5, target: 1}]\nfaults: [{fault: timeout-after-effect, group: a, method: NodeGroupDeleteNodes}]",
    );
    let at = sim.run_until(mins(15), |sim| !sim.calls("delete").is_empty());
    let deleted = sim.calls("delete");
    let groups: Vec<_> = deleted.iter().map(|it| it.what.rsplit_once('-').unwrap().0).collect();
    assert!(deleted.iter().all(|noted| noted.at == at));
    assert_eq!(groups, ["delete a", "delete b"], "{}", sim.story());
    sim.run_until(mins(5), |sim| sim.kube.nodes.is_empty());
    assert_eq!(sim.calls("delete").len(), 4, "{}", sim.story());
}
