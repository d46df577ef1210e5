use std::sync::Arc;

use cel::{Context, Env, Value as CelValue, extensions};
use serde_json::{Value, json};

use super::*;
use crate::core::names::{Dialect, Names};
use crate::core::spec::Spec;

const SHARD: &str = "shard.windlass.dev/websites";
const DRAIN: &str = "drain.windlass.dev/websites";
const SHARDER: &str = "system:serviceaccount:windlass-system:windlass-sharder";
const ACCOUNT: &str = "system:serviceaccount:shop:sites";

fn spec(instances: &Value) -> Spec {
    serde_json::from_value(json!({
        "resources": [{"group": "example.com", "resource": "sites", "controlled": [
            {"resource": "configmaps"},
        ]}],
        "instances": instances,
    }))
    .unwrap()
}

fn policy(instances: &Value) -> Value {
    let names =
        Names::new("websites".parse().unwrap(), Dialect::Own { prefix: "windlass.dev".to_owned() });
    let spec = spec(instances);
    let sharders = [SHARDER.to_owned()];
    let [policy, _] = objects(&Options { names: &names, spec: &spec, sharders: &sharders });
    policy
}

/// The request as the API server hands it to a policy.
fn request(write: &Write<'_>, by_prefix: bool) -> Value {
    let user = match write.writer {
        Writer::Sharder => json!({"username": SHARDER}),
        Writer::Other => json!({"username": "kubernetes-admin"}),
        Writer::Instance(id) if by_prefix => {
            json!({"username": format!("site:{}", id.unwrap_or_default())})
        }
        Writer::Instance(Some(id)) => {
            json!({"username": ACCOUNT, "extra": {"authentication.kubernetes.io/pod-name": [id]}})
        }
        Writer::Instance(None) => json!({"username": ACCOUNT}),
    };
    let resource = match write.part {
        Part::Main => json!({"group": "example.com", "resource": "sites"}),
        Part::Controlled => json!({"group": "", "resource": "configmaps"}),
    };
    let operation = match write.operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
    };
    let mut request = json!({"operation": operation, "userInfo": user, "resource": resource});
    if write.is_scale {
        request["subResource"] = json!("scale");
    }
    request
}

fn object(labels: Labels<'_>, has_controller: bool) -> Value {
    let pairs = [(SHARD, labels.shard), (DRAIN, labels.drain)];
    let labels: serde_json::Map<String, Value> = pairs
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), json!(value?))))
        .collect();
    let mut metadata = json!({"name": "x"});
    if !labels.is_empty() {
        metadata["labels"] = Value::Object(labels);
    }
    if has_controller {
        metadata["ownerReferences"] =
            json!([{"name": "other"}, {"name": "home", "controller": true}]);
    }
    json!({"metadata": metadata})
}

/// The messages of all rules that the policy finds broken.
fn evaluate(policy: &Value, write: &Write<'_>, by_prefix: bool) -> Vec<String> {
    let mut env = Env::stdlib();
    env.add_extension(extensions::strings).unwrap();
    let env = Arc::new(env);
    let mut context = Context::with_env(env.clone());
    // The server makes a scale of name and numbers alone.
    let object = |labels| match write.is_scale {
        true => object(Labels::default(), false),
        false => object(labels, write.has_controller),
    };
    let (old, new) = (object(write.before), object(write.after));
    let is = |operation| write.operation == operation;
    let null = Value::Null;
    for (name, value) in [
        ("request", &request(write, by_prefix)),
        ("oldObject", if is(Operation::Create) { &null } else { &old }),
        ("object", if is(Operation::Delete) { &null } else { &new }),
    ] {
        context.add_variable(name, value).unwrap();
    }
    let mut variables = std::collections::HashMap::new();
    for variable in policy["spec"]["variables"].as_array().unwrap() {
        let (name, expression) =
            (variable["name"].as_str().unwrap(), variable["expression"].as_str().unwrap());
        context.add_variable_from_value("variables", variables.clone());
        let value = env.compile(expression).unwrap().execute(&context);
        let value = value.unwrap_or_else(|error| panic!("{name}: {error}"));
        variables.insert(name.to_owned(), value);
    }
    context.add_variable_from_value("variables", variables);
    let validations = policy["spec"]["validations"].as_array().unwrap().iter();
    let broken = validations.filter(|validation| {
        let expression = validation["expression"].as_str().unwrap();
        let verdict = env.compile(expression).unwrap().execute(&context).unwrap();
        verdict != CelValue::Bool(true)
    });
    broken.map(|validation| validation["message"].as_str().unwrap().to_owned()).collect()
}

fn matrix() -> Vec<Write<'static>> {
    let writers = [
        Writer::Instance(Some("a-0")),
        Writer::Instance(Some("b-0")),
        Writer::Instance(None),
        Writer::Sharder,
        Writer::Other,
    ];
    let labels = [None, Some("a-0"), Some("b-0")].map(|shard| {
        [None, Some("1700000000"), Some("1800000000")].map(|drain| Labels { shard, drain })
    });
    let labels: Vec<Labels<'static>> = labels.into_iter().flatten().collect();
    let none = Labels::default();
    let mut all = Vec::new();
    for writer in writers {
        for part in [Part::Main, Part::Controlled] {
            for has_controller in [false, true] {
                for one in &labels {
                    let write = Write {
                        writer,
                        operation: Operation::Create,
                        part,
                        before: none,
                        after: *one,
                        has_controller,
                        is_scale: false,
                    };
                    all.push(write);
                    all.push(Write {
                        operation: Operation::Delete,
                        before: *one,
                        after: none,
                        ..write
                    });
                    let update = |after: &Labels<'static>| Write {
                        operation: Operation::Update,
                        before: *one,
                        after: *after,
                        ..write
                    };
                    all.extend(labels.iter().map(update));
                    all.push(Write { is_scale: true, ..update(one) });
                }
            }
        }
    }
    all
}

#[test]
fn the_policy_refuses_what_the_rules_refuse() {
    let by_pod = policy(&json!({"serviceAccounts": ["shop/sites"]}));
    let by_name = policy(&json!({"identity": "Username", "usernamePrefix": "site:"}));
    for (policy, by_prefix) in [(by_pod, false), (by_name, true)] {
        for write in matrix() {
            let broken = evaluate(&policy, &write, by_prefix);
            match admit(&write) {
                Ok(()) => assert_eq!(broken, [] as [String; 0], "{write:?}"),
                Err(refusal) => {
                    assert!(broken.contains(&refusal.to_string()), "{write:?}: {broken:?}")
                }
            }
        }
    }
}

#[track_caller]
fn check(write: &Write<'_>, expected: Result<(), Refusal>) {
    assert_eq!(admit(write), expected, "{write:?}");
}

#[test]
fn a_former_owner_is_refused_everything() {
    let before = Labels { shard: Some("b-0"), drain: None };
    for operation in [Operation::Update, Operation::Delete] {
        for part in [Part::Main, Part::Controlled] {
            let writer = Writer::Instance(Some("a-0"));
            let write = Write {
                writer,
                operation,
                part,
                before,
                after: before,
                has_controller: true,
                is_scale: false,
            };
            check(&write, Err(Refusal::NotOwner));
        }
    }
}

/// A real server shows a scale without the labels of its object: by them alone, whoever owns a
/// main object was refused, and a former owner of a controlled one was not.
#[test]
fn no_instance_writes_a_scale_whoever_owns_the_object() {
    for shard in [Some("a-0"), Some("b-0"), None] {
        for part in [Part::Main, Part::Controlled] {
            let (writer, operation) = (Writer::Instance(Some("a-0")), Operation::Update);
            let before = Labels { shard, drain: None };
            let write = Write {
                writer,
                operation,
                part,
                before,
                after: before,
                has_controller: true,
                is_scale: true,
            };
            check(&write, Err(Refusal::ScaleOfInstance));
            check(&Write { writer: Writer::Sharder, ..write }, Ok(()));
            check(&Write { writer: Writer::Other, ..write }, Ok(()));
        }
    }
}

#[test]
fn an_acknowledgement_removes_both_labels_and_only_while_draining() {
    let labels = |shard, drain| Labels { shard, drain };
    let (shard, drain) = (Some("a-0"), Some("17"));
    for (before, after, is_allowed) in [
        (labels(shard, drain), labels(None, None), true),
        (labels(shard, None), labels(None, None), false),
        (labels(shard, drain), labels(shard, None), false),
        (labels(shard, drain), labels(None, drain), false),
        (labels(shard, drain), labels(Some("b-0"), None), false),
        (labels(shard, None), labels(shard, drain), false),
    ] {
        let writer = Writer::Instance(shard);
        let (operation, part) = (Operation::Update, Part::Main);
        let write = Write {
            writer,
            operation,
            part,
            before,
            after,
            has_controller: false,
            is_scale: false,
        };
        let expected = if is_allowed { Ok(()) } else { Err(Refusal::NotAnAcknowledgement) };
        check(&write, expected);
    }
}

#[test]
fn nobody_brings_labels_along_but_an_instance_for_its_own_children() {
    let after = Labels { shard: Some("a-0"), drain: None };
    let (operation, before, part) = (Operation::Create, Labels::default(), Part::Controlled);
    for (writer, has_controller, is_allowed) in [
        (Writer::Instance(Some("a-0")), true, true),
        (Writer::Instance(Some("a-0")), false, false),
        (Writer::Instance(Some("b-0")), true, false),
        (Writer::Instance(None), true, false),
        (Writer::Other, true, false),
        (Writer::Sharder, true, false),
    ] {
        let is_scale = false;
        let write = Write { writer, operation, part, before, after, has_controller, is_scale };
        check(&write, if is_allowed { Ok(()) } else { Err(Refusal::LabelledAtCreation) });
    }
}

#[test]
fn the_policy_covers_every_kind_and_what_lies_below_it() {
    let policy = policy(&json!({"serviceAccounts": ["shop/sites"]}));
    assert_eq!(policy["metadata"]["name"], "windlass-fence-websites");
    let rules = &policy["spec"]["matchConstraints"]["resourceRules"];
    assert_eq!(rules[0]["resources"], json!(["sites", "sites/status", "sites/scale"]));
    assert_eq!(rules[1]["apiGroups"], json!([""]));
    assert_eq!(policy["spec"]["failurePolicy"], "Fail");
}

/// As the API server has it: with what it fills in.
fn stored(mut objects: [Value; 2]) -> [Value; 2] {
    let constraints = &mut objects[0]["spec"]["matchConstraints"];
    constraints["matchPolicy"] = json!("Equivalent");
    constraints["namespaceSelector"] = json!({});
    constraints["objectSelector"] = json!({});
    for rule in constraints["resourceRules"].as_array_mut().unwrap() {
        rule["scope"] = json!("*");
    }
    objects[0]["metadata"]["uid"] = json!("u1");
    objects
}

/// What somebody did to a policy and its binding.
type Change<'a> = &'a dyn Fn(&mut Value, &mut Value);

/// A fence that somebody else had installed was trusted unread, whatever it refused.
#[test]
fn a_fence_of_somebody_else_is_read_before_it_is_trusted() {
    let names =
        Names::new("websites".parse().unwrap(), Dialect::Own { prefix: "windlass.dev".to_owned() });
    let spec = spec(&json!({"serviceAccounts": ["shop/sites"]}));
    let of = |sharder: &str| {
        let sharders = [sharder.to_owned()];
        objects(&Options { names: &names, spec: &spec, sharders: &sharders })
    };
    let wanted = of(SHARDER);
    let is_trusted = |change: Change<'_>| {
        let [mut policy, mut binding] = stored(of("somebody"));
        change(&mut policy, &mut binding);
        covers(&wanted[0], &policy) && covers(&wanted[1], &binding)
    };
    assert!(is_trusted(&|_, _| {}), "who the sharder is, the administrator knows");
    assert!(is_trusted(&|policy, binding| {
        let more = json!({"expression": "false", "message": "nobody"});
        policy["spec"]["validations"].as_array_mut().unwrap().push(more);
        binding["spec"]["validationActions"] = json!(["Audit", "Deny"]);
    }));
    let weaker: [Change<'_>; 9] = [
        &|policy, _| policy["spec"]["failurePolicy"] = json!("Ignore"),
        &|policy, _| policy["spec"]["validations"][1]["expression"] = json!("true"),
        &|policy, _| policy["spec"]["variables"][3]["expression"] = json!("'a-0'"),
        &|policy, _| {
            policy["spec"]["matchConditions"] = json!([{"name": "n", "expression": "false"}])
        },
        &|policy, _| {
            policy["spec"]["matchConstraints"]["resourceRules"].as_array_mut().unwrap().pop();
        },
        &|policy, _| {
            policy["spec"]["matchConstraints"]["namespaceSelector"] =
                json!({"matchLabels": {"fenced": "yes"}});
        },
        &|_, binding| binding["spec"]["validationActions"] = json!(["Warn"]),
        &|_, binding| binding["spec"]["policyName"] = json!("another"),
        &|_, binding| {
            binding["spec"]["matchResources"] =
                json!({"objectSelector": {"matchLabels": {"fenced": "yes"}}});
        },
    ];
    for (number, change) in weaker.iter().enumerate() {
        assert!(!is_trusted(change), "{number}");
    }
}
