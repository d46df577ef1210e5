//! What one ring needs besides itself: the sharder's right to label its kinds, the rights of its
//! instances, and the fence where the administrator keeps it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{access, user};
use crate::core::fence;
use crate::core::names::RingName;
use crate::core::spec::{Controlled, Fence, Resource, Spec};

/// Labels are read and patched; whatever else a controller does with its kinds it may do already.
const VERBS: [&str; 4] = ["get", "list", "watch", "patch"];

/// In an order in which they can be created. `home` is the sharder's namespace.
#[must_use]
pub fn objects(name: &RingName, spec: &Spec, home: &str) -> Vec<Value> {
    let kinds = kinds(spec);
    let mut objects = vec![access::added_role(&format!("windlass-sharder-ring-{name}"), &kinds)];
    objects.extend(instance_rights(name, spec, &kinds));
    if spec.fence == Fence::External {
        let (names, sharders) = (spec.names(name.clone()), [user(home)]);
        let options = fence::Options { names: &names, spec, sharders: &sharders };
        objects.extend(fence::objects(&options));
    }
    objects
}

/// The role, and its bindings for accounts that the ring names. Users known by a prefix cannot be
/// listed, so nothing is bound for them.
fn instance_rights(name: &RingName, spec: &Spec, kinds: &[Value]) -> Vec<Value> {
    let role = format!("windlass-ring-{name}-instance");
    let ring = json!({
        "apiGroups": ["windlass.dev"],
        "resources": ["rings"],
        "resourceNames": [name],
        "verbs": ["get"],
    });
    let rules: Vec<Value> = std::iter::once(ring).chain(kinds.iter().cloned()).collect();
    let mut objects = vec![access::cluster_role(&role, &rules)];
    let accounts = accounts(spec);
    if accounts.is_empty() {
        return objects;
    }
    let all: Vec<Value> = accounts.values().flatten().cloned().collect();
    objects.push(access::cluster_binding(&role, &role, &json!(all)));
    let leases = accounts.into_iter().map(|(namespace, accounts)| {
        access::binding(&role, namespace, access::INSTANCE, &json!(accounts))
    });
    objects.extend(leases);
    objects
}

/// The instances' accounts as subjects, by namespace.
fn accounts(spec: &Spec) -> BTreeMap<&str, Vec<Value>> {
    let mut accounts: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    let named = spec.instances.service_accounts.iter().filter_map(|text| text.split_once('/'));
    for (namespace, name) in named {
        let subject = json!({"kind": "ServiceAccount", "name": name, "namespace": namespace});
        accounts.entry(namespace).or_default().push(subject);
    }
    accounts
}

/// One rule for each group of the ring's kinds.
fn kinds(spec: &Spec) -> Vec<Value> {
    let main = spec.resources.iter().map(Resource::group_resource);
    let controlled = spec.resources.iter().flat_map(|resource| &resource.controlled);
    let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for kind in main.chain(controlled.map(Controlled::group_resource)) {
        groups.entry(kind.group).or_default().insert(kind.resource);
    }
    let rule = |(group, resources): (String, BTreeSet<String>)| json!({"apiGroups": [group], "resources": resources, "verbs": VERBS});
    groups.into_iter().map(rule).collect()
}
