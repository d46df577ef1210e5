//! What users write, with the defaults of [`crate::core::spec`] and the rules of its `check`. Rules
//! that compare with `oldSelf` hold between two versions of a Ring.

use serde_json::{Value, json};

use super::{choice, number, rule, text};
use crate::core::names::PREFIX_DEFAULT;
use crate::core::partition::slots::{SLOTS_DEFAULT, SLOTS_MAX, SLOTS_MIN};
use crate::core::spec::{Handover, Partitioning, RESOURCES_MAX, Restart};

/// The server weighs a rule by the most it could have to compare, so everything has a most.
const CONTROLLED_MAX: usize = 32;
const SERVICE_ACCOUNTS_MAX: usize = 64;
const NAME_CHARACTERS_MAX: usize = 253;
const ACCOUNT_CHARACTERS_MAX: usize = 317;
/// What is left of a subdomain beside `shard.`.
const PREFIX_CHARACTERS_MAX: usize = 247;
const DAY_SECONDS: u64 = 24 * 60 * 60;
const CONCURRENT_MOVES_MAX: u64 = 1000;

const SUBDOMAIN: &str = "\
self.matches('^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?([.][a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$')";

const NOT_MAIN_AND_CONTROLLED: &str = "\
self.resources.all(main, !has(main.controlled) || main.controlled.all(controlled,
!self.resources.exists(other,
other.resource == controlled.resource && other.group == controlled.group)))";

const PRESET_NEEDS_RING: &str = "!has(self.names.preset) || self.partitioning.algorithm == 'Ring'";

const FENCE_NEEDS_INSTANCES: &str = "\
self.fence == 'Off' || size(self.instances.serviceAccounts) > 0 ||
(has(self.instances.usernamePrefix) && self.instances.usernamePrefix != '')";

const USERNAME_NEEDS_PREFIX: &str = "\
self.identity != 'Username' || (has(self.usernamePrefix) && self.usernamePrefix != '')";

pub(super) fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["resources"],
        "properties": {
            "resources": resources(),
            "namespaceSelector": selector(
                "Whose objects are spread; without it, those of all namespaces but kube-system and \
                 the sharder's. Objects without a namespace always are.",
            ),
            "instances": instances(),
            "partitioning": partitioning(),
            "assignment": with_default(
                choice("How objects get their instance: by the sharder, which watches them.", &["Watch"]),
                json!("Watch"),
            ),
            "handover": handover(),
            "restart": restart(),
            "fence": with_default(
                choice(
                    "Whether the API server refuses writes of former owners: by a policy that the \
                     sharder keeps, by one that an administrator applies, or not.",
                    &["Managed", "External", "Off"],
                ),
                json!("Managed"),
            ),
            "names": names(),
            "deletionPolicy": with_default(
                choice(
                    "What becomes of the labels when the Ring is deleted.",
                    &["StripLabels", "KeepLabels"],
                ),
                json!("StripLabels"),
            ),
        },
        "x-kubernetes-validations": [
            rule(NOT_MAIN_AND_CONTROLLED, "a resource is either a main one or controlled, not both"),
            rule(PRESET_NEEDS_RING, "names.preset Timebertt needs partitioning.algorithm Ring"),
            rule(
                FENCE_NEEDS_INSTANCES,
                "a fence needs instances.serviceAccounts or instances.usernamePrefix; or say fence: Off",
            ),
        ],
    })
}

fn resources() -> Value {
    json!({
        "type": "array",
        "description": "The kinds whose objects are spread.",
        "minItems": 1,
        "maxItems": RESOURCES_MAX,
        // A map, so that none stands there twice and two appliers can each own one.
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["group", "resource"],
        "items": resource(),
    })
}

pub(super) fn resource() -> Value {
    let mut properties = group_resource();
    properties["key"] = with_default(
        choice(
            "What objects are spread by: their own name, or that of their namespace, which keeps \
             its objects together.",
            &["Self", "Namespace"],
        ),
        json!("Self"),
    );
    properties["shared"] = json!({
        "type": "boolean",
        "default": false,
        "description": "Whether another ring may have the resource too. It must say the same.",
    });
    properties["controlled"] = controlled();
    json!({"type": "object", "required": ["resource"], "properties": properties})
}

fn controlled() -> Value {
    let mut properties = group_resource();
    properties["selector"] =
        selector("Which of them are watched; without it, all that have a controller.");
    json!({
        "type": "array",
        "description": "The kinds of the objects they own, which follow them.",
        "maxItems": CONTROLLED_MAX,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["group", "resource"],
        "items": {"type": "object", "required": ["resource"], "properties": properties},
    })
}

fn group_resource() -> Value {
    json!({
        "group": {
            "type": "string",
            "default": "",
            "maxLength": NAME_CHARACTERS_MAX,
            "description": "The API group; empty for Kubernetes' first kinds.",
        },
        "resource": {
            "type": "string",
            "minLength": 1,
            "maxLength": NAME_CHARACTERS_MAX,
            "description": "The plural that stands in URLs, such as deployments.",
        },
    })
}

fn instances() -> Value {
    let identity = choice(
        "How the fence learns an instance's id: from the pod in its token, or from its user name, \
         which is the prefix and the id.",
        &["PodName", "Username"],
    );
    with_own_defaults(json!({
        "type": "object",
        "description": "Whom the fence treats as an instance.",
        "properties": {
            "serviceAccounts": {
                "type": "array",
                "description": "The accounts of instances, namespace/name each.",
                "default": [],
                "maxItems": SERVICE_ACCOUNTS_MAX,
                "x-kubernetes-list-type": "set",
                "items": {
                    "type": "string",
                    "maxLength": ACCOUNT_CHARACTERS_MAX,
                    "x-kubernetes-validations":
                        [rule("self.matches('^[^/]+/[^/]+$')", "write namespace/name")],
                },
            },
            "identity": with_default(identity, json!("PodName")),
            "usernamePrefix": {
                "type": "string",
                "maxLength": NAME_CHARACTERS_MAX,
                "description": "With what the user names of instances begin.",
            },
        },
        "x-kubernetes-validations": [
            rule(USERNAME_NEEDS_PREFIX, "identity Username needs usernamePrefix"),
        ],
    }))
}

fn partitioning() -> Value {
    let defaults = Partitioning::default();
    let algorithm = choice(
        "A table of slots, or consistent hashing as in the design; cannot be changed.",
        &["Slots", "Ring"],
    );
    let slots: Vec<usize> = std::iter::successors(Some(SLOTS_MIN), |slots| Some(slots * 2))
        .take_while(|slots| *slots <= SLOTS_MAX)
        .collect();
    with_own_defaults(json!({
        "type": "object",
        "description": "How objects are divided among instances.",
        "properties": {
            "algorithm": immutable(with_default(algorithm, json!("Slots")), "partitioning.algorithm"),
            "slots": immutable(
                json!({
                    "type": "integer",
                    "enum": slots,
                    "default": SLOTS_DEFAULT,
                    "description": "Into how many slots; at least four times the instances; cannot be changed.",
                }),
                "partitioning.slots",
            ),
            "maxImbalancePercent": with_default(
                number("How far above the mean an instance may be.", 0, 100),
                json!(defaults.max_imbalance_percent),
            ),
            "maxMovePercent": with_default(
                number("How many slots at most are moved in ten minutes for balance alone.", 0, 100),
                json!(defaults.max_move_percent),
            ),
        },
    }))
}

fn handover() -> Value {
    let defaults = Handover::default();
    with_own_defaults(json!({
        "type": "object",
        "description": "How an object passes from a ready instance to another.",
        "properties": {
            "drainTimeoutSeconds": with_default(
                number("By when its instance is to give it up.", 1, DAY_SECONDS),
                json!(defaults.drain_timeout_seconds),
            ),
            "graceSeconds": with_default(
                number("How long a reconcile under way may go on.", 0, DAY_SECONDS),
                json!(defaults.grace_seconds),
            ),
            "force": with_default(
                choice(
                    "What becomes of an object that is not given up in time.",
                    &["WhenSafe", "Always", "Never"],
                ),
                json!("WhenSafe"),
            ),
            "concurrentMoves": with_default(
                number("How many objects are under way at once.", 1, CONCURRENT_MOVES_MAX),
                json!(defaults.concurrent_moves),
            ),
        },
        "x-kubernetes-validations": [rule(
            "self.graceSeconds < self.drainTimeoutSeconds",
            "graceSeconds must be less than drainTimeoutSeconds",
        )],
    }))
}

fn restart() -> Value {
    let description = "How long the objects of an instance that said it will be back wait for it.";
    with_own_defaults(json!({
        "type": "object",
        "properties": {
            "maxHoldSeconds": with_default(
                number(description, 0, DAY_SECONDS),
                json!(Restart::default().max_hold_seconds),
            ),
        },
    }))
}

fn names() -> Value {
    let schema = json!({
        "type": "object",
        "description": "What labels and annotations are called; cannot be changed.",
        "properties": {
            "prefix": {
                "type": "string",
                "default": PREFIX_DEFAULT,
                "maxLength": PREFIX_CHARACTERS_MAX,
                "description": "In place of windlass.dev.",
                "x-kubernetes-validations": [rule(SUBDOMAIN, "names.prefix is a DNS subdomain")],
            },
            "preset": choice(
                "The names of timebertt/kubernetes-controller-sharding, whose controllers then run \
                 unchanged.",
                &["Timebertt"],
            ),
        },
    });
    immutable(with_own_defaults(schema), "names")
}

fn selector(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "properties": {
            "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
            "matchExpressions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": text("The label."),
                        "operator": choice(
                            "What must hold of it.",
                            &["In", "NotIn", "Exists", "DoesNotExist"],
                        ),
                        "values": {"type": "array", "items": {"type": "string"}},
                    },
                },
            },
        },
    })
}

fn with_default(mut schema: Value, default: Value) -> Value {
    schema["default"] = default;
    schema
}

/// The defaults of its fields, together: the server judges a default as it stands there, before it
/// fills in anything.
fn with_own_defaults(schema: Value) -> Value {
    let fields = schema["properties"].as_object().into_iter().flatten();
    let defaults =
        fields.filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone())));
    let defaults = defaults.collect();
    with_default(schema, Value::Object(defaults))
}

fn immutable(mut schema: Value, field: &str) -> Value {
    let message = format!("{field} cannot be changed; create another Ring");
    schema["x-kubernetes-validations"] = json!([rule("self == oldSelf", &message)]);
    schema
}
