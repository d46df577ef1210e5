//! What each account may do, and nothing more: the cluster's Nodes and Events by ClusterRole, the
//! stores by one Role in each.

use kubekit::access::Need;
use serde_json::{Value, json};

use super::{Account, Options, metadata};
use crate::options::Namespaces;

const CORE: &str = "";
const EVENTS: &str = "events.k8s.io";
const LEASES: &str = "coordination.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const RBAC_V1: &str = "rbac.authorization.k8s.io/v1";

/// Where a right holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Cluster,
    Transactions,
    Metadata,
    Checkpoints,
}

/// Verbs on one resource in one place.
struct Right {
    place: Place,
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
}

const WATCHER: &[Right] = &[
    right(Place::Cluster, CORE, "nodes", &["get", "list", "watch"]),
    right(Place::Cluster, EVENTS, "events", &["create", "patch"]),
    right(Place::Transactions, CORE, "configmaps", &["get", "list", "watch", "create"]),
    right(Place::Metadata, CORE, "configmaps", &["get", "list"]),
    right(Place::Checkpoints, CORE, "configmaps", EVERYTHING),
    right(Place::Checkpoints, LEASES, "leases", EVERYTHING),
];

const PROCESSOR: &[Right] = &[
    right(Place::Cluster, CORE, "nodes", &["get", "list", "watch", "patch"]),
    right(Place::Cluster, EVENTS, "events", &["create", "patch"]),
    right(Place::Transactions, CORE, "configmaps", &["get", "list", "watch", "patch", "delete"]),
    right(Place::Transactions, LEASES, "leases", &["get", "list", "create", "update", "delete"]),
    right(Place::Metadata, CORE, "configmaps", &["get", "list", "create", "update", "delete"]),
    right(Place::Checkpoints, LEASES, "leases", &["get", "create", "update"]),
];

const EVERYTHING: &[&str] = &["get", "list", "watch", "create", "update", "delete"];

/// The roles of one account, each with its binding.
pub(super) fn objects(options: &Options, account: Account) -> Vec<Value> {
    let places = [Place::Cluster, Place::Transactions, Place::Metadata, Place::Checkpoints];
    places.into_iter().flat_map(|place| role_and_binding(options, account, place)).collect()
}

fn role_and_binding(options: &Options, account: Account, place: Place) -> [Value; 2] {
    let namespace = place.namespace(&options.stores);
    let prefix = if namespace.is_some() { "" } else { "Cluster" };
    let metadata = metadata(account, namespace);
    let role = json!({
        "apiVersion": RBAC_V1,
        "kind": format!("{prefix}Role"),
        "metadata": metadata,
        "rules": rules(account, place),
    });
    let binding = json!({
        "apiVersion": RBAC_V1,
        "kind": format!("{prefix}RoleBinding"),
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": format!("{prefix}Role"), "name": account.name()},
        "subjects": [
            {"kind": "ServiceAccount", "name": account.name(), "namespace": options.home},
        ],
    });
    [role, binding]
}

/// The same rights, as the services ask about them before they rely on them.
pub(crate) fn needs(account: Account, stores: &Namespaces) -> Vec<Need> {
    let need = |right: &Right| {
        Need::each(right.verbs, right.group, right.resource, right.place.namespace(stores))
    };
    rights(account).iter().flat_map(need).collect()
}

fn rights(account: Account) -> &'static [Right] {
    match account {
        Account::Watcher => WATCHER,
        Account::Processor => PROCESSOR,
    }
}

fn rules(account: Account, place: Place) -> Vec<Value> {
    let rule = |right: &Right| json!({"apiGroups": [right.group], "resources": [right.resource], "verbs": right.verbs});
    rights(account).iter().filter(|right| right.place == place).map(rule).collect()
}

const fn right(
    place: Place,
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
) -> Right {
    Right { place, group, resource, verbs }
}

// === impl Place ===

impl Place {
    fn namespace(self, stores: &Namespaces) -> Option<&str> {
        match self {
            Self::Cluster => None,
            Self::Transactions => Some(&stores.transactions),
            Self::Metadata => Some(&stores.metadata),
            Self::Checkpoints => Some(&stores.checkpoints),
        }
    }
}
