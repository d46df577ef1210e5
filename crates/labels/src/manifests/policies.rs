//! Two admission policies, for what RBAC cannot say: who may write to the stores however wide
//! their rights are, and which parts of a Node the processor may change.

use serde_json::{Value, json};

use super::{Account, Options};

const STORE: &str = "windlass-labels-store";
const NODE: &str = "windlass-labels-node";

/// The control plane publishes its authority into every namespace and empties one that is
/// deleted. Without `--use-service-account-credentials` all of it runs as the last.
const CONTROL_PLANE: [&str; 4] = [
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:root-ca-cert-publisher",
    "system:kube-controller-manager",
];

/// Absent and empty mean the same to the API server, so they do here.
const SAME_SPEC: &str = "object.?spec == oldObject.?spec";
const SAME_OWNERS: &str = "\
object.metadata.?finalizers.orValue([]) == oldObject.metadata.?finalizers.orValue([]) &&
object.metadata.?ownerReferences.orValue([]) == oldObject.metadata.?ownerReferences.orValue([])";
const SAME_ANNOTATIONS: &str = "\
variables.before.all(key, key == variables.ours ||
  (key in variables.after && variables.after[key] == variables.before[key])) &&
variables.after.all(key, key == variables.ours || key in variables.before)";
const IS_KNOWN: &str = "\
request.userInfo.username in variables.users ||
request.userInfo.?groups.orValue([]).exists(group, group in variables.groups)";

/// Each policy, and the binding that puts it in force.
pub(super) fn objects(options: &Options) -> [Value; 4] {
    [store(options), binding(STORE), node(options), binding(NODE)]
}

/// What stands in the stores ends up on Nodes, so writing there is writing labels.
fn store(options: &Options) -> Value {
    let accounts = Account::ALL.map(|account| account.user(&options.home));
    let control_plane = CONTROL_PLANE.map(str::to_owned);
    let users: Vec<&String> = accounts.iter().chain(&control_plane).collect();
    policy(
        STORE,
        json!({
            "matchConstraints": {
                "namespaceSelector": {"matchExpressions": [{
                    "key": "kubernetes.io/metadata.name",
                    "operator": "In",
                    "values": super::stores(options),
                }]},
                "resourceRules": [
                    rule("", &["configmaps"]),
                    rule("coordination.k8s.io", &["leases"]),
                ],
            },
            "variables": [
                {"name": "users", "expression": list(&users)},
                {"name": "groups", "expression": list(&options.admin_groups)},
            ],
            "validations": [refuse(
                IS_KNOWN,
                "only the windlass labels service and its administrators write here",
            )],
        }),
    )
}

/// RBAC lets the processor patch Nodes; it cannot say which fields.
fn node(options: &Options) -> Value {
    let processor = Account::Processor.user(&options.home);
    let ours = crate::core::keys::MARKER_ANNOTATION;
    let annotations = |of: &str| format!("{of}.metadata.?annotations.orValue({{}})");
    policy(
        NODE,
        json!({
            "matchConstraints": {"resourceRules": [rule("", &["nodes", "nodes/*"])]},
            "matchConditions": [{
                "name": "processor",
                "expression": format!("request.userInfo.username == '{processor}'"),
            }],
            "variables": [
                {"name": "ours", "expression": format!("'{ours}'")},
                {"name": "before", "expression": annotations("oldObject")},
                {"name": "after", "expression": annotations("object")},
            ],
            "validations": [
                refuse(
                    "request.operation == 'UPDATE' && request.?subResource.orValue('') == ''",
                    "the windlass labels processor neither makes nor deletes Nodes, nor changes their status",
                ),
                refuse(SAME_SPEC, "the windlass labels processor does not change the spec of a Node"),
                refuse(
                    SAME_OWNERS,
                    "the windlass labels processor does not change the finalizers or owners of a Node",
                ),
                refuse(
                    SAME_ANNOTATIONS,
                    "of a Node's annotations the windlass labels processor changes only its own",
                ),
            ],
        }),
    )
}

fn policy(name: &str, spec: Value) -> Value {
    let mut policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "windlass-labels"}},
        "spec": spec,
    });
    // A policy that cannot be evaluated protects nothing if it lets everything pass.
    policy["spec"]["failurePolicy"] = json!("Fail");
    policy
}

fn binding(name: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": "windlass-labels"}},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    })
}

fn rule(group: &str, resources: &[&str]) -> Value {
    json!({
        "apiGroups": [group],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": resources,
    })
}

/// Refuses with the message what does not satisfy the expression.
fn refuse(expression: &str, message: &str) -> Value {
    json!({"expression": expression, "message": message, "reason": "Forbidden"})
}

/// A list of strings in CEL, whose escapes are those of JSON.
fn list(texts: &[impl AsRef<str>]) -> String {
    let items: Vec<String> =
        texts.iter().map(|text| format!("  {},\n", json!(text.as_ref()))).collect();
    format!("[\n{}]", items.concat())
}
