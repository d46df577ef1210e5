//! Whether a fence that somebody else installed refuses all that ours would.

use serde_json::Value;

/// Where a policy, or its binding, could be told to look away.
const NARROWINGS: [&str; 5] = [
    "/spec/matchConditions",
    "/spec/matchConstraints/namespaceSelector",
    "/spec/matchConstraints/objectSelector",
    "/spec/matchConstraints/excludeResourceRules",
    "/spec/matchResources",
];
/// The variable in which whoever installs a fence says who the sharder is.
const SHARDERS: &str = "isSharder";

/// Whether `found`, a policy or a binding as the server has it, does all that `wanted` does. It may do
/// more: refuse more, or more kinds.
#[must_use]
pub fn covers(wanted: &Value, found: &Value) -> bool {
    let is_narrowed = NARROWINGS.iter().any(|path| found.pointer(path).is_some_and(says_something));
    !is_narrowed && has(&prepared(wanted), found)
}

/// Who the sharder is, we are not asked; and a rule is to count for objects with a namespace and
/// without, which the server writes down.
fn prepared(wanted: &Value) -> Value {
    let mut spec = wanted["spec"].clone();
    let variables = spec.get_mut("variables").and_then(Value::as_array_mut);
    for variable in variables.into_iter().flatten() {
        if variable["name"] == SHARDERS
            && let Some(variable) = variable.as_object_mut()
        {
            variable.remove("expression");
        }
    }
    let rules = spec.pointer_mut("/matchConstraints/resourceRules").and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten() {
        rule["scope"] = Value::from("*");
    }
    serde_json::json!({"spec": spec})
}

/// Whether everything in `wanted` is in `found`, lists in any order.
fn has(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => {
            wanted.iter().all(|(key, value)| found.get(key).is_some_and(|it| has(value, it)))
        }
        (Value::Array(wanted), Value::Array(found)) => {
            wanted.iter().all(|value| found.iter().any(|it| has(value, it)))
        }
        _ => wanted == found,
    }
}

/// Not absent, and not empty through and through.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(values) => !values.is_empty(),
        // By default, what a rule says of one version counts for the others too.
        Value::Object(fields) => {
            fields.iter().any(|(key, value)| key != "matchPolicy" && says_something(value))
        }
        _ => true,
    }
}
