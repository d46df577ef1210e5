use std::collections::{BTreeMap, BTreeSet};

use expect_test::{Expect, expect};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

/// The least that is allowed.
fn least() -> Value {
    json!({
        "resources": [{"resource": "secrets", "controlled": [{"resource": "configmaps"}]}],
        "fence": "Off",
    })
}

fn read(spec: Value) -> Spec {
    serde_json::from_value(spec).unwrap()
}

fn changed(path: &str, value: Value) -> Spec {
    let mut spec = least();
    *spec.pointer_mut(path).unwrap_or(&mut Value::Null) = Value::Null;
    let mut place = &mut spec;
    for part in path.split('/').skip(1) {
        place = match part.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[part],
        };
    }
    *place = value;
    read(spec)
}

#[track_caller]
fn check_problems(spec: &Spec, expected: &Expect) {
    let told: Vec<String> = check("websites", spec).iter().map(ToString::to_string).collect();
    expected.assert_eq(&told.join("\n"));
}

#[test]
fn what_is_not_said_has_its_default() {
    let spec = read(least());
    assert_eq!(check("websites", &spec), []);
    assert_eq!(spec.partitioning.slots, 1024);
    assert_eq!((spec.handover.drain_timeout_seconds, spec.handover.grace_seconds), (30, 10));
    assert_eq!((spec.handover.force, spec.handover.concurrent_moves), (Force::WhenSafe, 100));
    assert_eq!(spec.restart.max_hold_seconds, 120);
    assert_eq!(spec.names.prefix, "windlass.dev");
    assert_eq!(read(json!({"resources": []})).fence, Fence::Managed);
    let again = serde_json::to_value(&spec).unwrap();
    assert_eq!(read(again), spec);
}

#[test]
fn unknown_words_are_refused() {
    for bad in [
        json!({"resources": [], "handovr": {}}),
        json!({"resources": [], "handover": {"grace": 3}}),
        json!({"resources": [], "assignment": "Policy"}),
        json!({"resources": [{"resource": "a", "key": "Name"}]}),
        json!({}),
    ] {
        assert!(serde_json::from_value::<Spec>(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn names_of_rings_are_labels() {
    let problems = check("web.sites", &read(least()));
    assert!(matches!(problems[..], [Problem::Name(_)]), "{problems:?}");
}

#[test]
fn resources_are_few_and_each_in_one_place() {
    check_problems(
        &changed("/resources", json!([])),
        &expect!["a ring has from 1 to 32 resources, not 0"],
    );
    let many: Vec<Value> = (0..33).map(|i| json!({"resource": format!("r{i}")})).collect();
    check_problems(
        &changed("/resources", json!(many)),
        &expect!["a ring has from 1 to 32 resources, not 33"],
    );
    check_problems(
        &changed(
            "/resources",
            json!([
                {"group": "apps", "resource": "deployments", "controlled": [
                    {"resource": "secrets"}, {"resource": "pods"}, {"resource": "pods"}, {"resource": ""},
                ]},
                {"resource": "secrets"},
                {"group": "apps", "resource": "deployments"},
                {"resource": ""},
            ]),
        ),
        &expect![[r#"
            `deployments.apps` stands among the resources twice
            `` has no name of a resource
            `secrets` is both a main resource and a controlled one
            `pods` stands among the resources twice
            `` has no name of a resource"#]],
    );
}

#[test]
fn numbers_have_their_bounds() {
    for (good, bad) in [((9, 10), (10, 10)), ((0, 1), (11, 10))] {
        let handover = |(grace, timeout): (u64, u64)| {
            changed("/handover", json!({"graceSeconds": grace, "drainTimeoutSeconds": timeout}))
        };
        assert_eq!(check("r", &handover(good)), []);
        assert!(matches!(check("r", &handover(bad))[..], [Problem::Grace { .. }]));
    }
    for (slots, is_good) in
        [(32, false), (63, false), (64, true), (1000, false), (8192, true), (16_384, false)]
    {
        let spec = changed("/partitioning", json!({"slots": slots}));
        assert_eq!(check("r", &spec).is_empty(), is_good, "{slots}");
    }
    for (moves, is_good) in [(0, false), (1, true), (1000, true), (1001, false)] {
        let spec = changed("/handover", json!({"concurrentMoves": moves}));
        assert_eq!(check("r", &spec).is_empty(), is_good, "{moves}");
    }
    check_problems(
        &changed("/partitioning", json!({"maxImbalancePercent": 101, "maxMovePercent": 200})),
        &expect![[r#"
            maxImbalancePercent is at most 100, not 101
            maxMovePercent is at most 100, not 200"#]],
    );
}

#[test]
fn a_fence_has_to_know_its_instances() {
    let fenced = |instances: Value| {
        let mut spec = least();
        (spec["fence"], spec["instances"]) = (json!("Managed"), instances);
        read(spec)
    };
    check_problems(
        &fenced(json!({})),
        &expect![
            "a fence needs instances.serviceAccounts or instances.usernamePrefix; or say fence: Off"
        ],
    );
    check_problems(&fenced(json!({"serviceAccounts": ["shop/sites"]})), &expect![""]);
    check_problems(
        &fenced(json!({"serviceAccounts": ["sites", "a/b/c"], "identity": "Username"})),
        &expect![[r#"
            instances.identity Username needs instances.usernamePrefix
            instances.serviceAccounts has "sites"; write namespace/name
            instances.serviceAccounts has "a/b/c"; write namespace/name"#]],
    );
}

#[test]
fn names_and_presets() {
    check_problems(
        &changed("/names", json!({"prefix": "Example.com"})),
        &expect!["names.prefix is a DNS subdomain"],
    );
    check_problems(
        &changed("/names", json!({"preset": "Timebertt"})),
        &expect!["names.preset Timebertt needs partitioning.algorithm Ring"],
    );
    let mut spec = changed("/names", json!({"preset": "Timebertt"}));
    spec.partitioning.algorithm = Algorithm::Ring;
    check_problems(&spec, &expect![""]);
    assert!(spec.names("r".parse().unwrap()).shard_label().contains("timebertt"));
}

#[test]
fn what_objects_depend_on_cannot_be_changed() {
    let (before, mut after) = (read(least()), read(least()));
    after.handover.concurrent_moves = 7;
    assert_eq!(check_change(&before, &after), []);
    after.partitioning =
        Partitioning { algorithm: Algorithm::Ring, slots: 64, ..after.partitioning };
    after.names.prefix = "example.com".to_owned();
    let told: Vec<String> = check_change(&before, &after).iter().map(ToString::to_string).collect();
    expect![[r#"
        partitioning.algorithm cannot be changed; create another ring
        partitioning.slots cannot be changed; create another ring
        names cannot be changed; create another ring"#]]
    .assert_eq(&told.join("\n"));
}

fn namespace(name: &str, labels: &[(&str, &str)]) -> Namespace {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    Namespace { name: name.to_owned(), labels: labels.iter().map(own).collect() }
}

#[test]
fn namespaces_are_selected_as_kubernetes_does() {
    let is_selected = |selector: Option<Value>, name: &str| {
        let selector: Option<Selector> = selector.map(|it| serde_json::from_value(it).unwrap());
        namespace(name, &[("team", name)]).is_selected(selector.as_ref(), "windlass-system")
    };
    assert!(is_selected(None, "shop"));
    assert!(!is_selected(None, "kube-system") && !is_selected(None, "windlass-system"));
    assert!(is_selected(Some(json!({})), "kube-system"), "who says so gets it");
    assert!(is_selected(Some(json!({"matchLabels": {"team": "shop"}})), "shop"));
    for (operator, values, shop, other) in [
        ("In", json!(["shop"]), true, false),
        ("NotIn", json!(["shop"]), false, true),
        ("Exists", json!([]), true, true),
        ("DoesNotExist", json!([]), false, false),
    ] {
        let expression = json!({"key": "team", "operator": operator, "values": values});
        let selector = json!({"matchExpressions": [expression]});
        assert_eq!(is_selected(Some(selector.clone()), "shop"), shop, "{operator}");
        assert_eq!(is_selected(Some(selector), "other"), other, "{operator}");
    }
    let selector: Selector = serde_json::from_value(json!({
        "matchLabels": {"a": "b"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["d", "e"]},
            {"key": "f", "operator": "NotIn", "values": ["g"]},
            {"key": "h", "operator": "Exists"},
            {"key": "i", "operator": "DoesNotExist"},
        ],
    }))
    .unwrap();
    assert_eq!(selector.to_query(), "a=b,c in (d,e),f notin (g),h,!i");
    assert!(!selector.matches(&BTreeMap::new()));
}

#[test]
fn of_two_rings_with_the_same_resource_the_younger_stands_back() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let namespaces = [namespace("shop", &[("team", "a")]), namespace("bank", &[("team", "b")])];
    let select = |team: &str| changed("/namespaceSelector", json!({"matchLabels": {"team": team}}));
    let shared = changed("/resources/0/shared", json!(true));
    let (elder, younger): (RingName, RingName) = ("zebra".parse().unwrap(), "ant".parse().unwrap());
    let count = |one: &Spec, two: &Spec, is_of_cluster: bool| {
        let first = Rival { name: &elder, created: at(1), spec: one };
        let second = Rival { name: &younger, created: at(2), spec: two };
        let all = [first, second];
        let secrets = one.resources[0].group_resource();
        let of_cluster = if is_of_cluster { [secrets].into() } else { BTreeSet::new() };
        let terrain = Terrain { namespaces: &namespaces, home: "w", of_cluster: &of_cluster };
        let of = |ring: &Rival<'_>| rivals(ring, &all, &terrain).len();
        assert_eq!(of(&first), 0, "the elder has nothing to fear");
        of(&second)
    };
    let plain = read(least());
    assert_eq!(count(&plain, &plain, false), 1);
    assert_eq!(count(&select("a"), &select("b"), false), 0, "they do not meet");
    assert_eq!(count(&select("a"), &select("b"), true), 1, "objects of the cluster always meet");
    assert_eq!(count(&select("a"), &plain, false), 1);
    assert_eq!(count(&shared, &plain, false), 1, "both have to say it");
    assert_eq!(count(&shared, &shared, false), 0);
    let other = changed("/resources", json!([{"resource": "pods"}]));
    assert_eq!(count(&plain, &other, true), 0);
}
