//! Rings that want the same objects. The younger one stands back.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{GroupResource, Namespace, Spec};
use crate::core::names::RingName;

/// A ring among others.
#[derive(Clone, Copy, Debug)]
pub struct Rival<'a> {
    pub name: &'a RingName,
    pub created: Timestamp,
    pub spec: &'a Spec,
}

/// Where rings can meet.
#[derive(Clone, Copy, Debug)]
pub struct Terrain<'a> {
    pub namespaces: &'a [Namespace],
    /// The sharder's own namespace.
    pub home: &'a str,
    /// Resources without namespaces: objects that every ring selects.
    pub of_cluster: &'a BTreeSet<GroupResource>,
}

/// Which elder ring already has which main resource of this one, in a namespace that both select.
#[must_use]
pub fn rivals<'a>(
    ring: &Rival<'_>,
    others: &[Rival<'a>],
    terrain: &Terrain<'_>,
) -> Vec<(&'a RingName, GroupResource)> {
    let elder =
        others.iter().filter(|other| (other.created, other.name) < (ring.created, ring.name));
    let mut found = Vec::new();
    for other in elder {
        let selects = |spec: &Spec, namespace: &Namespace| {
            namespace.is_selected(spec.namespace_selector.as_ref(), terrain.home)
        };
        let mut namespaces = terrain.namespaces.iter();
        let meets = namespaces
            .any(|namespace| selects(ring.spec, namespace) && selects(other.spec, namespace));
        let contested = ring.spec.resources.iter().filter(|own| {
            let mut theirs = other.spec.resources.iter();
            let same = theirs.find(|theirs| theirs.group_resource() == own.group_resource());
            same.is_some_and(|theirs| !(theirs.shared && own.shared))
        });
        let contested = contested.map(super::Resource::group_resource);
        let contested = contested.filter(|resource| meets || terrain.of_cluster.contains(resource));
        found.extend(contested.map(|resource| (other.name, resource)));
    }
    found
}
