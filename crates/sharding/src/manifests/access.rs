//! What the sharder may do, and nothing more: by one role what it does for every ring, by another
//! what it needs to keep fences, and by a third, to which rings add, what it does with their kinds.

use serde_json::{Value, json};

use super::{NAME, Options, metadata};

const RBAC: &str = "rbac.authorization.k8s.io";
const RBAC_V1: &str = "rbac.authorization.k8s.io/v1";

/// Needed only where a ring says `fence: Managed`; without it such a ring is not fenced, and says so.
const FENCE: &str = "windlass-sharder-fence";
/// Empty until rings add to it.
const RINGS: &str = "windlass-sharder-rings";
/// What every instance does with its own Lease. Bound in the namespaces where instances run.
pub(super) const INSTANCE: &str = "windlass-sharder-instance";

/// A role with this label adds to what the sharder may do.
const ADDS_TO_RINGS: &str = "sharding.windlass.dev/aggregate-to-sharder";

/// Verbs on one resource.
struct Right {
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
}

const BASE_RIGHTS: &[Right] = &[
    right("windlass.dev", "rings", &["get", "list", "watch", "update", "patch"]),
    right("windlass.dev", "rings/status", &["get", "update", "patch"]),
    right("coordination.k8s.io", "leases", EVERYTHING),
    right("", "namespaces", &["get", "list", "watch"]),
    right("events.k8s.io", "events", &["create", "patch"]),
];

const FENCE_RIGHTS: &[Right] = &[
    right("admissionregistration.k8s.io", "validatingadmissionpolicies", EVERYTHING),
    right("admissionregistration.k8s.io", "validatingadmissionpolicybindings", EVERYTHING),
];

const INSTANCE_RIGHTS: &[Right] = &[
    right("coordination.k8s.io", "leases", &["get", "create", "update", "patch"]),
    right("apps", "statefulsets", &["get"]),
];

const EVERYTHING: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete"];

/// The roles, each with its binding. That of instances is bound by rings.
pub(super) fn objects(options: &Options) -> Vec<Value> {
    let subjects = json!([{"kind": "ServiceAccount", "name": NAME, "namespace": options.home}]);
    let mut objects = vec![role(NAME, BASE_RIGHTS), role(FENCE, FENCE_RIGHTS), rings()];
    objects.push(role(INSTANCE, INSTANCE_RIGHTS));
    objects.extend([NAME, FENCE, RINGS].map(|name| cluster_binding(name, name, &subjects)));
    objects
}

/// `name` lets `subjects` do everywhere what `role` says.
pub(super) fn cluster_binding(name: &str, role: &str, subjects: &Value) -> Value {
    json!({
        "apiVersion": RBAC_V1,
        "kind": "ClusterRoleBinding",
        "metadata": metadata(name, None),
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": subjects,
    })
}

/// The same in one namespace.
pub(super) fn binding(name: &str, namespace: &str, role: &str, subjects: &Value) -> Value {
    let mut binding = cluster_binding(name, role, subjects);
    binding["kind"] = json!("RoleBinding");
    binding["metadata"] = metadata(name, Some(namespace));
    binding
}

pub(super) fn cluster_role(name: &str, rules: &[Value]) -> Value {
    json!({
        "apiVersion": RBAC_V1,
        "kind": "ClusterRole",
        "metadata": metadata(name, None),
        "rules": rules,
    })
}

/// A role whose rules the sharder gets too.
pub(super) fn added_role(name: &str, rules: &[Value]) -> Value {
    let mut role = cluster_role(name, rules);
    role["metadata"]["labels"][ADDS_TO_RINGS] = json!("true");
    role
}

fn role(name: &str, rights: &[Right]) -> Value {
    let rule = |right: &Right| json!({"apiGroups": [right.group], "resources": [right.resource], "verbs": right.verbs});
    cluster_role(name, &rights.iter().map(rule).collect::<Vec<_>>())
}

/// Says nothing of rules: Kubernetes gathers them, and an empty list applied again would take them
/// all away for a moment.
fn rings() -> Value {
    json!({
        "apiVersion": RBAC_V1,
        "kind": "ClusterRole",
        "metadata": metadata(RINGS, None),
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {ADDS_TO_RINGS: "true"}}]},
    })
}

const fn right(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
) -> Right {
    Right { group, resource, verbs }
}
