//! Which nodes go, and to every other one, why it stays: a table for each reason.

use std::time::Duration;

use autoscaler::core::{Account, Action, Cooldown, Effect, Reason};
use registry::RemovalReason;

use crate::scene::Scene;

/// A busy node, and `n` with what is written of it and its pods.
fn with_node(node: &str, pods: &str) -> Scene {
    Scene::new(&format!(
        "{{groups: [{{id: a, min: 1, new: {{}}}}], nodes: [{{name: busy, group: a}}, {{name: n, group: a{node}}}], pods: [{{name: x, node: busy, cpu: 3, app: x}}{pods}]}}"
    ))
}

/// Why `n` stays, after one look.
fn against(node: &str, pods: &str) -> String {
    kept(&with_node(node, pods).run(), "n")
}

fn kept(account: &Account, node: &str) -> String {
    account.kept.get(node).map(ToString::to_string).unwrap_or_else(|| "goes".to_owned())
}

#[test]
fn the_first_reason_that_holds_is_told() {
    let pod = ", {name: p, node: n, cpu: 1, app: p}";
    let unready = ", unready: 5";
    let table = [
        ("", "", "NotUnneededLongEnough: goes at 08:10:00"),
        ("", pod, "NotUnneededLongEnough: goes at 08:10:00"),
        (unready, pod, "NotUnreadyLongEnough: goes at 08:15:00"),
        (", age: 5, unready: 5", "", "NotStarted"),
        (", suspended: true", "", "Suspended"),
        (
            ", annotations: {cluster-autoscaler.kubernetes.io/scale-down-disabled: 'true'}",
            "",
            "ScaleDownDisabledAnnotation",
        ),
        ("", ", {name: p, node: n, cpu: 2, app: p}", "NotUnderutilized: 50.0% of 50.0%"),
        ("", ", {name: p, node: n, memory: 6Gi, app: p}", "NotUnderutilized: 75.0% of 50.0%"),
        (
            "",
            ", {name: p, node: n, cpu: 1500m, app: p}",
            "NoPlaceToMovePods: no node takes default/p",
        ),
    ];
    for (node, pods, expected) in table {
        assert_eq!(against(node, pods), expected, "{node} {pods}");
    }
}

#[test]
fn pods_that_block() {
    let table = [
        ("{name: p, node: n, cpu: 1}", "NotReplicated"),
        ("{name: p, node: n, cpu: 1, app: gone}", "ControllerNotFound"),
        ("{name: p, node: n, cpu: 1, app: p, namespace: kube-system}", "UnmovableKubeSystemPod"),
        (
            "{name: p, node: n, cpu: 1, app: p, annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: 'false'}}",
            "NotSafeToEvictAnnotation",
        ),
        (
            "{name: p, node: n, cpu: 1, app: p, spec: {containers: [], volumes: [{name: v, emptyDir: {}}]}}",
            "LocalStorageRequested",
        ),
    ];
    for (pod, reason) in table {
        let mut scene = with_node("", &format!(", {pod}"));
        scene.words.orphaned.push("gone".to_owned());
        let told = kept(&scene.run(), "n");
        let rest = told.strip_prefix(&format!("BlockedByPod: {reason}: "));
        assert!(rest.is_some_and(|pod| pod.ends_with("/p")), "{pod}: {told}");
    }
    let mut few = with_node("", ", {name: p, node: n, cpu: 1, app: p}");
    few.config.scale_down.drain_rules.replicas_min = 4;
    assert_eq!(kept(&few.run(), "n"), "BlockedByPod: MinReplicasReached: default/p");
    let mut spent = with_node("", ", {name: p, node: n, cpu: 1, app: p}");
    spent.words.budgets.insert("p".to_owned(), 0);
    assert_eq!(kept(&spent.run(), "n"), "BlockedByPod: NotEnoughPdb: budget default/p");
}

#[test]
fn pods_that_do_not_block() {
    let table = [
        "{name: p, node: n, cpu: 1, app: p, kind: DaemonSet}",
        "{name: p, node: n, cpu: 1, annotations: {kubernetes.io/config.mirror: x}}",
        "{name: p, node: n, cpu: 1, priority: -11}",
        "{name: p, node: n, cpu: 9, phase: Failed}",
        "{name: p, node: n, cpu: 1, annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: 'true'}}",
    ];
    for pod in table {
        let told = against("", &format!(", {pod}"));
        assert!(told.starts_with("NotUnneededLongEnough"), "{pod}: {told}");
    }
}

#[test]
fn nodes_of_nobody_and_nodes_that_leave_are_left_alone() {
    let mut scene = Scene::new(
        "{groups: [{id: a}], nodes: [{name: other}, {name: tainted, group: a, taints: [{key: ToBeDeletedByClusterAutoscaler, value: '1', effect: NoSchedule}]}]}",
    );
    let account = scene.run();
    assert_eq!(kept(&account, "other"), "NotAutoscaled");
    assert_eq!(kept(&account, "tainted"), "CurrentlyBeingDeleted");
    assert!(matches!(&scene.actions[0], Action::Lift(lift) if lift.node.0 == "tainted"));
}

#[test]
fn groups_that_are_empty_or_full_are_left_alone() {
    let mut scene = Scene::new(
        "{groups: [{id: a, zero_or_max: true, target: 3}], nodes: [{name: n, group: a}, {name: u, group: a, unready: 30}]}",
    );
    let account = scene.run_for(Duration::from_mins(30));
    for node in ["n", "u"] {
        assert_eq!(kept(&account, node), "NotAutoscaled: zero-or-max groups are left alone");
    }
    assert!(scene.calls().is_empty() && scene.memory.drains.is_empty(), "{:?}", scene.actions);
}

#[test]
fn a_node_that_could_not_go_is_not_looked_at_again_at_once() {
    let mut scene = with_node("", ", {name: p, node: n, cpu: 1}");
    scene.run();
    scene.words.pods.pop();
    scene.now += Duration::from_secs(10);
    let told = kept(&scene.run(), "n");
    assert_eq!(
        told,
        "RecentlyUnremovable: BlockedByPod: NotReplicated: default/p; looked at again at 08:05:00"
    );
    scene.now += Duration::from_mins(5);
    assert!(kept(&scene.run(), "n").starts_with("NotUnneededLongEnough"));
}

#[test]
fn a_node_goes_once_its_time_has_come() {
    let mut scene = with_node("", ", {name: p, node: n, cpu: 1, app: p}");
    let account = scene.run_for(Duration::from_mins(10));
    let order = &account.removals[0];
    assert_eq!((order.node.0.as_str(), order.is_empty), ("n", false));
    assert_eq!(order.reason, RemovalReason::Unneeded);
    assert!(scene.memory.drains.has(&"n".into()));
    let next = scene.run();
    assert_eq!((kept(&next, "n").as_str(), next.removals.len()), ("CurrentlyBeingDeleted", 0));
}

#[test]
fn need_in_between_starts_the_time_anew() {
    let mut scene = with_node("", "");
    scene.run_for(Duration::from_mins(9));
    let busy = serde_saphyr::from_str("{name: p, node: n, cpu: 3, app: p}").unwrap();
    scene.words.pods.push(busy);
    scene.run();
    scene.words.pods.pop();
    assert!(scene.run_for(Duration::from_mins(9)).removals.is_empty());
    assert_eq!(scene.run_for(Duration::from_mins(1)).removals.len(), 1);
}

#[test]
fn cooldowns_are_kept() {
    let due = Duration::from_mins(10);
    let mut scene = with_node("", "");
    scene.run_for(due - Duration::from_secs(10));
    let pending = serde_saphyr::from_str("{name: p, cpu: 4, app: p}").unwrap();
    scene.words.pods.push(pending);
    // The pod would fit on the idle node: it is in use, then, and nothing grows.
    scene.run();
    scene.words.pods.pop();
    scene.words.pods.push(
        serde_saphyr::from_str(
            "{name: p, cpu: 4, app: p, spec: {containers: [], nodeSelector: {disk: fast}}}",
        )
        .unwrap(),
    );
    scene
        .words
        .groups
        .push(serde_saphyr::from_str("{id: b, new: {}, labels: {disk: fast}}").unwrap());
    let account = scene.run();
    assert!(account.scale_up.is_some());
    let until = scene.now + Duration::from_mins(10);
    assert_eq!(account.cooldown, Some(Cooldown::AfterAdd { until }));
}

#[test]
fn minima_are_kept() {
    let mut group = with_node("", "");
    group.words.groups[0].min = 2;
    assert_eq!(
        kept(&group.run_for(Duration::from_mins(10)), "n"),
        "NodeGroupMinSizeReached: min 2"
    );
    let mut total = with_node("", "");
    total.config.limits.resources.insert("cpu".to_owned(), 5..=100);
    let told = kept(&total.run_for(Duration::from_mins(10)), "n");
    assert_eq!(told, "MinimalResourceLimitExceeded: cpu");
}

#[test]
fn a_disrupted_zone_loses_no_node() {
    let mut scene = Scene::new(
        "{groups: [{id: a}, {id: b}], nodes: [{name: n, group: a, labels: {topology.kubernetes.io/zone: z1}}, {name: u1, group: b, unready: 5, labels: {topology.kubernetes.io/zone: z1}}, {name: u2, group: b, unready: 5, labels: {topology.kubernetes.io/zone: z1}}, {name: u3, group: b, unready: 5, labels: {topology.kubernetes.io/zone: z1}}, {name: m, group: a, labels: {topology.kubernetes.io/zone: z2}}]}",
    );
    let account = scene.run_for(Duration::from_mins(21));
    for node in ["n", "u1", "u2", "u3"] {
        assert_eq!(account.kept[node].reason, Reason::ZoneDisrupted, "{node}");
    }
    assert!(scene.memory.drains.has(&"m".into()), "the other zone is as ever");
}

#[test]
fn so_many_at_once_and_no_more() {
    let nodes: Vec<_> = (0..20).map(|at| format!("{{name: n{at:02}, group: a}}")).collect();
    let pods: Vec<_> =
        (0..4).map(|at| format!("{{name: p{at}, node: n{at:02}, cpu: 1, app: p}}")).collect();
    let yaml = format!(
        "{{groups: [{{id: a, max: 30}}], nodes: [{}], pods: [{}]}}",
        nodes.join(", "),
        pods.join(", ")
    );
    let mut scene = Scene::new(&yaml);
    let account = scene.run_for(Duration::from_mins(10));
    let empty = account.removals.iter().filter(|order| order.is_empty).count();
    assert_eq!((account.removals.len(), empty), (10, 10), "empty ones first");
    assert!(scene.run().removals.is_empty(), "ten are under way");
    let mut scene = Scene::new(&yaml).with(|it| it.scale_down.parallelism_max = 30);
    let account = scene.run_for(Duration::from_mins(10));
    let drained = account.removals.iter().filter(|order| !order.is_empty).count();
    assert_eq!(drained, 1, "{:?}", account.removals);
}

#[test]
fn marks_are_set_and_taken_away_a_few_at_a_time() {
    let nodes: Vec<_> = (0..12).map(|at| format!("{{name: n{at:02}, group: a}}")).collect();
    let marked = "{name: busy, group: a, taints: [{key: DeletionCandidateOfClusterAutoscaler, value: '1', effect: PreferNoSchedule}]}";
    let yaml = format!(
        "{{groups: [{{id: a, max: 30}}], nodes: [{marked}, {}], pods: [{{name: x, node: busy, cpu: 3, app: x}}]}}",
        nodes.join(", ")
    );
    let mut scene = Scene::new(&yaml);
    scene.run();
    assert_eq!(scene.actions.len(), 10);
    assert_eq!(scene.actions[0], Action::Unmark { node: "busy".into() });
    let value = scene.now.as_second();
    assert_eq!(scene.actions[1], Action::Mark { node: "n00".into(), value });
}

#[test]
fn unready_nodes_go_by_their_own_time_though_in_use() {
    let mut scene = with_node(", unready: 15", ", {name: p, node: n, cpu: 3, app: p}");
    let account = scene.run_for(Duration::from_mins(5));
    assert_eq!(account.removals.len(), 1, "{:?}", account.kept);
    assert_eq!(account.removals[0].reason, RemovalReason::Unready);
}

#[test]
fn a_group_whose_decrease_was_refused_is_left_alone_for_a_while() {
    let mut scene =
        Scene::new("{groups: [{id: a, target: 5, min: 1}], nodes: [{name: n, group: a}]}");
    scene.effect = Effect::Failed("no".to_owned());
    scene.run();
    let end = scene.now + Duration::from_mins(15);
    while scene.now < end {
        scene.now += Duration::from_secs(10);
        scene.run();
    }
    assert_eq!(scene.calls().len(), 1, "{:?}", scene.actions);
    scene.now += Duration::from_secs(10);
    scene.run();
    assert!(scene.calls().is_empty(), "{:?}", scene.actions);
    scene.now += Duration::from_secs(20);
    scene.run();
    assert_eq!(scene.calls().len(), 1);
}
