//! Whether there is room: resources, the number of pods, host ports.

use crate::scene::check;

/// A node of 4 cores and 8 GiB, what is on it, the pod, and the answer.
fn one(pods: &str, pod: &str, expected: &str) {
    let world = format!(
        "nodes: [{{name: a, allocatable: {{gpu.example/card: 2, pods: 3}}, pods: [{pods}]}}]\npod: {pod}"
    );
    check(&world, &[&format!("a: {expected}")]);
}

#[test]
fn requests_need_room() {
    let table = [
        ("", "{requests: {cpu: 4, memory: 8Gi}}", "fits"),
        ("", "{requests: {cpu: 4001m}}", "Insufficient cpu: requested 4001m, used 0m of 4000m"),
        (
            "{requests: {cpu: 2500m}}",
            "{requests: {cpu: 2}}",
            "Insufficient cpu: requested 2000m, used 2500m of 4000m",
        ),
        (
            "{requests: {memory: 8Gi}}",
            "{requests: {memory: 1}}",
            "Insufficient memory: requested 1, used 8589934592 of 8589934592",
        ),
        // Overdrawn, but nothing more is asked for.
        ("{requests: {cpu: 9}}", "{requests: {memory: 1Gi}}", "fits"),
        ("{requests: {gpu.example/card: 1}}", "{requests: {gpu.example/card: 1}}", "fits"),
        (
            "{requests: {gpu.example/card: 1}}",
            "{requests: {gpu.example/card: 2}}",
            "Insufficient gpu.example/card: requested 2, used 1 of 2",
        ),
        (
            "",
            "{requests: {other.example/card: 1}}",
            "Insufficient other.example/card: requested 1, used 0 of 0",
        ),
        ("", "{requests: {other.example/card: 0}}", "fits"),
        (
            "",
            "{requests: {ephemeral-storage: 1}}",
            "Insufficient ephemeral-storage: requested 1, used 0 of 0",
        ),
        (
            "",
            "{requests: {hugepages-2Mi: 2Mi}}",
            "Insufficient hugepages-2Mi: requested 2097152, used 0 of 0",
        ),
        ("{}, {}", "{}", "fits"),
        ("{}, {}, {}", "{}", "Too many pods: 3 of 3"),
    ];
    for (pods, pod, expected) in table {
        one(pods, pod, expected);
    }
}

fn container(requests: &str) -> String {
    format!("{{name: c, resources: {{requests: {{{requests}}}}}}}")
}

fn sidecar(requests: &str) -> String {
    format!("{{name: s, restartPolicy: Always, resources: {{requests: {{{requests}}}}}}}")
}

/// Containers, initialisation, the rest of the specification; the cpu asked for, which is more than
/// there is, so that it is told.
#[test]
fn a_pod_asks_for_the_most_it_needs_at_one_time() {
    let table = [
        ([container("cpu: 3"), container("cpu: 2")].join(", "), String::new(), "", 5000),
        (container("cpu: 1"), container("cpu: 5"), "", 5000),
        (container("cpu: 3"), sidecar("cpu: 2"), "", 5000),
        (container("cpu: 1"), [sidecar("cpu: 2"), container("cpu: 4")].join(", "), "", 6000),
        (
            container("cpu: 1"),
            [container("cpu: 4"), sidecar("cpu: 3"), sidecar("cpu: 2")].join(", "),
            "",
            6000,
        ),
        (container("cpu: 4"), String::new(), "overhead: {cpu: 250m}", 4250),
        (container("cpu: 1"), String::new(), "resources: {requests: {cpu: 6}}", 6000),
        (
            container("cpu: 1"),
            String::new(),
            "resources: {requests: {cpu: 6}}, overhead: {cpu: 100m}",
            6100,
        ),
    ];
    for (containers, init, rest, cpu) in table {
        let rest = if rest.is_empty() { String::new() } else { format!(", {rest}") };
        let pod =
            format!("{{spec: {{containers: [{containers}], initContainers: [{init}]{rest}}}}}");
        one("", &pod, &format!("Insufficient cpu: requested {cpu}m, used 0m of 4000m"));
    }
}

/// A pod in the middle of a resize takes the most of what is written, granted and in force.
#[test]
fn a_resize_is_counted_while_it_lasts() {
    let resized = |written: &str, conditions: &str| {
        format!(
            "{{requests: {{cpu: {written}}}, status: {{conditions: [{conditions}], containerStatuses: [{{name: main, ready: true, restartCount: 0, image: i, imageID: i, allocatedResources: {{cpu: 2}}, resources: {{requests: {{cpu: 1}}}}}}]}}}}"
        )
    };
    let used = |used: &str| format!("Insufficient cpu: requested 4000m, used {used}m of 4000m");
    let infeasible = "{type: PodResizePending, status: 'True', reason: Infeasible}";
    one(&resized("1", ""), "{requests: {cpu: 4}}", &used("2000"));
    one(&resized("3", ""), "{requests: {cpu: 4}}", &used("3000"));
    one(&resized("3", infeasible), "{requests: {cpu: 4}}", &used("2000"));
}

#[test]
fn host_ports_are_taken_once() {
    let taken = "node does not have free port 80";
    let table = [
        ("{hostPort: 80}", "{hostPort: 80}", taken),
        ("{hostPort: 80}", "{hostPort: 81}", "fits"),
        ("{hostPort: 80}", "{hostPort: 80, protocol: UDP}", "fits"),
        ("{hostPort: 80, protocol: TCP}", "{hostPort: 80}", taken),
        ("{hostPort: 80, hostIP: 10.0.0.1}", "{hostPort: 80, hostIP: 10.0.0.2}", "fits"),
        ("{hostPort: 80, hostIP: 10.0.0.1}", "{hostPort: 80, hostIP: 10.0.0.1}", taken),
        ("{hostPort: 80, hostIP: 10.0.0.1}", "{hostPort: 80}", taken),
        ("{hostPort: 80, hostIP: 0.0.0.0}", "{hostPort: 80, hostIP: 10.0.0.1}", taken),
        ("{containerPort: 80}", "{containerPort: 80}", "fits"),
    ];
    for (used, wanted, expected) in table {
        one(&format!("{{ports: [{used}]}}"), &format!("{{ports: [{wanted}]}}"), expected);
    }
    let sidecar = "{spec: {containers: [{name: c}], initContainers: [{name: s, restartPolicy: Always, ports: [{hostPort: 80}]}]}}";
    one(sidecar, "{ports: [{hostPort: 80}]}", taken);
    let step =
        "{spec: {containers: [{name: c}], initContainers: [{name: s, ports: [{hostPort: 80}]}]}}";
    one(step, "{ports: [{hostPort: 80}]}", "fits");
}
