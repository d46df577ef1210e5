use super::*;
use crate::core::object::{Controller, Uid, Version};

fn site() -> GroupKind {
    GroupKind::new("example.com", "Site")
}

fn config_map() -> GroupKind {
    GroupKind::new("", "ConfigMap")
}

fn kinds(key: KeyMode, is_namespaced: bool) -> Kinds {
    let controlled = [config_map()].into();
    let main = [(site(), MainKind { key, is_namespaced, controlled })].into();
    Kinds { main, ..Kinds::default() }
}

fn object(kind: GroupKind, namespace: Option<&str>, name: &str) -> Object {
    let namespace = namespace.map(ToOwned::to_owned);
    let name = ObjectName { kind, namespace, name: name.to_owned() };
    let (uid, version) = (Uid("u".to_owned()), Version("1".to_owned()));
    Object { name, uid, version, shard: None, drain: None, controller: None }
}

fn owned_by(kind: GroupKind, child: Object) -> Object {
    let controller = Controller { kind, name: "home".to_owned(), uid: Uid("p".to_owned()) };
    Object { controller: Some(controller), ..child }
}

#[track_caller]
fn check(kinds: &Kinds, object: &Object, expected: Option<&str>) {
    let role = kinds.role(object);
    let told = role.key().map(|key| format!("{} {}", key.kind, key.path));
    assert_eq!(told.as_deref(), expected, "{role:?}");
}

#[test]
fn main_objects_count_by_name_or_by_namespace() {
    let (own, by_namespace) = (kinds(KeyMode::Own, true), kinds(KeyMode::Namespace, true));
    let inside = object(site(), Some("shop"), "home");
    check(&own, &inside, Some("example.com/Site shop/home"));
    check(&by_namespace, &inside, Some("example.com/Site shop/"));
    let of_cluster = object(site(), None, "home");
    check(&own, &of_cluster, Some("example.com/Site /home"));
    check(&by_namespace, &of_cluster, Some("example.com/Site /home"));
}

#[test]
fn controlled_objects_count_as_their_owner() {
    let child = owned_by(site(), object(config_map(), Some("shop"), "page"));
    check(&kinds(KeyMode::Own, true), &child, Some("example.com/Site shop/home"));
    check(&kinds(KeyMode::Namespace, true), &child, Some("example.com/Site shop/"));
    // The owner's scope counts: one of the cluster has no namespace, whatever it owns.
    check(&kinds(KeyMode::Own, false), &child, Some("example.com/Site /home"));
    let parent = ObjectName { kind: site(), namespace: None, name: "home".to_owned() };
    let Role::Child { parent: found, .. } = kinds(KeyMode::Own, false).role(&child) else {
        panic!()
    };
    assert_eq!(found, parent);
}

#[test]
fn what_nobody_of_the_ring_controls_is_foreign() {
    let kinds = kinds(KeyMode::Own, true);
    let config_map = |owner: Option<GroupKind>| {
        let child = object(config_map(), Some("shop"), "page");
        owner.map_or(child.clone(), |owner| owned_by(owner, child))
    };
    check(&kinds, &config_map(None), None);
    check(&kinds, &config_map(Some(GroupKind::new("apps", "Deployment"))), None);
    check(&kinds, &owned_by(site(), object(GroupKind::new("", "Secret"), Some("shop"), "x")), None);
}
