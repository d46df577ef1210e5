//! What a restore does to each kind of key, and the patch that carries it.

use expect_test::{Expect, expect};
use labels::core::{
    change,
    command::Command,
    policy::{Class, Policy, PolicyRule, SystemLabels},
    settle::{Cause, settle},
};

use crate::scene::{Scene, check_settle, now};

#[track_caller]
fn check(text: &str, expected: &Expect) {
    check_settle(Cause::Added, text, expected);
}

/// Every built-in row, and what lies just beside it.
#[test]
fn every_key_has_its_class() {
    let keys = "
        failure-domain.beta.kubernetes.io/zone beta.kubernetes.io/instance-type
        topology.ebs.csi.aws.com/zone topology.gke.io/zone csi.example.com/node disk.csi.azure.com/zone
        topology.kubernetes.io/zone topology.kubernetes.io/region topology.kubernetes.io/rack
        kubernetes.io/os kubernetes.io/arch beta.kubernetes.io/os beta.kubernetes.io/arch
        kubernetes.io/hostname node.kubernetes.io/instance-type node.kubernetes.io/windows-build
        node.kubernetes.io/other beta.kubernetes.io/other kubernetes.io/other
        feature.node.kubernetes.io/cpu nvidia.com/gpu cloud.google.com/pool eks.amazonaws.com/pool
        kubernetes.azure.com/pool karpenter.sh/pool karpenter.k8s.aws/type node.cluster.x-k8s.io/name
        machineconfiguration.openshift.io/role
        node-role.kubernetes.io/worker node-restriction.kubernetes.io/a team/tier topology csi
        notnvidia.com/gpu topology/zone my.topology.io/zone";
    let policy = Policy::default();
    let mut shown = String::new();
    for class in [Class::Live, Class::PreferLive, Class::Stored] {
        let of_class = keys.split_whitespace().filter(|key| policy.class_of(key) == class);
        shown += &format!("{class}: {}\n", of_class.collect::<Vec<_>>().join(" "));
    }
    expect![[r#"
        live: failure-domain.beta.kubernetes.io/zone beta.kubernetes.io/instance-type topology.ebs.csi.aws.com/zone topology.gke.io/zone csi.example.com/node disk.csi.azure.com/zone
        prefer-live: topology.kubernetes.io/zone topology.kubernetes.io/region kubernetes.io/os kubernetes.io/arch beta.kubernetes.io/os beta.kubernetes.io/arch kubernetes.io/hostname node.kubernetes.io/instance-type node.kubernetes.io/windows-build feature.node.kubernetes.io/cpu nvidia.com/gpu cloud.google.com/pool eks.amazonaws.com/pool kubernetes.azure.com/pool karpenter.sh/pool karpenter.k8s.aws/type node.cluster.x-k8s.io/name machineconfiguration.openshift.io/role
        stored: topology.kubernetes.io/rack node.kubernetes.io/other beta.kubernetes.io/other kubernetes.io/other node-role.kubernetes.io/worker node-restriction.kubernetes.io/a team/tier topology csi notnvidia.com/gpu topology/zone my.topology.io/zone
    "#]].assert_eq(&shown);
}

#[test]
fn stored_keys_become_what_they_were() {
    check(
        "record rv=10 uid=u1 {a=1 b=2 c=3}\n live uid=u2 rv=20 {b=0 c=3 d=4}",
        &expect![[r#"
        S6
        patch u2@20 a=1 b=2 -d labels_restored=10 annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
}

#[test]
fn prefer_live_keys_are_only_added() {
    let record = "record rv=10 uid=u1 {kubernetes.io/os=linux topology.kubernetes.io/zone=a}";
    check(
        &format!("{record}\n live uid=u2 rv=20 {{topology.kubernetes.io/zone=b nvidia.com/gpu=1}}"),
        &expect![[r#"
            S6
            patch u2@20 kubernetes.io/os=linux labels_restored=10 annotation=10
            mark u2:10
            event LabelsRestored"#]],
    );
}

#[test]
fn live_keys_are_left_alone() {
    let record = "record rv=10 uid=u1 {topology.gke.io/zone=a csi.x/node=1}";
    check(
        &format!("{record}\n live uid=u2 rv=20 {{topology.gke.io/zone=b}}"),
        &expect![[r#"
        S6
        patch u2@20 labels_restored=10 annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
}

#[test]
fn one_switch_gives_the_pure_rule() {
    let scene = "record rv=10 uid=u1 {kubernetes.io/os=linux topology.gke.io/zone=a}
                 live uid=u2 rv=20 {kubernetes.io/os=windows nvidia.com/gpu=1}
                 policy system=stored";
    check(
        scene,
        &expect![[r#"
        S6
        patch u2@20 kubernetes.io/os=linux labels_restored=10 -nvidia.com/gpu topology.gke.io/zone=a annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
}

#[test]
fn merging_removes_and_overwrites_nothing() {
    let scene = "record rv=10 uid=u1 {a=1 b=2}
                 live uid=u2 rv=20 {b=live c=live}
                 policy merge";
    check(
        scene,
        &expect![[r#"
        S6
        patch u2@20 a=1 labels_restored=10 annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
    let scene = "record rv=10 uid=u1 given=u2:5 {a=new b=new}
                 past rv=5 uid=u1 {a=old c=old}
                 live uid=u2 rv=20 {a=old c=old}
                 policy merge";
    check(
        scene,
        &expect![[r#"
        S4
        patch u2@20 b=new labels_restored=10 annotation=10
        mark u2:10
        event LabelsAmended"#]],
    );
}

#[test]
fn amending_respects_the_classes() {
    let scene =
        "record rv=10 uid=u1 given=u2:5 {kubernetes.io/os=new kubernetes.io/arch=new csi.x/a=new}
                 past rv=5 uid=u1 {kubernetes.io/os=old nvidia.com/gpu=old csi.x/a=old}
                 live uid=u2 rv=20 {kubernetes.io/os=old nvidia.com/gpu=old csi.x/a=old}";
    check(
        scene,
        &expect![[r#"
        S4
        patch u2@20 kubernetes.io/arch=new labels_restored=10 annotation=10
        mark u2:10
        event LabelsAmended"#]],
    );
}

#[test]
fn rules_of_the_operator_come_first() {
    let scene = "record rv=10 uid=u1 {kubernetes.io/os=linux a/b=1}
                 live uid=u2 rv=20 {kubernetes.io/os=windows a/c=2}";
    check(
        &format!("{scene}\n policy rule=kubernetes.io/os=stored"),
        &expect![[r#"
        S6
        patch u2@20 a/b=1 -a/c kubernetes.io/os=linux labels_restored=10 annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
    check(
        &format!("{scene}\n policy rule=*=live"),
        &expect![[r#"
        S6
        patch u2@20 labels_restored=10 annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
    check(
        &format!("{scene}\n policy rule=a/*=prefer-live"),
        &expect![[r#"
        S6
        patch u2@20 a/b=1 labels_restored=10 annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
}

#[test]
fn restricted_keys_can_be_left_out() {
    let scene = "record rv=10 uid=u1 {node-restriction.kubernetes.io/a=1 x.node-restriction.kubernetes.io/b=2}
                 live uid=u2 rv=20 {node-restriction.kubernetes.io/c=3}";
    check(
        scene,
        &expect![[r#"
        S6
        patch u2@20 labels_restored=10 node-restriction.kubernetes.io/a=1 -node-restriction.kubernetes.io/c x.node-restriction.kubernetes.io/b=2 annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
    check(
        &format!("{scene}\n policy no-restriction"),
        &expect![[r#"
        S6
        patch u2@20 labels_restored=10 annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
}

/// The place that is not used is cleared: an earlier marker there would be believed.
#[test]
fn the_marker_goes_where_it_shall() {
    let scene = "record rv=10 uid=u1 {a=1}\n live uid=u2 rv=20 {a=1}";
    check(
        &format!("{scene}\n policy marker=label"),
        &expect![[r#"
        S6
        patch u2@20 labels_restored=10 -annotation
        mark u2:10
        event LabelsRestored"#]],
    );
    check(
        &format!("{scene}\n policy marker=annotation"),
        &expect![[r#"
        S6
        patch u2@20 -labels_restored annotation=10
        mark u2:10
        event LabelsRestored"#]],
    );
}

#[test]
fn a_version_too_long_for_a_label_is_only_annotated() {
    let fits = format!("record rv={} uid=u1 {{a=1}}\n live uid=u2 rv=20 {{a=1}}", "1".repeat(63));
    check(
        &fits,
        &expect![[r#"
        S6
        patch u2@20 labels_restored=111111111111111111111111111111111111111111111111111111111111111 annotation=111111111111111111111111111111111111111111111111111111111111111
        mark u2:111111111111111111111111111111111111111111111111111111111111111
        event LabelsRestored"#]],
    );
    let long = format!("record rv={} uid=u1 {{a=1}}\n live uid=u2 rv=20 {{a=1}}", "1".repeat(64));
    check(
        &long,
        &expect![[r#"
        S6
        patch u2@20 -labels_restored annotation=1111111111111111111111111111111111111111111111111111111111111111
        mark u2:1111111111111111111111111111111111111111111111111111111111111111
        event LabelsRestored"#]],
    );
    check(
        &format!("{long}\n policy marker=label"),
        &expect![[r#"
        S6
        patch u2@20 -labels_restored annotation=1111111111111111111111111111111111111111111111111111111111111111
        mark u2:1111111111111111111111111111111111111111111111111111111111111111
        event LabelsRestored"#]],
    );
}

#[test]
fn what_is_no_legal_label_is_left_out() {
    let scene = "record rv=10 uid=u1 {ok=1 bad!=1 value=bad! labels_restored=9}
                 live uid=u2 rv=20 {value=live}";
    check(
        scene,
        &expect![[r#"
        S6
        patch u2@20 labels_restored=10 ok=1 annotation=10
        mark u2:10
        event LabelsRestored
        event RestoreSkipped"#]],
    );
}

#[test]
fn the_patch_is_guarded_by_uid_and_version() {
    let scene =
        Scene::parse("record rv=4122 uid=u1 {team/tier=gold}\n live uid=u2 rv=5000 {gone=1}");
    let decision = settle(&scene.reading, Cause::Queue, &scene.policy, now());
    let Command::PatchNode(patch) = &decision.commands[0] else { panic!("{decision:?}") };
    expect![[r#"
        {
          "metadata": {
            "annotations": {
              "labels.windlass.dev/restored": "4122"
            },
            "labels": {
              "gone": null,
              "labels_restored": "4122",
              "team/tier": "gold"
            },
            "resourceVersion": "5000",
            "uid": "u2"
          }
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&patch.body()).unwrap());
}

#[test]
fn restoring_twice_changes_nothing() {
    let scene = Scene::parse(
        "record rv=10 uid=u1 {a=1 kubernetes.io/os=linux topology.gke.io/zone=a}
         live uid=u2 rv=20 {a=0 b=1 topology.gke.io/zone=b}",
    );
    let (record, live) = (scene.reading.record().unwrap(), scene.reading.live.as_ref().unwrap());
    let restored = change::restore(record.labels(), &live.labels, &scene.policy);
    let after = restored.applied_to(&live.labels);
    assert!(change::restore(record.labels(), &after, &scene.policy).is_empty());
}

#[test]
fn rules_are_written_as_pattern_and_class() {
    for text in ["a/b=live", "*=stored", "a*b*c=prefer-live"] {
        assert_eq!(text.parse::<PolicyRule>().unwrap().to_string(), text);
    }
    let error = |text: &str| text.parse::<PolicyRule>().unwrap_err().to_string();
    expect![[r#"
        "a/b" has no `=` between pattern and class
        the pattern before `=` is empty
        "both" is no class; there are stored, prefer-live and live"#]]
    .assert_eq(&["a/b", "=live", "a=both"].map(error).join("\n"));
}

#[test]
fn patterns_match_in_order() {
    let policy = |rule: &str| Policy {
        rules: vec![rule.parse().unwrap()],
        system_labels: SystemLabels::Stored,
        ..Policy::default()
    };
    let is_live =
        |pattern: &str, key: &str| policy(&format!("{pattern}=live")).class_of(key) == Class::Live;
    assert!(is_live("a*b*c", "abc") && is_live("a*b*c", "a-b-c") && is_live("a*b*c", "abbcc"));
    assert!(!is_live("a*b*c", "acb") && !is_live("a*b*c", "ab") && !is_live("a*a", "a"));
    assert!(is_live("*", "anything") && is_live("a", "a") && !is_live("a", "ab"));
}
