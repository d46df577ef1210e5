//! What a pod asks of the node itself: names, labels, taints, volumes.

use crate::scene::check;

#[test]
fn a_cordoned_node_is_for_those_who_tolerate_it() {
    let nodes = "nodes: [{name: a, unschedulable: true}, {name: b}]";
    check(&format!("{nodes}\npod: {{}}"), &["a: node is unschedulable", "b: fits"]);
    let tolerant = "{spec: {tolerations: [{key: node.kubernetes.io/unschedulable, operator: Exists, effect: NoSchedule}]}}";
    check(&format!("{nodes}\npod: {tolerant}"), &["a: fits", "b: fits"]);
}

#[test]
fn a_named_node_is_the_only_one() {
    check(
        "nodes: [{name: a}, {name: b}]\npod: {spec: {nodeName: b}}",
        &["a: node does not match the requested node name", "b: fits"],
    );
}

/// Taint and toleration, and whether they go together.
#[test]
fn taints_keep_away_what_does_not_tolerate_them() {
    let table = [
        ("{key: k, value: v, effect: NoSchedule}", "", false),
        ("{key: k, value: v, effect: NoExecute}", "", false),
        ("{key: k, value: v, effect: PreferNoSchedule}", "", true),
        ("{key: k, value: v, effect: NoSchedule}", "{key: k, value: v}", true),
        ("{key: k, value: v, effect: NoSchedule}", "{key: k, operator: Equal, value: w}", false),
        ("{key: k, value: v, effect: NoSchedule}", "{key: k, operator: Exists}", true),
        ("{key: k, value: v, effect: NoSchedule}", "{operator: Exists}", true),
        (
            "{key: k, value: v, effect: NoSchedule}",
            "{key: k, operator: Exists, effect: NoExecute}",
            false,
        ),
        ("{key: k, effect: NoExecute}", "{key: k, effect: NoExecute}", true),
        ("{key: k, value: '5', effect: NoSchedule}", "{key: k, operator: Gt, value: '4'}", true),
        ("{key: k, value: '5', effect: NoSchedule}", "{key: k, operator: Gt, value: '5'}", false),
        ("{key: k, value: '5', effect: NoSchedule}", "{key: k, operator: Lt, value: '6'}", true),
        ("{key: k, value: '05', effect: NoSchedule}", "{key: k, operator: Lt, value: '6'}", false),
        ("{key: k, value: x, effect: NoSchedule}", "{key: k, operator: Lt, value: '6'}", false),
        ("{key: k, value: v, effect: NoSchedule}", "{key: k, operator: Like, value: v}", false),
    ];
    for (taint, toleration, fits) in table {
        let world = format!(
            "nodes: [{{name: a, taints: [{taint}]}}]\npod: {{spec: {{tolerations: [{toleration}]}}}}"
        );
        let answer = crate::scene::answer(&world);
        assert_eq!(answer == "a: fits\n", fits, "{world}\n{answer}");
        assert!(fits || answer.starts_with("a: node has untolerated taint {k: "), "{answer}");
    }
}

#[test]
fn labels_are_selected() {
    let nodes = "nodes:
- {name: a, labels: {disk: ssd, gen: '3'}}
- {name: b, labels: {disk: hdd, gen: 'x'}}
- {name: c}";
    let affinity = |terms: &str| {
        format!(
            "{{spec: {{affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: {terms}}}}}}}}}}}"
        )
    };
    let expression =
        |expression: &str| affinity(&format!("[{{matchExpressions: [{expression}]}}]"));
    let field = |field: &str| affinity(&format!("[{{matchFields: [{field}]}}]"));
    let table = [
        ("{spec: {nodeSelector: {disk: ssd}}}".to_owned(), "a"),
        ("{spec: {nodeSelector: {disk: ssd, gen: '4'}}}".to_owned(), ""),
        (expression("{key: disk, operator: In, values: [ssd, nvme]}"), "a"),
        (expression("{key: disk, operator: NotIn, values: [ssd]}"), "bc"),
        (expression("{key: disk, operator: Exists}"), "ab"),
        (expression("{key: disk, operator: DoesNotExist}"), "c"),
        (expression("{key: gen, operator: Gt, values: ['2']}"), "a"),
        (expression("{key: gen, operator: Gt, values: ['3']}"), ""),
        (expression("{key: gen, operator: Lt, values: ['4']}"), "a"),
        (expression("{key: gen, operator: Lt, values: ['4', '5']}"), ""),
        (expression("{key: gen, operator: Near, values: ['4']}"), ""),
        (field("{key: metadata.name, operator: In, values: [b]}"), "b"),
        (field("{key: metadata.name, operator: NotIn, values: [b]}"), "ac"),
        (field("{key: metadata.name, operator: Exists}"), ""),
        (affinity("[{}]"), ""),
        (affinity("[]"), ""),
        (
            affinity(
                "[{matchExpressions: [{key: disk, operator: In, values: [hdd]}]}, {matchFields: [{key: metadata.name, operator: In, values: [c]}]}]",
            ),
            "bc",
        ),
        (
            affinity(
                "[{matchExpressions: [{key: disk, operator: Exists}], matchFields: [{key: metadata.name, operator: NotIn, values: [a]}]}]",
            ),
            "b",
        ),
    ];
    for (pod, fitting) in table {
        let expected = ["a", "b", "c"].map(|node| {
            let word = if fitting.contains(node) {
                "fits"
            } else {
                "node does not match Pod's node affinity/selector"
            };
            format!("{node}: {word}")
        });
        check(&format!("{nodes}\npod: {pod}"), &expected.each_ref().map(String::as_str));
    }
}

const CLAIMED: &str =
    "pod: {spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]}}
claims:
- metadata: {name: data, namespace: default, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}
  spec: {volumeName: disk}
";

#[test]
fn bound_volumes_are_reached_from_their_zone() {
    let nodes = "nodes:
- {name: a, labels: {topology.kubernetes.io/zone: z1}}
- {name: b, labels: {topology.kubernetes.io/zone: z2}}
- {name: c, labels: {topology.kubernetes.io/region: r1}}
- {name: d}
";
    let refused = "node has no available volume zone";
    let check = |labels: &str, expected: [&str; 4]| {
        let world = format!(
            "{nodes}{CLAIMED}volumes: [{{metadata: {{name: disk, labels: {{{labels}}}}}}}]"
        );
        let lines = ["a", "b", "c", "d"].map(|node| {
            let at = usize::from(node.as_bytes()[0] - b'a');
            format!("{node}: {}", expected[at])
        });
        check(&world, &lines.each_ref().map(String::as_str));
    };
    check("topology.kubernetes.io/zone: z1", ["fits", refused, refused, "fits"]);
    check("topology.kubernetes.io/zone: z1__z2", ["fits", "fits", refused, "fits"]);
    check("failure-domain.beta.kubernetes.io/zone: z2", [refused, "fits", refused, "fits"]);
    check("other: z9", ["fits", "fits", "fits", "fits"]);
}

#[test]
fn bound_volumes_are_reached_from_nodes_they_accept() {
    let world = format!(
        "nodes: [{{name: a, labels: {{rack: r1}}}}, {{name: b, labels: {{rack: r2}}}}]
{CLAIMED}volumes:
- metadata: {{name: disk}}
  spec: {{nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{{key: rack, operator: In, values: [r2]}}]}}]}}}}}}"
    );
    check(&world, &["a: node has volume node affinity conflict", "b: fits"]);
}

#[test]
fn what_is_not_understood_is_named() {
    let claim = |metadata: &str, spec: &str| {
        format!(
            "nodes: [{{name: a}}]
pod: {{spec: {{volumes: [{{name: data, persistentVolumeClaim: {{claimName: data}}}}]}}}}
limited: [slow.example]
volumes: [{{metadata: {{name: disk}}, spec: {{csi: {{driver: slow.example, volumeHandle: x}}}}}}]
claims: [{{metadata: {{name: data, namespace: default{metadata}}}, spec: {spec}}}]"
        )
    };
    let bound = ", annotations: {pv.kubernetes.io/bind-completed: 'yes'}";
    let spec = |spec: &str| format!("nodes: [{{name: a}}]\npod: {{spec: {spec}}}");
    let table = [
        (claim("", "{}"), "unbound volume claim data"),
        (claim("", "{volumeName: disk}"), "unbound volume claim data"),
        (claim(bound, "{volumeName: gone}"), "missing volume gone"),
        (claim(bound, "{volumeName: disk}"), "volume limit of driver slow.example"),
        (claim(bound, "{accessModes: [ReadWriteOncePod]}"), "ReadWriteOncePod claim data"),
        (
            spec("{volumes: [{name: v, persistentVolumeClaim: {claimName: none}}]}"),
            "missing volume claim none",
        ),
        (
            spec("{volumes: [{name: v, iscsi: {iqn: i, lun: 0, targetPortal: p}}]}"),
            "disk of volume v",
        ),
        (spec("{schedulerName: other}"), "scheduler other"),
        (spec("{resourceClaims: [{name: gpu}]}"), "resource claims"),
        (
            spec("{schedulerName: other, schedulingGates: [{name: g}]}"),
            "scheduler other, scheduling gates",
        ),
        (spec("{hostNetwork: true, hostUsers: false}"), "user namespace on the host's network"),
    ];
    for (world, name) in table {
        check(&world, &[&format!("unsupported constraint {name}")]);
    }
}
