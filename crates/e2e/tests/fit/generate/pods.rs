//! Pods: what they ask for, and which rules they bear.

use chance::Chance;
use serde_json::{Value, json};

use super::{NAMESPACES, VOLUMES, rules};

/// A pod that has this node.
pub(super) fn bound(chance: &mut Chance, name: &str, node: &str) -> Value {
    let mut pod = plain(chance, name);
    pod["spec"]["nodeName"] = json!(node);
    if chance.once_in(6) {
        let terms = rules::pod_terms(chance);
        pod["spec"]["affinity"] = json!({"podAntiAffinity": required(terms)});
    }
    pod
}

/// A pod that looks for one, by few rules so that it often finds it.
pub(super) fn pending(chance: &mut Chance, seed: u64, number: usize) -> Value {
    let mut pod = plain(chance, &format!("w{seed}-pending-{number}"));
    let spec = &mut pod["spec"];
    if chance.once_in(8) {
        spec["nodeSelector"] = json!({"disk": chance.pick(&["ssd", "hdd"])});
    }
    spec["tolerations"] = json!(rules::tolerations(chance));
    let mut affinity = json!({});
    if chance.once_in(5) {
        let terms = json!({"nodeSelectorTerms": rules::node_terms(chance, seed)});
        affinity["nodeAffinity"] = required(terms);
    }
    if chance.once_in(5) {
        affinity["podAffinity"] = required(rules::pod_terms(chance));
    }
    if chance.once_in(5) {
        affinity["podAntiAffinity"] = required(rules::pod_terms(chance));
    }
    spec["affinity"] = affinity;
    if chance.once_in(3) {
        spec["topologySpreadConstraints"] = json!(rules::spread(chance));
    }
    if chance.once_in(6) {
        let (kind, _) = chance.pick(&VOLUMES);
        let claim = json!({"name": "data", "persistentVolumeClaim": {"claimName": kind}});
        spec["volumes"] = json!([claim]);
    }
    pod
}

fn required(what: Value) -> Value {
    json!({"requiredDuringSchedulingIgnoredDuringExecution": what})
}

fn plain(chance: &mut Chance, name: &str) -> Value {
    let labels = json!({
        "app": chance.pick(&["x", "y", "z"]),
        "tier": chance.pick(&["front", "back"]),
        "rev": chance.pick(&["1", "2"]),
    });
    let mut main = container(chance, "main");
    if chance.once_in(5) {
        let number = *chance.pick(&[8080, 9090]);
        main["ports"] = json!([port(chance, number)]);
    }
    let mut containers = vec![main];
    if chance.once_in(4) {
        containers.push(container(chance, "second"));
    }
    let mut spec = json!({
        "containers": containers,
        "initContainers": init_containers(chance),
        "terminationGracePeriodSeconds": 600,
    });
    // The whole may not ask for less than its parts do.
    if chance.once_in(8) {
        spec["resources"] = json!({"requests": {"cpu": "1200m", "memory": "1Gi"}});
    }
    let namespace = chance.pick(&NAMESPACES[..2]);
    json!({
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": spec,
    })
}

fn init_containers(chance: &mut Chance) -> Vec<Value> {
    if !chance.once_in(4) {
        return Vec::new();
    }
    let mut first = container(chance, "first-step");
    if chance.once_in(2) {
        first["restartPolicy"] = json!("Always");
        first["ports"] = json!([port(chance, 7070)]);
    }
    vec![first, container(chance, "second-step")]
}

fn container(chance: &mut Chance, name: &str) -> Value {
    let mut resources = json!({"requests": {}});
    if !chance.once_in(3) {
        resources["requests"]["cpu"] = json!(chance.pick(&["100m", "250m", "0.3", "333333u"]));
    }
    if !chance.once_in(3) {
        resources["requests"]["memory"] = json!(chance.pick(&["64Mi", "200M", "0.25Gi"]));
    }
    if chance.once_in(8) {
        resources["requests"]["ephemeral-storage"] = json!(chance.pick(&["100Mi", "900Mi"]));
    }
    if chance.once_in(10) {
        resources["limits"] = json!({"example.com/card": chance.pick(&["1", "2"])});
    }
    json!({"name": name, "image": "none", "resources": resources})
}

fn port(chance: &mut Chance, number: u16) -> Value {
    let mut port = json!({
        "containerPort": number,
        "hostPort": number,
        "protocol": chance.pick(&["TCP", "TCP", "UDP"]),
    });
    if chance.once_in(2) {
        port["hostIP"] = json!(chance.pick(&["10.0.0.1", "10.0.0.2", "0.0.0.0"]));
    }
    port
}
