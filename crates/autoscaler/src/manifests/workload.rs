//! The pods: one Deployment, of which one pod leads and the others stand by.

use serde_json::{Value, json};

use super::{CLOUD_CONFIG, NAME, Options, metadata, selector};
use crate::options::HOME;

/// Where health, metrics and answers are served.
const PORT: u16 = 8085;

/// Any user but root; this one has no entry in the image's user table.
const USER: u32 = 65532;

/// Longer than a call under way needs to end, and the lead to be given up.
const STOP_SECONDS: u32 = 30;

const CONFIG_PATH: &str = "/etc/windlass";

pub(super) fn objects(options: &Options) -> [Value; 2] {
    [deployment(options), disruption_budget()]
}

fn deployment(options: &Options) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(NAME, Some(HOME)),
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
        "priorityClassName": "system-cluster-critical",
        "terminationGracePeriodSeconds": STOP_SECONDS,
        "securityContext": {
            "runAsNonRoot": true,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container(options)],
        "volumes": [{"name": "cloud-config", "configMap": {"name": CLOUD_CONFIG}}],
    })
}

fn container(options: &Options) -> Value {
    json!({
        "name": "autoscaler",
        "image": options.image,
        "args": [
            "autoscaler",
            "run",
            format!("--cloud-config={CONFIG_PATH}/cloud-config"),
            format!("--address=:{PORT}"),
        ],
        "ports": [{"name": "http", "containerPort": PORT}],
        "livenessProbe": probe("/livez", 6),
        "readinessProbe": probe("/readyz", 2),
        "resources": {
            "requests": {"cpu": "100m", "memory": "128Mi"},
            "limits": {"memory": "2Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "cloud-config", "mountPath": CONFIG_PATH, "readOnly": true}],
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

fn disruption_budget() -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(NAME, Some(HOME)),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector()}},
    })
}
