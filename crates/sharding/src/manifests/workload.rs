//! The pods: one Deployment, of which one pod leads and the others stand by, and a budget for
//! disruptions.

use serde_json::{Value, json};

use super::{NAME, Options, metadata, selector};

/// Where health and metrics are served, to the kubelet and to Prometheus.
const PORT: u16 = 9181;

/// Any user but root; this one has no entry in the image's user table.
const USER: u32 = 65532;

/// Longer than requests under way need to end, and the lead to be given up.
const STOP_SECONDS: u32 = 30;

pub(super) fn objects(options: &Options) -> [Value; 2] {
    [deployment(options), disruption_budget(options)]
}

fn deployment(options: &Options) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(NAME, Some(&options.home)),
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": selector()},
            "template": {"metadata": {"labels": selector()}, "spec": pod(options)},
        },
    })
}

fn pod(options: &Options) -> Value {
    json!({
        "serviceAccountName": NAME,
        "automountServiceAccountToken": true,
        "terminationGracePeriodSeconds": STOP_SECONDS,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector()},
        }],
        "containers": [container(options)],
    })
}

fn container(options: &Options) -> Value {
    json!({
        "name": "sharder",
        "image": options.image,
        "args": [
            "sharder",
            "run",
            format!("--listen=0.0.0.0:{PORT}"),
            format!("--sharder-namespace={}", options.home),
        ],
        // What a pass leaves is given back at once: an idle sharder allocates too little for it to be
        // noticed later.
        "env": [{"name": "MIMALLOC_PURGE_DELAY", "value": "0"}],
        "ports": [{"name": "http", "containerPort": PORT}],
        "livenessProbe": probe("/livez", 6),
        "readinessProbe": probe("/readyz", 2),
        "resources": {
            "requests": {"cpu": "50m", "memory": "32Mi"},
            "limits": {"memory": "128Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
    })
}

fn probe(path: &str, failures: u32) -> Value {
    json!({
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": 10,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    })
}

fn disruption_budget(options: &Options) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(NAME, Some(&options.home)),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector()}},
    })
}
