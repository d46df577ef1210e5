//! The rules as a ValidatingAdmissionPolicy and its binding.

use serde_json::{Value, json};

use super::Refusal;
use crate::core::names::{Names, RingName};
use crate::core::spec::{GroupResource, Identity, Spec};

/// Bound tokens carry the pod they were made for, and die with it.
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";

/// Whose object it is cannot be seen there, so an owner is refused as well: it has another way.
const SCALE_OF_INSTANCE: &str = "!variables.isInstance || !variables.isScale";

const NOT_OWNER: &str = "\
request.operation == 'CREATE' || !variables.isInstance ||
(variables.me != '' && variables.shardBefore == variables.me) ||
(!variables.isMain && !variables.hasShardBefore)";

const NOT_AN_ACKNOWLEDGEMENT: &str = "\
request.operation != 'UPDATE' || !variables.isInstance || variables.isUntouched ||
(variables.hasDrainBefore && !variables.hasShardAfter && !variables.hasDrainAfter)";

const LABELLED_AT_CREATION: &str = "\
request.operation != 'CREATE' || (!variables.hasDrainAfter && (!variables.hasShardAfter ||
(variables.isInstance && variables.me != '' && variables.shardAfter == variables.me &&
object.metadata.?ownerReferences.orValue([]).exists(owner, owner.?controller.orValue(false)))))";

const NOT_YOURS: &str = "\
request.operation != 'UPDATE' || variables.isInstance || variables.isSharder ||
variables.isUntouched";

const IS_UNTOUCHED: &str = "\
variables.hasShardBefore == variables.hasShardAfter &&
variables.shardBefore == variables.shardAfter &&
variables.hasDrainBefore == variables.hasDrainAfter &&
variables.drainBefore == variables.drainAfter";

/// What a ring's fence is made from.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    pub names: &'a Names,
    pub spec: &'a Spec,
    /// User names of the sharder.
    pub sharders: &'a [String],
}

/// What the policy of a ring is called, and its binding.
#[must_use]
pub fn name(ring: &RingName) -> String {
    format!("windlass-fence-{ring}")
}

/// The policy, and the binding that puts it in force.
#[must_use]
pub fn objects(options: &Options<'_>) -> [Value; 2] {
    let name = name(options.names.ring());
    let metadata = json!({"name": name, "labels": {"app.kubernetes.io/name": "windlass-sharder"}});
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            // A policy that cannot be evaluated protects nothing if it lets everything pass.
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": rules(options.spec)},
            "variables": variables(options),
            "validations": [
                refuse(SCALE_OF_INSTANCE, Refusal::ScaleOfInstance),
                refuse(NOT_OWNER, Refusal::NotOwner),
                refuse(NOT_AN_ACKNOWLEDGEMENT, Refusal::NotAnAcknowledgement),
                refuse(LABELLED_AT_CREATION, Refusal::LabelledAtCreation),
                refuse(NOT_YOURS, Refusal::NotYours),
            ],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    });
    [policy, binding]
}

fn rules(spec: &Spec) -> Vec<Value> {
    let rule = |of: GroupResource| {
        let GroupResource { group, resource } = of;
        let parts = [resource.clone(), format!("{resource}/status"), format!("{resource}/scale")];
        json!({
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE", "DELETE"],
            "resources": parts,
        })
    };
    main(spec).into_iter().chain(controlled(spec)).map(rule).collect()
}

/// Each only uses those before it.
fn variables(options: &Options<'_>) -> Vec<Value> {
    let Options { names, spec, sharders } = options;
    let main: Vec<String> =
        main(spec).iter().map(|it| format!("{}/{}", it.group, it.resource)).collect();
    let (shard, drain) = (json!(names.shard_label()), json!(names.drain_label()));
    let labels = |of: &str| format!("{of} == null ? {{}} : {of}.metadata.?labels.orValue({{}})");
    let value = |of: &str, key: &Value| format!("variables.{of}[?{key}].orValue('')");
    let has = |of: &str, key: &Value| format!("{key} in variables.{of}");
    let all = [
        ("user", "request.userInfo.username".to_owned()),
        ("isSharder", format!("variables.user in {}", json!(sharders))),
        ("isInstance", is_instance(spec)),
        ("me", me(spec)),
        (
            "isMain",
            format!(
                "(request.resource.group + '/' + request.resource.resource) in {}",
                json!(main)
            ),
        ),
        ("isScale", "request.?subResource.orValue('') == 'scale'".to_owned()),
        ("before", labels("oldObject")),
        ("after", labels("object")),
        ("hasShardBefore", has("before", &shard)),
        ("hasShardAfter", has("after", &shard)),
        ("hasDrainBefore", has("before", &drain)),
        ("hasDrainAfter", has("after", &drain)),
        ("shardBefore", value("before", &shard)),
        ("shardAfter", value("after", &shard)),
        ("drainBefore", value("before", &drain)),
        ("drainAfter", value("after", &drain)),
        ("isUntouched", IS_UNTOUCHED.to_owned()),
    ];
    let variable =
        |(name, expression): (&str, String)| json!({"name": name, "expression": expression});
    all.into_iter().map(variable).collect()
}

fn is_instance(spec: &Spec) -> String {
    let user = |account: &String| match account.split_once('/') {
        Some((namespace, name)) => format!("system:serviceaccount:{namespace}:{name}"),
        None => account.clone(),
    };
    let users: Vec<String> = spec.instances.service_accounts.iter().map(user).collect();
    let is_listed = format!("variables.user in {}", json!(users));
    match &spec.instances.username_prefix {
        Some(prefix) => format!("{is_listed} || variables.user.startsWith({})", json!(prefix)),
        None => is_listed,
    }
}

/// The id that the writer's credentials prove; empty if they prove none.
fn me(spec: &Spec) -> String {
    let prefix = spec.instances.username_prefix.as_deref().unwrap_or_default();
    match spec.instances.identity {
        Identity::Username => format!(
            "variables.user.startsWith({prefix}) ? variables.user.substring({}) : ''",
            prefix.chars().count(),
            prefix = json!(prefix),
        ),
        Identity::PodName => format!(
            "request.userInfo.?extra[?'{POD_NAME}'].orValue([]).size() == 1 ? \
             request.userInfo.extra['{POD_NAME}'][0] : ''"
        ),
    }
}

fn main(spec: &Spec) -> Vec<GroupResource> {
    spec.resources.iter().map(crate::core::spec::Resource::group_resource).collect()
}

fn controlled(spec: &Spec) -> Vec<GroupResource> {
    let all = spec.resources.iter().flat_map(|resource| &resource.controlled);
    let mut all: Vec<GroupResource> =
        all.map(crate::core::spec::Controlled::group_resource).collect();
    all.sort();
    all.dedup();
    all
}

/// Refuses what does not satisfy the expression.
fn refuse(expression: &str, refusal: Refusal) -> Value {
    json!({"expression": expression, "message": refusal.to_string(), "reason": "Forbidden"})
}
