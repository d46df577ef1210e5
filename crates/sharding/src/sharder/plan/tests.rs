use kube::core::discovery::ApiResource;
use serde_json::{Value, json};

use super::*;
use crate::core::spec::Namespace;

const HOME: &str = "windlass-system";

/// A Ring as it is stored; `status.resources` says what had labels before.
fn ring(name: &str, created: &str, spec: Value, before: Value) -> Arc<Ring> {
    let stored = json!({
        "apiVersion": "windlass.dev/v1alpha1", "kind": "Ring",
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": spec,
        "status": {"resources": before},
    });
    Arc::new(Ring::read(serde_json::from_value(stored).unwrap()).unwrap())
}

fn spec(resources: Value) -> Value {
    json!({"resources": resources, "fence": "Off"})
}

fn view(rings: &[Arc<Ring>]) -> View {
    let namespace = |name: &str| Namespace { name: name.to_owned(), labels: BTreeMap::new() };
    View {
        ring: rings[0].clone(),
        rings: Arc::new(rings.to_vec()),
        namespaces: Arc::new(["kube-system", "shop", HOME].map(namespace).to_vec()),
    }
}

fn served(resource: &str, kind: &str) -> (GroupResource, Served) {
    let name = GroupResource { group: String::new(), resource: resource.to_owned() };
    let api = ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: resource.to_owned(),
    };
    let kind = GroupKind::new("", kind);
    (name.clone(), Served { resource: name, kind, is_namespaced: true, api })
}

fn all_served() -> BTreeMap<GroupResource, Served> {
    [("configmaps", "ConfigMap"), ("secrets", "Secret"), ("pods", "Pod")]
        .map(|(resource, kind)| served(resource, kind))
        .into()
}

/// What a ring of this spec works on, if it had labels on those resources before.
fn worked(resources: Value, before: Value) -> Work {
    let ring = ring("a", "2026-01-01T00:00:00Z", spec(resources), before);
    let names = ring.spec.names("a".parse().unwrap());
    work((&view(std::slice::from_ref(&ring)), &names, HOME), &labelled(&ring), &all_served())
}

fn resources(watched: &[Watched]) -> Vec<String> {
    watched.iter().map(|it| it.served.resource.to_string()).collect()
}

#[test]
fn a_ring_works_on_what_is_served_outside_the_system() {
    let work = worked(json!([{"resource": "secrets"}, {"resource": "gizmos"}]), json!([]));
    assert_eq!(resources(&work.main), ["secrets"]);
    assert_eq!(work.namespaces, ["shop".to_owned()].into());
    assert_eq!(work.options.home, HOME, "nobody says where the instances are");
    assert!(work.options.leaving.is_empty());
}

#[test]
fn a_main_kind_that_is_not_served_is_out_of_reach_unless_it_leaves() {
    let gizmos = json!({"group": "example.com", "resource": "gizmos"});
    let work = worked(json!([{"resource": "secrets"}, gizmos]), json!([]));
    assert_eq!(work.options.kinds.out_of_reach, ["example.com".to_owned()].into());
    let work = worked(json!([{"resource": "secrets"}]), json!([gizmos]));
    assert!(work.options.kinds.out_of_reach.is_empty());
}

#[test]
fn what_has_left_is_worked_on_until_it_is_stripped() {
    let work = worked(json!([{"resource": "secrets"}]), json!([{"resource": "pods"}]));
    assert_eq!(resources(&work.main), ["secrets", "pods"]);
    assert_eq!(work.options.leaving, [GroupKind::new("", "Pod")].into());
}

#[test]
fn a_controlled_kind_can_leave_alone() {
    let controlled = json!([{"resource": "pods"}]);
    let before = json!([{"resource": "secrets", "controlled": controlled}]);
    let work = worked(json!([{"resource": "secrets"}]), before);
    assert_eq!(resources(&work.controlled), ["pods"]);
    assert_eq!(work.options.leaving, [GroupKind::new("", "Pod")].into());
}

#[test]
fn a_kind_that_two_own_is_watched_once_and_as_widely_as_both_need() {
    let narrow = json!([{"resource": "pods", "selector": {"matchLabels": {"app": "web"}}}]);
    let wide = json!([{"resource": "pods"}]);
    let one = worked(json!([{"resource": "secrets", "controlled": narrow}]), json!([]));
    assert_eq!(one.controlled[0].narrowing.as_deref(), Some("app=web"));
    let both = worked(
        json!([
            {"resource": "secrets", "controlled": narrow},
            {"resource": "configmaps", "controlled": wide},
        ]),
        json!([]),
    );
    assert_eq!(resources(&both.controlled), ["pods"]);
    assert_eq!(both.controlled[0].narrowing, None);
}

#[test]
fn the_younger_of_two_rings_stands_back() {
    let secrets = || spec(json!([{"resource": "secrets"}]));
    let elder = ring("elder", "2026-01-01T00:00:00Z", secrets(), json!([]));
    let younger = ring("younger", "2026-01-02T00:00:00Z", secrets(), json!([]));
    let of_cluster = BTreeSet::new();
    let told = contested(&view(&[younger.clone(), elder.clone()]), HOME, &of_cluster);
    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["secrets belongs to the elder ring elder"]);
    assert_eq!(contested(&view(&[elder, younger]), HOME, &of_cluster), []);
}

#[test]
fn names_that_have_changed_are_refused() {
    let before = ring("a", "2026-01-01T00:00:00Z", spec(json!([{"resource": "pods"}])), json!([]));
    let names = before.spec.names("a".parse().unwrap());
    assert_eq!(check(&before, &names), []);
    let mut changed = spec(json!([{"resource": "pods"}]));
    changed["names"] = json!({"prefix": "other.dev"});
    let after = ring("a", "2026-01-01T00:00:00Z", changed, json!([]));
    let told: Vec<String> = check(&after, &names).iter().map(ToString::to_string).collect();
    assert_eq!(told, ["names cannot be changed; create another ring"]);
}
