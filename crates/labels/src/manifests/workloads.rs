//! The pods: one Deployment for each service and a budget for disruptions.
//!
//! They must run while Nodes still lack their labels, so they select no Node by label and
//! tolerate the taint that keeps other pods off a Node until its labels are back.

use serde_json::{Value, json};

use super::{Account, Options, metadata};
use crate::options::Namespaces;

/// Where health and metrics are served, to the kubelet and to Prometheus.
const PORT: u16 = 9180;

/// Any user but root; this one has no entry in the image's user table.
const USER: u32 = 65532;

/// Longer than a processor's requests and locks need to end.
const STOP_SECONDS: u32 = 30;

pub(super) fn objects(options: &Options, account: Account) -> [Value; 2] {
    [deployment(options, account), disruption_budget(options, account)]
}

fn deployment(options: &Options, account: Account) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(account, Some(&options.home)),
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": account.selector()},
            "template": {
                "metadata": {"labels": account.selector()},
                "spec": pod(options, account),
            },
        },
    })
}

fn pod(options: &Options, account: Account) -> Value {
    json!({
        "serviceAccountName": account.name(),
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
            "labelSelector": {"matchLabels": account.selector()},
        }],
        "tolerations": [
            {"key": "labels.windlass.dev/restore-pending", "operator": "Exists"},
            {"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"},
        ],
        "containers": [container(options, account)],
    })
}

fn container(options: &Options, account: Account) -> Value {
    json!({
        "name": account.component(),
        "image": options.image,
        "args": arguments(&options.stores, account),
        "ports": [{"name": "http", "containerPort": PORT}],
        "livenessProbe": probe("/livez", 6),
        "readinessProbe": probe("/readyz", 2),
        "resources": {
            "requests": {"cpu": "50m", "memory": "64Mi"},
            "limits": {"memory": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
    })
}

fn arguments(stores: &Namespaces, account: Account) -> Vec<String> {
    let command = match account {
        Account::Watcher => "watch",
        Account::Processor => "process",
    };
    let mut arguments = vec!["labels".to_owned(), command.to_owned()];
    arguments.push(format!("--listen=0.0.0.0:{PORT}"));
    arguments.push(format!("--transaction-namespace={}", stores.transactions));
    arguments.push(format!("--metadata-namespace={}", stores.metadata));
    arguments.push(format!("--checkpoint-namespace={}", stores.checkpoints));
    arguments
}

fn probe(path: &str, failures: u32) -> Value {
    json!({
        "httpGet": {"path": path, "port": "http"},
        "periodSeconds": 10,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    })
}

fn disruption_budget(options: &Options, account: Account) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(account, Some(&options.home)),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": account.selector()}},
    })
}
