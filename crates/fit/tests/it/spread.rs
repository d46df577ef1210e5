//! Hard topology spread constraints.

use crate::scene::check;

const APP: &str = "{labels: {app: x}}";

/// Zones z1 (nodes a, b) and z2 (node c), node d without a zone, with pods on each.
fn nodes(pods: [&str; 4]) -> String {
    let [a, b, c, d] = pods;
    format!(
        "nodes:
- {{name: a, labels: {{zone: z1, disk: ssd}}, pods: [{a}]}}
- {{name: b, labels: {{zone: z1}}, pods: [{b}]}}
- {{name: c, labels: {{zone: z2}}, pods: [{c}]}}
- {{name: d, pods: [{d}]}}"
    )
}

fn spread(pods: [&str; 4], pod: &str, fitting: &str) {
    let nodes = nodes(pods);
    let expected = ["a", "b", "c", "d"].map(|node| {
        let skewed = "node does not match pod topology spread constraints on zone";
        let word = match node {
            "d" => "node lacks topology label zone",
            _ if fitting.contains(node) => "fits",
            _ => skewed,
        };
        format!("{node}: {word}")
    });
    check(&format!("{nodes}\npod: {pod}"), &expected.each_ref().map(String::as_str));
}

fn pod(more: &str) -> String {
    format!(
        "{{labels: {{app: x, rev: '1'}}, spec: {{topologySpreadConstraints: [{{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {{matchLabels: {{app: x}}}}{more}}}]}}}}"
    )
}

#[test]
fn pods_are_spread_over_zones() {
    spread(["", "", "", ""], &pod(""), "abc");
    spread([APP, "", "", ""], &pod(""), "c");
    spread([APP, "", APP, ""], &pod(""), "abc");
    spread([APP, APP, APP, ""], &pod(""), "c");
    // Where there is no zone, nothing is counted.
    spread(["", "", "", APP], &pod(""), "abc");
}

#[test]
fn other_namespaces_and_pods_on_their_way_out_do_not_count() {
    spread(["{labels: {app: x}, namespace: other}", "", "", ""], &pod(""), "abc");
    spread(["{labels: {app: x}, deleting: true}", "", "", ""], &pod(""), "abc");
    spread(["{labels: {app: y}}", "", "", ""], &pod(""), "abc");
}

#[test]
fn too_few_domains_count_as_empty_ones() {
    spread([APP, "", APP, ""], &pod(", minDomains: 2"), "abc");
    spread([APP, "", APP, ""], &pod(", minDomains: 3"), "");
    spread([APP, "", "", ""], &pod(", minDomains: 3"), "c");
}

#[test]
fn label_keys_narrow_what_is_counted() {
    let old = "{labels: {app: x, rev: '0'}}";
    spread([old, "", "", ""], &pod(", matchLabelKeys: [rev]"), "abc");
    spread(["{labels: {app: x, rev: '1'}}", "", "", ""], &pod(", matchLabelKeys: [rev]"), "c");
    // A key that the pod lacks narrows nothing.
    spread([old, "", "", ""], &pod(", matchLabelKeys: [none]"), "c");
}

#[test]
fn nodes_that_affinity_rules_out_are_left_aside_unless_told_otherwise() {
    let choosy = |policy: &str| {
        let pod = pod(&format!(", nodeAffinityPolicy: {policy}"));
        pod.replacen("spec: {", "spec: {nodeSelector: {disk: ssd}, ", 1)
    };
    let affinity = "node does not match Pod's node affinity/selector";
    let lines = |a: &str| {
        [
            format!("a: {a}"),
            format!("b: {affinity}"),
            format!("c: {affinity}"),
            format!("d: {affinity}"),
        ]
    };
    let check = |pods, policy, a: &str| {
        let lines = lines(a);
        check(
            &format!("{}\npod: {}", nodes(pods), choosy(policy)),
            &lines.each_ref().map(String::as_str),
        );
    };
    // Zone z2 has no node for the pod, so there is nothing to be uneven with.
    check([APP, "", "", ""], "Honor", "fits");
    check(
        [APP, "", "", ""],
        "Ignore",
        "node does not match pod topology spread constraints on zone",
    );
    check(["", APP, "", ""], "Honor", "fits");
}

#[test]
fn tainted_nodes_are_left_aside_if_told() {
    let nodes = "nodes:
- {name: a, labels: {zone: z1}, pods: [{labels: {app: x}}]}
- {name: b, labels: {zone: z2}, taints: [{key: k, effect: NoSchedule}]}";
    let tainted = "b: node has untolerated taint {k: }";
    let pod = |policy: &str| pod(&format!(", nodeTaintsPolicy: {policy}"));
    check(&format!("{nodes}\npod: {}", pod("Honor")), &["a: fits", tainted]);
    let skewed = "a: node does not match pod topology spread constraints on zone";
    check(&format!("{nodes}\npod: {}", pod("Ignore")), &[skewed, tainted]);
}

/// A selector that selects everything counts nothing but the pod itself: the scheduler's own way.
#[test]
fn odd_selectors() {
    let select = |selector: &str| {
        format!(
            "{{labels: {{app: x}}, spec: {{topologySpreadConstraints: [{{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule{selector}}}]}}}}"
        )
    };
    let crowd = "{labels: {app: x}}, {labels: {app: x}}, {labels: {app: x}}";
    spread([crowd, "", "", ""], &select(", labelSelector: {}"), "abc");
    spread([crowd, "", "", ""], &select(""), "abc");
    spread(
        [crowd, "", "", ""],
        &select(", labelSelector: {matchExpressions: [{key: app, operator: NotIn, values: [y]}]}"),
        "c",
    );
    // Preferences are ignored.
    let soft = pod("").replace("DoNotSchedule", "ScheduleAnyway");
    let lines = ["a: fits", "b: fits", "c: fits", "d: fits"];
    check(&format!("{}\npod: {soft}", nodes([crowd, "", "", ""])), &lines);
}

/// A node that lacks one of the keys is left aside by the constraint on the other.
#[test]
fn all_keys_must_be_there() {
    let world = "nodes:
- {name: a, labels: {zone: z1, rack: r1}, pods: [{labels: {app: x}}]}
- {name: b, labels: {zone: z2}}
pod: {labels: {app: x}, spec: {topologySpreadConstraints: [
  {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}},
  {maxSkew: 5, topologyKey: rack, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}]}}";
    check(world, &["a: fits", "b: node lacks topology label rack"]);
}
