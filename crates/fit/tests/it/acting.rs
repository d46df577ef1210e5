//! Moving pods off a node, groups that are alike, and budgets.

use std::collections::BTreeSet;

use fit::{Budgets, Mover, NoPlace, Profile, Spent};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::scene::{compile, empty_cluster, node, pod};

/// Moves pods of these cpus from a node of 4 cores to nodes of 2 cores each; each pod by the node it
/// went to, or the first that found none.
fn relocate(cpus: &[&str], others: usize) -> Result<Vec<usize>, NoPlace> {
    let mut cluster = empty_cluster();
    let from = cluster.add_node(&node("{name: from}")).unwrap();
    let small = |at: usize| node(&format!("{{name: n{at}, allocatable: {{cpu: 2}}}}"));
    let mut nodes = vec![from];
    nodes.extend((0..others).map(|at| cluster.add_node(&small(at)).unwrap()));
    let mut movers = Vec::new();
    for cpu in cpus {
        let words = format!("{{requests: {{cpu: {cpu}}}}}");
        let bound = cluster.compile_bound(&pod(&words)).unwrap();
        cluster.place(bound, from);
        movers.push(Mover { bound, class: compile(&mut cluster, &words) });
    }
    let outcome = cluster.relocate(from, &movers, &nodes);
    let moved = if outcome.is_ok() { 0 } else { cpus.len() };
    assert_eq!(cluster.pods_on(from), moved, "all of them move, or none");
    let elsewhere: usize = nodes[1..].iter().map(|node| cluster.pods_on(*node)).sum();
    assert_eq!(elsewhere, cpus.len() - moved);
    outcome.map(|places| {
        let at = |place| nodes[1..].iter().position(|node| *node == place).unwrap();
        places.into_iter().map(at).collect()
    })
}

#[test]
fn pods_move_if_all_of_them_find_a_place() {
    assert_eq!(relocate(&[], 0), Ok(vec![]));
    assert_eq!(relocate(&["1", "1", "1"], 2), Ok(vec![0, 0, 1]));
    assert_eq!(relocate(&["1500m", "1500m"], 2), Ok(vec![0, 1]));
    assert_eq!(relocate(&["1", "1", "1"], 1), Err(NoPlace(2)));
    assert_eq!(relocate(&["3"], 2), Err(NoPlace(0)));
}

fn profile(words: &str) -> Profile {
    let ignored = BTreeSet::from(["pool".to_owned()]);
    Profile::new(&node(words), &[pod("{requests: {cpu: 100m}}")], &ignored).unwrap()
}

#[test]
fn groups_are_similar_within_tolerances() {
    let base = "{name: a, labels: {topology.kubernetes.io/zone: z1, pool: p1, arch: arm}, allocatable: {memory: 1000Mi}}";
    let table = [
        (base, true),
        (
            "{name: b, labels: {topology.kubernetes.io/zone: z2, pool: p2, arch: arm}, allocatable: {memory: 1000Mi}}",
            true,
        ),
        ("{name: b, labels: {arch: amd}, allocatable: {memory: 1000Mi}}", false),
        ("{name: b, labels: {arch: arm, more: x}, allocatable: {memory: 1000Mi}}", false),
        ("{name: b, labels: {arch: arm}, allocatable: {memory: 1015Mi}}", true),
        ("{name: b, labels: {arch: arm}, allocatable: {memory: 1016Mi}}", false),
        ("{name: b, labels: {arch: arm}, allocatable: {memory: 1000Mi, cpu: 4100m}}", false),
        (
            "{name: b, labels: {arch: arm}, allocatable: {memory: 1000Mi, gpu.example/card: 1}}",
            false,
        ),
    ];
    for (other, is_similar) in table {
        assert_eq!(profile(base).is_similar_to(&profile(other)), is_similar, "{other}");
        assert_eq!(profile(other).is_similar_to(&profile(base)), is_similar, "{other}, turned");
    }
}

/// A budget for `app`, of so many disruptions.
fn budget(app: &str, allowed: i32) -> PodDisruptionBudget {
    let words = format!(
        "{{metadata: {{name: {app}, namespace: default}}, spec: {{selector: {{matchLabels: {{app: {app}}}}}}}, status: {{disruptionsAllowed: {allowed}, currentHealthy: 9, desiredHealthy: 8, expectedPods: 9}}}}"
    );
    serde_saphyr::from_str(&words).unwrap()
}

#[test]
fn disruptions_are_reserved_for_all_or_none() {
    let mut budgets = Budgets::new(&[budget("x", 2), budget("y", 0)]);
    let [x, y, z] = ["x", "y", "z"].map(|app| pod(&format!("{{labels: {{app: {app}}}}}")));
    let foreign = pod("{labels: {app: x}, namespace: other}");
    let spent = |name: &str| Err(Spent { namespace: "default".to_owned(), name: name.to_owned() });
    assert!(budgets.cover(&x) && budgets.cover(&y) && !budgets.cover(&z));
    assert!(!budgets.cover(&foreign));
    assert_eq!(budgets.reserve(&[&x, &y]), spent("y"));
    assert_eq!(budgets.reserve(&[&x, &x, &x]), spent("x"));
    assert_eq!(budgets.reserve(&[&x, &z, &foreign]), Ok(()));
    assert_eq!(budgets.reserve(&[&x]), Ok(()));
    assert_eq!(budgets.reserve(&[&x]), spent("x"));
    budgets.release(&[&x]);
    assert_eq!(budgets.reserve(&[&x]), Ok(()));
}

#[test]
fn nodes_that_compete_for_a_budget_go_last() {
    let budgets = Budgets::new(&[budget("x", 1), budget("y", 2)]);
    let [x, y, z] = ["x", "y", "z"].map(|app| pod(&format!("{{labels: {{app: {app}}}}}")));
    let nodes = [vec![&x], vec![&z], vec![&x, &y], vec![&y]];
    assert_eq!(budgets.order(&nodes), [1, 3, 0, 2]);
    assert_eq!(budgets.order(&[vec![&x], vec![&y], vec![&y]]), [0, 1, 2]);
}
