//! Which groups grow and for whom; to every pod and group that is refused, why.

use std::fmt::Write;
use std::time::Duration;

use autoscaler::core::{Account, Call, Effect, EventReason, GroupVerdict, PodVerdict, Subject};
use expect_test::{Expect, expect};
use fit::expand::{Expander, Priorities};
use registry::{Action, Outcome, Step};

use crate::scene::Scene;

/// What an iteration means for groups, pods and calls.
fn told(scene: &Scene, account: &Account) -> String {
    let mut told = String::new();
    for (group, verdict) in &account.groups {
        let words = match verdict {
            GroupVerdict::Unusable(why) => format!("refused: {why}"),
            GroupVerdict::NotNeeded => "not needed".to_owned(),
            GroupVerdict::Useless => "of no help".to_owned(),
            GroupVerdict::Offered(offer) => {
                format!("offers {} nodes for {} pods", offer.new_nodes, offer.pods)
            }
            GroupVerdict::Grows { by } => format!("grows by {by}"),
        };
        writeln!(told, "{group}: {words}").unwrap();
    }
    for (pod, verdict) in &account.pods {
        let words = match verdict {
            PodVerdict::Refused(refusals) => format!("{refusals:?}"),
            PodVerdict::Triggered { groups } => format!("brings nodes of {groups:?}"),
            other => format!("{other:?}"),
        };
        writeln!(told, "{pod}: {words}").unwrap();
    }
    for call in scene.calls() {
        if let Call::Increase { group, delta, target } = call {
            writeln!(told, "call: {group} {target} + {delta}").unwrap();
        }
    }
    told
}

fn check(yaml: &str, expected: Expect) {
    check_scene(Scene::new(yaml), expected);
}

fn check_scene(mut scene: Scene, expected: Expect) {
    let account = scene.run();
    expected.assert_eq(&told(&scene, &account));
}

#[test]
fn pods_that_fit_nowhere_bring_nodes() {
    check(
        "{groups: [{id: a, new: {}}], nodes: [{name: n, group: a}], pods: [{name: x, node: n, cpu: 3, app: x}, {name: p1, cpu: 2, app: p}, {name: p2, cpu: 2, app: p}, {name: p3, cpu: 2, app: p}, {name: small, cpu: 1, app: q}]}",
        expect![[r#"
            a: grows by 2
            default/p1: brings nodes of [GroupId("a")]
            default/p2: brings nodes of [GroupId("a")]
            default/p3: brings nodes of [GroupId("a")]
            default/small: FitsNode
            call: a 1 + 2
        "#]],
    );
}

#[test]
fn every_refusal_of_a_group() {
    check(
        "{groups: [{id: full, max: 0, new: {}}, {id: stale, new: {}, fault: true}, {id: bare}, {id: odd, new: {cpu: many}}, {id: whole, new: {}, zero_or_max: true}, {id: lacking, target: 3, new: {}}], pods: [{name: p, cpu: 2, app: p}]}",
        expect![[r#"
            bare: refused: no template
            full: refused: max node group size reached
            lacking: refused: not ready for scale-up
            odd: refused: no template: `many` is no number with a known suffix
            stale: refused: sizes unknown
            whole: refused: zero-or-max groups are not supported
            default/p: {GroupId("bare"): "no template", GroupId("full"): "max node group size reached", GroupId("lacking"): "not ready for scale-up", GroupId("odd"): "no template: `many` is no number with a known suffix", GroupId("stale"): "sizes unknown", GroupId("whole"): "zero-or-max groups are not supported"}
        "#]],
    );
}

/// What a provider tells of a group without nodes lacks the label that every kubelet gives its Node: pods that
/// keep apart were all promised one node, and pods that spread over nodes brought none at all.
#[test]
fn pods_that_part_by_node_bring_nodes_of_an_empty_group() {
    let apart = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: p}}}]}}";
    let spread = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: p}}}]";
    for (rule, nodes) in [(apart, 3), (spread, 1)] {
        let pod =
            |name| format!("{{name: {name}, cpu: 1, app: p, spec: {{containers: [], {rule}}}}}");
        let pods = ["p1", "p2", "p3"].map(pod).join(", ");
        let mut scene = Scene::new(&format!("{{groups: [{{id: a, new: {{}}}}], pods: [{pods}]}}"));
        let account = scene.run();
        let words = told(&scene, &account);
        assert!(words.starts_with(&format!("a: grows by {nodes}\n")), "{rule}: {words}");
    }
}

/// Templates are asked for when pods wait. Until then a group without nodes was said to be refused for
/// want of one.
#[test]
fn a_template_is_not_missed_while_no_pod_waits() {
    check(
        "{groups: [{id: bare}]}",
        expect![[r#"
            bare: not needed
        "#]],
    );
}

#[test]
fn every_refusal_of_a_pod() {
    check(
        "{groups: [{id: small, new: {}}, {id: apart, new: {cpu: 16}, taints: [{key: only, value: gpu, effect: NoSchedule}]}, {id: arm, new: {cpu: 16}, labels: {arch: arm}}], pods: [{name: large, cpu: 8, app: p, spec: {nodeSelector: {arch: amd}, containers: []}}, {name: port, cpu: 1, app: q, spec: {nodeSelector: {arch: riscv}, containers: []}}]}",
        expect![[r#"
            apart: of no help
            arm: of no help
            small: of no help
            default/large: {GroupId("apart"): "node has untolerated taint {only: gpu}", GroupId("arm"): "node does not match Pod's node affinity/selector", GroupId("small"): "node does not match Pod's node affinity/selector"}
            default/port: {GroupId("apart"): "node has untolerated taint {only: gpu}", GroupId("arm"): "node does not match Pod's node affinity/selector", GroupId("small"): "node does not match Pod's node affinity/selector"}
        "#]],
    );
}

#[test]
fn pods_that_do_not_count() {
    let yaml = "{groups: [{id: a, new: {}}], nodes: [{name: n, group: a}], pods: [{name: old, cpu: 1, app: p}, {name: young, cpu: 4, app: p, age: 0}, {name: patient, cpu: 4, app: p, age: 3, annotations: {cluster-autoscaler.kubernetes.io/pod-scale-up-delay: 5m}}, {name: cheap, cpu: 4, app: p, priority: -11}, {name: second, cpu: 4, app: p, nominated: n}, {name: claims, cpu: 4, app: p, spec: {containers: [], volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}]}";
    let scene = Scene::new(yaml).with(|it| it.scale_up.new_pod_delay = Duration::from_mins(1));
    check_scene(
        scene,
        expect![[r#"
        a: grows by 1
        default/cheap: Expendable
        default/claims: Unsupported("unsupported constraint missing volume claim c")
        default/old: brings nodes of [GroupId("a")]
        default/patient: TooYoung { until: 2026-03-01T08:02:00Z }
        default/second: Nominated { node: NodeName("n") }
        default/young: TooYoung { until: 2026-03-01T08:01:00Z }
        call: a 1 + 1
    "#]],
    );
}

#[test]
fn what_is_to_come_is_filled_first() {
    let mut scene = Scene::new(
        "{groups: [{id: a, target: 2, new: {}}], pods: [{name: p1, cpu: 3, app: p}, {name: p2, cpu: 3, app: p}, {name: p3, cpu: 3, app: p}]}",
    );
    let action = Action::Increase { group: "a".into(), delta: 2, baseline: 0 };
    let outcome = Outcome { action, step: Step::Requested };
    scene.registry.record(scene.now, &outcome).unwrap();
    check_scene(
        scene,
        expect![[r#"
        a: grows by 1
        default/p1: FitsUpcoming { group: GroupId("a") }
        default/p2: FitsUpcoming { group: GroupId("a") }
        default/p3: brings nodes of [GroupId("a")]
        call: a 2 + 1
    "#]],
    );
}

#[test]
fn daemons_take_their_part_of_new_nodes() {
    check(
        "{groups: [{id: a, new: {}}, {id: b, new: {cpu: 5}, taints: [{key: k, effect: NoSchedule}]}], daemons: [{name: agent, cpu: 500m}], pods: [{name: p1, cpu: 4, app: p}, {name: p2, cpu: 3500m, app: q}]}",
        expect![[r#"
            a: grows by 1
            b: of no help
            default/p1: {GroupId("a"): "Insufficient cpu: requested 4000m, used 500m of 4000m", GroupId("b"): "node has untolerated taint {k: }"}
            default/p2: brings nodes of [GroupId("a")]
            call: a 0 + 1
        "#]],
    );
}

#[test]
fn a_template_is_taken_from_a_node_that_is_there() {
    let yaml = "{groups: [{id: a, new: {cpu: 64}}], nodes: [{name: n, group: a, labels: {disk: fast}, taints: [{key: node.kubernetes.io/memory-pressure, effect: NoSchedule}, {key: DeletionCandidateOfClusterAutoscaler, effect: PreferNoSchedule}]}], pods: [{name: x, node: n, cpu: 4, app: x}, {name: fits, cpu: 4, app: p, spec: {nodeSelector: {disk: fast}, containers: []}}, {name: large, cpu: 5, app: q}]}";
    check(
        yaml,
        expect![[r#"
        a: grows by 1
        default/fits: brings nodes of [GroupId("a")]
        default/large: {GroupId("a"): "Insufficient cpu: requested 5000m, used 0m of 4000m"}
        call: a 1 + 1
    "#]],
    );
}

/// Static pods tolerate what evicts and nothing that only keeps others away. Left out of the template, they
/// let a pod fit every new node in thought and none in truth, and the group grew to its end.
#[test]
fn pods_that_come_with_the_machine_are_on_new_ones_whatever_their_taints() {
    check(
        "{groups: [{id: a}], nodes: [{name: n, group: a, taints: [{key: only, value: gpu, effect: NoSchedule}]}], pods: [{name: proxy-n, node: n, cpu: 500m, namespace: kube-system, annotations: {kubernetes.io/config.mirror: x}, spec: {containers: [], tolerations: [{operator: Exists, effect: NoExecute}]}}, {name: x, node: n, cpu: 3500m, app: x}, {name: p, cpu: 4, app: p, spec: {containers: [], tolerations: [{operator: Exists}]}}]}",
        expect![[r#"
            a: of no help
            default/p: {GroupId("a"): "Insufficient cpu: requested 4000m, used 500m of 4000m"}
        "#]],
    );
}

/// They will be gone when the node can be used.
#[test]
fn startup_taints_of_a_providers_template_keep_no_pod_away() {
    let yaml = "{groups: [{id: a, new: {}, taints: [{key: agent-not-ready, effect: NoSchedule}, {key: startup-taint.cluster-autoscaler.kubernetes.io/net, effect: NoSchedule}]}, {id: b, new: {}, taints: [{key: only, value: gpu, effect: NoSchedule}]}], pods: [{name: p, cpu: 2, app: p}]}";
    let scene = Scene::new(yaml).with(|it| _ = it.startup_taints.insert("agent-not-ready".into()));
    check_scene(
        scene,
        expect![[r#"
        a: grows by 1
        b: of no help
        default/p: brings nodes of [GroupId("a")]
        call: a 0 + 1
    "#]],
    );
}

const TWO_ALIKE: &str = "{groups: [{id: a, new: {}, target: 1}, {id: b, new: {}, labels: {topology.kubernetes.io/zone: z2}}, {id: c, new: {}, labels: {disk: fast}}], nodes: [{name: n, group: a}], pods: [{name: x, node: n, cpu: 4, app: x}, {name: p1, cpu: 3, app: p}, {name: p2, cpu: 3, app: p}, {name: p3, cpu: 3, app: p}]}";

#[test]
fn groups_alike_share() {
    let scene = Scene::new(TWO_ALIKE).with(|it| it.scale_up.balances_similar_groups = true);
    check_scene(
        scene,
        expect![[r#"
        a: grows by 1
        b: grows by 2
        c: offers 3 nodes for 3 pods
        default/p1: brings nodes of [GroupId("a"), GroupId("b")]
        default/p2: brings nodes of [GroupId("a"), GroupId("b")]
        default/p3: brings nodes of [GroupId("a"), GroupId("b")]
        call: a 1 + 1
        call: b 0 + 2
    "#]],
    );
}

#[test]
fn limits_of_the_whole_cluster() {
    let limited = |change: fn(&mut autoscaler::core::Config), expected: Expect| {
        check_scene(Scene::new(TWO_ALIKE).with(change), expected);
    };
    limited(
        |it| it.limits.nodes_max = Some(3),
        expect![[r#"
        a: grows by 2
        b: offers 2 nodes for 2 pods
        c: offers 2 nodes for 2 pods
        default/p1: brings nodes of [GroupId("a")]
        default/p2: brings nodes of [GroupId("a")]
        default/p3: {GroupId("a"): "max total nodes in cluster reached", GroupId("b"): "max total nodes in cluster reached", GroupId("c"): "max total nodes in cluster reached"}
        call: a 1 + 2
    "#]],
    );
    limited(
        |it| it.limits.nodes_max = Some(1),
        expect![[r#"
        a: refused: max total nodes in cluster reached
        b: refused: max total nodes in cluster reached
        c: refused: max total nodes in cluster reached
        default/p1: {GroupId("a"): "max total nodes in cluster reached", GroupId("b"): "max total nodes in cluster reached", GroupId("c"): "max total nodes in cluster reached"}
        default/p2: {GroupId("a"): "max total nodes in cluster reached", GroupId("b"): "max total nodes in cluster reached", GroupId("c"): "max total nodes in cluster reached"}
        default/p3: {GroupId("a"): "max total nodes in cluster reached", GroupId("b"): "max total nodes in cluster reached", GroupId("c"): "max total nodes in cluster reached"}
    "#]],
    );
    limited(
        |it| it.scale_up.nodes_per_scale_up_max = 1,
        expect![[r#"
        a: grows by 1
        b: offers 1 nodes for 1 pods
        c: offers 1 nodes for 1 pods
        default/p1: brings nodes of [GroupId("a")]
        default/p2: {GroupId("a"): "max nodes per scale-up reached", GroupId("b"): "max nodes per scale-up reached", GroupId("c"): "max nodes per scale-up reached"}
        default/p3: {GroupId("a"): "max nodes per scale-up reached", GroupId("b"): "max nodes per scale-up reached", GroupId("c"): "max nodes per scale-up reached"}
        call: a 1 + 1
    "#]],
    );
    limited(
        |it| _ = it.limits.resources.insert("cpu".to_owned(), 0..=8),
        expect![[r#"
        a: grows by 1
        b: offers 1 nodes for 1 pods
        c: offers 1 nodes for 1 pods
        default/p1: brings nodes of [GroupId("a")]
        default/p2: {GroupId("a"): "max cluster resource limit reached", GroupId("b"): "max cluster resource limit reached", GroupId("c"): "max cluster resource limit reached"}
        default/p3: {GroupId("a"): "max cluster resource limit reached", GroupId("b"): "max cluster resource limit reached", GroupId("c"): "max cluster resource limit reached"}
        call: a 1 + 1
    "#]],
    );
    limited(
        |it| _ = it.limits.resources.insert("memory".to_owned(), 0..=1 << 30),
        expect![[r#"
        a: refused: max cluster memory limit reached
        b: refused: max cluster memory limit reached
        c: refused: max cluster memory limit reached
        default/p1: {GroupId("a"): "max cluster memory limit reached", GroupId("b"): "max cluster memory limit reached", GroupId("c"): "max cluster memory limit reached"}
        default/p2: {GroupId("a"): "max cluster memory limit reached", GroupId("b"): "max cluster memory limit reached", GroupId("c"): "max cluster memory limit reached"}
        default/p3: {GroupId("a"): "max cluster memory limit reached", GroupId("b"): "max cluster memory limit reached", GroupId("c"): "max cluster memory limit reached"}
    "#]],
    );
}

const THREE_KINDS: &str = "{groups: [{id: large, new: {cpu: 16, memory: 64Gi, pods: 50}}, {id: small, new: {cpu: 2, memory: 4Gi}}, {id: tall, new: {cpu: 4, memory: 4Gi}}], pods: [{name: p1, cpu: 2, memory: 1Gi, app: p}, {name: p2, cpu: 2, memory: 1Gi, app: p}, {name: p3, cpu: 2, memory: 1Gi, app: p}, {name: p4, cpu: 2, memory: 5Gi, app: q}]}";

#[test]
fn each_expander_chooses_by_its_own_measure() {
    let patterns = [(20, vec!["^none$".to_owned()]), (10, vec!["ll$".to_owned()])];
    let priorities = Priorities::new(&patterns.into()).unwrap();
    let chosen = |names: &str, seed: u64| {
        let chain = Expander::parse_chain(names, &priorities).unwrap();
        let mut scene = Scene::new(THREE_KINDS).with(|it| it.scale_up.expanders = chain);
        scene.seed = seed;
        let plan = scene.run().scale_up.unwrap();
        plan.increases[0].group.0.clone()
    };
    assert_eq!(chosen("least-waste", 0), "small");
    assert_eq!(chosen("most-pods", 0), "large");
    assert_eq!(chosen("least-nodes", 0), "large");
    assert_eq!(chosen("priority,least-nodes", 0), "tall");
    assert_eq!(chosen("priority,most-pods", 0), chosen("priority,most-pods", 0));
    let drawn: Vec<_> = (0..3).map(|seed| chosen("random", seed)).collect();
    assert_eq!(drawn, ["large", "small", "tall"]);
}

#[test]
fn pods_are_told_in_upstreams_words() {
    let mut scene = Scene::new(
        "{groups: [{id: a, new: {}, max: 3}, {id: b, new: {}, max: 0}], pods: [{name: good, cpu: 2, app: p}, {name: huge, cpu: 9, app: q}]}",
    );
    let account = scene.run();
    let told: Vec<_> = account
        .events
        .iter()
        .map(|event| match &event.about {
            Subject::Pod(pod) => format!("{pod} {}: {}", event.reason, event.message),
            other => format!("{other:?} {}: {}", event.reason, event.message),
        })
        .collect();
    assert_eq!(
        told,
        [
            "default/good TriggeredScaleUp: pod triggered scale-up: [{a 0->1 (max: 3)}]",
            "default/huge NotTriggerScaleUp: pod didn't trigger scale-up: 1 Insufficient cpu, 1 max node group size reached",
        ]
    );
}

/// They were told of nodes that nobody had been asked for.
#[test]
fn pods_are_told_of_increases_that_were_made() {
    let told = |scene: &mut Scene| {
        let mut events = scene.run().events;
        events.retain(|event| event.reason == EventReason::TriggeredScaleUp);
        events.into_iter().map(|event| event.message).collect::<Vec<_>>()
    };
    let alike = || Scene::new(TWO_ALIKE).with(|it| it.scale_up.balances_similar_groups = true);
    let whole = "pod triggered scale-up: [{a 1->2 (max: 10)} {b 0->2 (max: 10)}]";
    assert_eq!(told(&mut alike()), [whole; 3]);
    for effect in [Effect::Failed("quota".to_owned()), Effect::Stale] {
        let mut scene = alike();
        scene.struck = Some(("b".to_owned(), effect.clone()));
        assert_eq!(told(&mut scene), ["pod triggered scale-up: [{a 1->2 (max: 10)}]"; 3]);
        scene = alike();
        scene.effect = effect;
        assert_eq!(told(&mut scene), [""; 0]);
    }
}

#[test]
fn an_empty_cluster_grows_only_if_it_may() {
    let yaml = "{groups: [{id: a, new: {}}], pods: [{name: p, cpu: 1, app: p}]}";
    let mut grows = Scene::new(yaml);
    assert!(grows.run().scale_up.is_some());
    let mut stays = Scene::new(yaml).with(|it| it.scale_up.scales_from_zero = false);
    assert!(stays.run().scale_up.is_none());
}

#[test]
fn an_estimate_can_be_cut_short() {
    use autoscaler::core::{Inputs, Iteration, Next};
    let mut scene = Scene::new(THREE_KINDS);
    let (facts, world, config) = (scene.facts(), scene.world(), scene.config.clone());
    let inputs = Inputs { now: scene.now, seed: 0, facts: &facts, world: &world, config: &config };
    let mut iteration = Iteration::begin(inputs, &mut scene.registry, &scene.memory);
    let mut cut = Vec::new();
    loop {
        match iteration.next(&mut scene.registry, &mut scene.memory, 1) {
            Next::Act(_) => iteration.on_effect(&autoscaler::core::Effect::Done, &mut scene.memory),
            Next::Working => cut.extend(iteration.cut()),
            Next::Ended => break,
        }
    }
    assert!(!cut.is_empty(), "there was something to cut");
    assert!(iteration.account().ending.is_some());
}
