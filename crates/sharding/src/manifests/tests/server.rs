//! As much of an API server as the definition of Rings relies on: defaults, bounds, keyed lists and
//! rules. The real one is asked in end-to-end tests; this one answers in every build.

use std::collections::BTreeSet;
use std::sync::Arc;

use cel::{Context, Env, Value as CelValue};
use serde_json::Value;

/// Fills in what is not said, as the server does before it judges.
pub(super) fn fill(schema: &Value, value: &mut Value) {
    if let (Some(properties), Some(object)) =
        (schema["properties"].as_object(), value.as_object_mut())
    {
        for (name, property) in properties {
            if let (None, Some(default)) = (object.get(name), property.get("default")) {
                object.insert(name.clone(), default.clone());
            }
            if let Some(field) = object.get_mut(name) {
                fill(property, field);
            }
        }
    }
    for item in value.as_array_mut().into_iter().flatten() {
        fill(&schema["items"], item);
    }
}

/// Why the server refuses the value; `before` is what it replaces.
pub(super) fn refusals(schema: &Value, value: &Value, before: Option<&Value>) -> Vec<String> {
    let mut refusals = broken_rules(schema, value, before);
    refusals.extend(out_of_bounds(schema, value));
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        match value.get(name) {
            Some(field) => {
                let before = before.and_then(|before| before.get(name));
                refusals.extend(self::refusals(property, field, before));
            }
            None if is_listed(&schema["required"], name) => {
                refusals.push(format!("{name}: Required"))
            }
            None => {}
        }
    }
    let items = value.as_array().into_iter().flatten();
    refusals.extend(items.flat_map(|item| self::refusals(&schema["items"], item, None)));
    refusals
}

/// Fields that the server would drop.
pub(super) fn unknown(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (name, field) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(property) => found.extend(unknown(property, field)),
            None => found.push(name.clone()),
        }
    }
    let items = value.as_array().into_iter().flatten();
    found.extend(items.flat_map(|item| unknown(&schema["items"], item)));
    found
}

fn is_listed(list: &Value, name: &str) -> bool {
    list.as_array().is_some_and(|list| list.iter().any(|item| item == name))
}

fn broken_rules(schema: &Value, value: &Value, before: Option<&Value>) -> Vec<String> {
    let env = Arc::new(Env::stdlib());
    let mut context = Context::with_env(env.clone());
    context.add_variable("self", value).unwrap();
    if let Some(before) = before {
        context.add_variable("oldSelf", before).unwrap();
    }
    let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    let applicable = rules
        .filter(|rule| before.is_some() || !rule["rule"].as_str().unwrap().contains("oldSelf"));
    let broken = applicable.filter(|rule| {
        let program = env.compile(rule["rule"].as_str().unwrap()).unwrap();
        program.execute(&context).unwrap() != CelValue::Bool(true)
    });
    broken.map(|rule| rule["message"].as_str().unwrap().to_owned()).collect()
}

fn out_of_bounds(schema: &Value, value: &Value) -> Vec<String> {
    let words = schema["enum"].as_array();
    let is_unknown = words.is_some_and(|words| !words.contains(value));
    let found = [
        (is_unknown, "Unsupported value"),
        (!is_within(schema, value), "Invalid value"),
        (has_duplicates(schema, value), "Duplicate value"),
    ];
    found.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word.to_owned()).collect()
}

/// Of a number its value counts, of texts and lists their length.
fn is_within(schema: &Value, value: &Value) -> bool {
    let length = value.as_str().map(str::len).or(value.as_array().map(Vec::len));
    let length = length.and_then(|length| u64::try_from(length).ok());
    let Some(measure) = value.as_u64().or(length) else { return true };
    let bound = |names: [&str; 3]| names.iter().find_map(|name| schema[name].as_u64());
    let least = bound(["minimum", "minLength", "minItems"]);
    let most = bound(["maximum", "maxLength", "maxItems"]);
    least.is_none_or(|least| least <= measure) && most.is_none_or(|most| measure <= most)
}

fn has_duplicates(schema: &Value, value: &Value) -> bool {
    let keys = schema["x-kubernetes-list-map-keys"].as_array();
    let (Some(keys), Some(items)) = (keys, value.as_array()) else { return false };
    let key = |item: &Value| -> Vec<String> {
        keys.iter().map(|key| item[key.as_str().unwrap()].to_string()).collect()
    };
    let distinct: BTreeSet<Vec<String>> = items.iter().map(key).collect();
    distinct.len() < items.len()
}
