//! Clusters by seed: groups that differ, nodes in every state, pods with constraints and without.

use chance::Chance;

pub(super) fn cluster(chance: &mut Chance) -> String {
    let groups: Vec<String> = (0..1 + chance.below(4)).map(|at| group(chance, at)).collect();
    let nodes: Vec<String> =
        (0..chance.below(12)).map(|at| node(chance, at, groups.len())).collect();
    let pods: Vec<String> = (0..chance.below(30)).map(|at| pod(chance, at, nodes.len())).collect();
    let budgets = format!("{{app0: {}, app1: {}}}", chance.below(3), chance.below(3));
    format!(
        "{{groups: [{}], nodes: [{}], pods: [{}], budgets: {budgets}}}",
        groups.join(", "),
        nodes.join(", "),
        pods.join(", ")
    )
}

fn group(chance: &mut Chance, at: usize) -> String {
    let new = *chance.pick(&[", new: {}", ", new: {cpu: 8, memory: 32Gi}", ", new: {cpu: 2}", ""]);
    let more = *chance.pick(&["", "", ", target: 4", ", labels: {disk: fast}", ", min: 1"]);
    format!("{{id: g{at}{new}{more}, max: {}}}", 4 + chance.below(10))
}

fn node(chance: &mut Chance, at: usize, groups: usize) -> String {
    let group = match chance.below(groups + 1) {
        0 => String::new(),
        group => format!(", group: g{}", group - 1),
    };
    let more = match chance.below(12) {
        0 => ", unready: 5".to_owned(),
        1 => ", unready: 18, age: 18".to_owned(),
        2 => ", age: 1, unready: 1".to_owned(),
        3 => ", suspended: true".to_owned(),
        4 => ", taints: [{key: only, effect: NoSchedule}]".to_owned(),
        5 => format!(
            ", taints: [{{key: ToBeDeletedByClusterAutoscaler, value: '{}', effect: NoSchedule}}]",
            chance.below(9)
        ),
        _ => String::new(),
    };
    format!("{{name: n{at:02}{group}{more}, labels: {{topology.kubernetes.io/zone: z{}}}}}", at % 3)
}

fn pod(chance: &mut Chance, at: usize, nodes: usize) -> String {
    let node = match chance.below(nodes + 3) {
        place if place < nodes => format!(", node: n{place:02}"),
        _ => String::new(),
    };
    let app = match chance.below(8) {
        0 => String::new(),
        app => format!(", app: app{}", app % 4),
    };
    let more = *chance.pick(&[
        "", "", "", "", ", priority: -20", ", age: 0",
        ", spec: {containers: [], nodeSelector: {disk: fast}}",
        ", spec: {containers: [], topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: app1}}}]}",
        ", spec: {containers: [], affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: app2}}}]}}}",
        ", spec: {containers: [], volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}",
    ]);
    let cpu = chance.pick(&["100m", "500m", "1", "2", "3"]);
    format!("{{name: p{at:02}{node}{app}, cpu: {cpu}, memory: {}Mi{more}}}", 64 << chance.below(6))
}
