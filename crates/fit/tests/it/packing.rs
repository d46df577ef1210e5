//! Pods onto nodes, and how many new nodes that takes.

use fit::expand::Offer;
use fit::{Packed, Packing, Plan, Reason, Template};

use crate::scene::{compile, empty_cluster, node, pod};

const MACHINE: &str =
    "{name: t, labels: {kubernetes.io/hostname: t, zone: z1}, allocatable: {pods: 100}}";

/// Packs pods, given with how many there are of each, onto new nodes; `steps` at a time.
fn pack(pods: &[(usize, &str)], new_nodes_max: usize, steps: usize) -> (Packed, Template) {
    let mut cluster = empty_cluster();
    let mut classes = Vec::new();
    for (count, words) in pods {
        let class = compile(&mut cluster, words);
        classes.extend(std::iter::repeat_n(class, *count));
    }
    let daemon = cluster.compile_bound(&pod("{requests: {cpu: 500m}}")).unwrap();
    let template = cluster.template(&node(MACHINE), vec![daemon]).unwrap();
    let plan = Plan { pods: &classes, nodes: Vec::new(), template: Some(&template), new_nodes_max };
    let mut packing = Packing::new(cluster, &plan);
    while !packing.advance(steps) {}
    (packing.finish(), template)
}

fn spread(key: &str) -> String {
    format!(
        "{{labels: {{app: x}}, spec: {{topologySpreadConstraints: [{{maxSkew: 1, topologyKey: {key}, whenUnsatisfiable: DoNotSchedule, labelSelector: {{matchLabels: {{app: x}}}}}}]}}}}"
    )
}

fn alone() -> String {
    "{labels: {app: x}, spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: x}}}]}}}}".to_owned()
}

/// 3500m of cpu are left beside what each node runs.
#[test]
fn as_many_nodes_as_it_takes() {
    let spread_by_host = spread("kubernetes.io/hostname");
    let alone = alone();
    let table: [(&[(usize, &str)], usize); 8] = [
        (&[], 0),
        (&[(1, "{}")], 1),
        (&[(7, "{requests: {cpu: 500m}}")], 1),
        (&[(8, "{requests: {cpu: 500m}}")], 2),
        // Small ones fill what large ones leave.
        (&[(6, "{requests: {cpu: 500m}}"), (2, "{requests: {cpu: 2}}")], 2),
        (&[(3, "{requests: {cpu: 100m, memory: 5Gi}}"), (30, "{requests: {cpu: 100m}}")], 3),
        (&[(5, &alone)], 5),
        (&[(5, &spread_by_host)], 1),
    ];
    for (pods, nodes) in table {
        let (packed, _) = pack(pods, 100, 1000);
        assert_eq!(packed.new_nodes.len(), nodes, "{pods:?}");
        assert!(packed.left.is_empty(), "{pods:?}");
        let count: usize = pods.iter().map(|(count, _)| count).sum();
        assert_eq!(packed.placed.len(), count, "{pods:?}");
    }
}

#[test]
fn what_no_node_takes_is_told() {
    let (packed, _) = pack(&[(2, "{requests: {cpu: 4}}"), (3, "{}")], 100, 1);
    assert_eq!(packed.new_nodes.len(), 1);
    let [left] = packed.left.as_slice() else { panic!("{:?}", packed.left) };
    assert_eq!(left.pods, [0, 1]);
    let Reason::Refused(refusal) = &left.reason else { panic!("{left:?}") };
    let words = "Insufficient cpu: requested 4000m, used 500m of 4000m";
    assert_eq!(refusal.to_string(), words);
    assert_eq!(packed.cluster.nodes().collect::<Vec<_>>(), packed.new_nodes);
}

#[test]
fn there_are_no_more_new_nodes_than_may_be() {
    let (packed, _) = pack(&[(5, "{requests: {cpu: 3}}")], 2, 1000);
    assert_eq!((packed.new_nodes.len(), packed.placed.len()), (2, 2));
    assert_eq!(packed.left[0].pods, [2, 3, 4]);
    assert_eq!(packed.left[0].reason, Reason::NodesMax);
}

#[test]
fn the_length_of_steps_does_not_matter() {
    let alone = alone();
    let pods: &[(usize, &str)] =
        &[(9, "{requests: {cpu: 1}}"), (4, &alone), (20, "{requests: {cpu: 300m}}")];
    let (whole, _) = pack(pods, 100, 100_000);
    for steps in [1, 2, 7] {
        let (packed, _) = pack(pods, 100, steps);
        assert_eq!(packed.placed, whole.placed);
    }
}

/// Nodes that are there are filled first, and without a template there are no others.
#[test]
fn nodes_that_are_there_come_first() {
    let mut cluster = empty_cluster();
    let small = cluster.add_node(&node("{name: a, allocatable: {cpu: 2}}")).unwrap();
    let class = compile(&mut cluster, "{requests: {cpu: 1}}");
    let template = cluster.template(&node(MACHINE), Vec::new()).unwrap();
    let pods = [class; 4];
    let pack = |template| {
        let plan = Plan { pods: &pods, nodes: vec![small], template, new_nodes_max: 9 };
        let mut packing = Packing::new(cluster.fork(), &plan);
        while !packing.advance(1) {}
        packing.finish()
    };
    let packed = pack(Some(&template));
    let places: Vec<_> = packed.placed.iter().map(|(pod, node)| (*pod, *node == small)).collect();
    assert_eq!(places, [(0, true), (1, true), (2, false), (3, false)]);
    let packed = pack(None);
    assert_eq!(packed.left[0].pods, [2, 3]);
    assert_eq!(packed.left[0].reason, Reason::NoRoom);
    assert_eq!(cluster.pods_on(small), 0, "the original knows nothing of its forks");
}

/// 3500m of 4000m are used on one node and 2500m on the other; of memory nothing is.
#[test]
fn offers_tell_what_they_waste() {
    let (packed, template) = pack(&[(5, "{requests: {cpu: 1}}")], 100, 1000);
    let offer = Offer::new("pool", &template, &packed);
    assert_eq!((offer.new_nodes, offer.pods), (2, 5));
    let waste = (0.125 + 0.375) / 2.0 + 1.0;
    assert!((offer.waste - waste).abs() < 1e-9, "{}", offer.waste);
}

#[test]
fn a_group_that_would_not_help_says_why() {
    let mut cluster = empty_cluster();
    let class = compile(&mut cluster, "{spec: {nodeSelector: {zone: z2}}}");
    let template = cluster.template(&node(MACHINE), Vec::new()).unwrap();
    let refusal = cluster.explain_new(class, &template).unwrap();
    assert_eq!(refusal.to_string(), "node does not match Pod's node affinity/selector");
    let class = compile(&mut cluster, "{spec: {nodeSelector: {zone: z1}}}");
    assert_eq!(cluster.explain_new(class, &template), None);
}
