//! What of a Ring can be worked on, and what is wrong with it. Looks at what was found; finds nothing
//! itself.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::fence::Fencing;
use super::supervisor::View;
use crate::core::key::{Kinds, MainKind};
use crate::core::names::{Names, RingName};
use crate::core::object::GroupKind;
use crate::core::sharder::Options;
use crate::core::spec::{self, Controlled, GroupResource, Resource, Rival, Terrain};
use crate::kubernetes::{Ring, Served};

/// How a ring stands, as far as that does not change from one object to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrangement {
    /// Of the Ring, whose spec this follows.
    pub(super) generation: Option<i64>,
    pub(super) problems: Vec<Problem>,
    pub(super) fencing: Fencing,
    /// Nothing if the ring cannot be worked on, or has nothing left to do.
    pub(super) work: Option<Work>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) options: Options,
    pub(super) main: Vec<Watched>,
    pub(super) controlled: Vec<Watched>,
    /// Those whose objects the ring has.
    pub(super) namespaces: BTreeSet<String>,
}

/// A kind of the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Watched {
    pub(super) served: Served,
    /// What else objects have to have, as a selector of labels.
    pub(super) narrowing: Option<String>,
}

/// Why a ring, or part of it, cannot be worked on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    #[error("{0}")]
    Spec(String),
    #[error("{resource} belongs to the elder ring {ring}")]
    Contested { ring: RingName, resource: GroupResource },
    #[error("the API server has no {0}")]
    Missing(GroupResource),
    #[error("{0}")]
    Denied(String),
}

/// A kind that is, or was, of the ring.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Named {
    pub(super) resource: GroupResource,
    /// Whether the ring is to have it no longer.
    pub(super) is_leaving: bool,
}

// === impl Problem ===

impl Problem {
    /// As conditions say it.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::Spec(_) => "InvalidSpec",
            Self::Contested { .. } => "ResourceConflict",
            Self::Missing(_) => "ResourceMissing",
            Self::Denied(_) => "PermissionDenied",
        }
    }

    /// Whether nothing of the ring can be worked on.
    pub(super) fn is_fatal(&self) -> bool {
        matches!(self, Self::Spec(_) | Self::Contested { .. })
    }
}

/// What is wrong with the Ring by itself. The server refuses most of it.
pub(super) fn check(ring: &Ring, names: &Names) -> Vec<Problem> {
    let name = ring.metadata.name.as_deref().unwrap_or_default();
    let mut problems: Vec<Problem> =
        spec::check(name, &ring.spec).iter().map(|it| Problem::Spec(in_words(it))).collect();
    if ring.spec.names(names.ring().clone()) != *names {
        problems.push(Problem::Spec(spec::Problem::Immutable("names").to_string()));
    }
    problems
}

/// Which elder rings have what this one wants.
pub(super) fn contested(
    view: &View,
    home: &str,
    of_cluster: &BTreeSet<GroupResource>,
) -> Vec<Problem> {
    let named = view.rings.iter().filter_map(|ring| Some((ring.name().ok()?, ring)));
    let named: Vec<(RingName, &Arc<Ring>)> = named.collect();
    let others = named.iter();
    let others: Vec<Rival<'_>> = others
        .map(|(name, ring)| Rival { name, created: created(ring), spec: &ring.spec })
        .collect();
    let Ok(name) = view.ring.name() else { return Vec::new() };
    let own = Rival { name: &name, created: created(&view.ring), spec: &view.ring.spec };
    let terrain = Terrain { namespaces: &view.namespaces, home, of_cluster };
    let found = spec::rivals(&own, &others, &terrain);
    found
        .into_iter()
        .map(|(ring, resource)| Problem::Contested { ring: ring.clone(), resource })
        .collect()
}

fn created(ring: &Ring) -> Timestamp {
    ring.metadata.creation_timestamp.as_ref().map_or(Timestamp::MAX, |time| time.0)
}

/// Everything that may have the ring's labels: what it has, and what it had.
pub(super) fn labelled(ring: &Ring) -> Vec<Resource> {
    let mut all = ring.spec.resources.clone();
    for before in ring.status.iter().flat_map(|status| &status.resources) {
        let same = all.iter_mut().find(|it| it.group_resource() == before.group_resource());
        let Some(same) = same else {
            all.push(before.clone());
            continue;
        };
        for controlled in &before.controlled {
            let is_same = |it: &Controlled| it.group_resource() == controlled.group_resource();
            if !same.controlled.iter().any(is_same) {
                same.controlled.push(controlled.clone());
            }
        }
    }
    all
}

/// All kinds of `labelled`, each once, main ones first.
pub(super) fn kinds_of(ring: &Ring, labelled: &[Resource]) -> Vec<Named> {
    let is_deleted = ring.is_deleted();
    let main = labelled.iter().map(Resource::group_resource);
    let controlled = labelled.iter().flat_map(|it| &it.controlled).map(Controlled::group_resource);
    let kept = &ring.spec.resources;
    let is_kept = |resource: &GroupResource| {
        kept.iter().any(|it| {
            it.group_resource() == *resource
                || it.controlled.iter().any(|it| it.group_resource() == *resource)
        })
    };
    let mut all: Vec<Named> = Vec::new();
    for resource in main.chain(controlled) {
        if !all.iter().any(|it| it.resource == resource) {
            let is_leaving = is_deleted || !is_kept(&resource);
            all.push(Named { resource, is_leaving });
        }
    }
    all
}

/// What the ring works on: what is served of it.
pub(super) fn work(
    (view, names, home): (&View, &Names, &str),
    labelled: &[Resource],
    served: &BTreeMap<GroupResource, Served>,
) -> Work {
    let (ring, mut kinds) = (&view.ring, Kinds::default());
    let (mut main, mut controlled) = (Vec::new(), Vec::new());
    for resource in labelled {
        let Some(parent) = served.get(&resource.group_resource()) else {
            kinds.out_of_reach.extend(kept_group(ring, resource));
            continue;
        };
        let followed: Vec<(&Controlled, &Served)> = resource
            .controlled
            .iter()
            .filter_map(|it| Some((it, served.get(&it.group_resource())?)))
            .collect();
        let kind = MainKind {
            key: resource.key,
            is_namespaced: parent.is_namespaced,
            controlled: followed.iter().map(|(_, served)| served.kind.clone()).collect(),
        };
        kinds.main.insert(parent.kind.clone(), kind);
        main.push(Watched { served: parent.clone(), narrowing: None });
        for (it, served) in followed {
            add_controlled(&mut controlled, it, served);
        }
    }
    let leaving = kinds_of(ring, labelled).into_iter().filter(|it| it.is_leaving);
    let leaving = leaving.filter_map(|it| served.get(&it.resource));
    let leaving: BTreeSet<GroupKind> = leaving.map(|served| served.kind.clone()).collect();
    Work {
        options: options((ring, names, home), kinds, leaving),
        main,
        controlled,
        namespaces: namespaces(view, home),
    }
}

/// The group of a main kind, unless the ring is to have it no longer.
fn kept_group(ring: &Ring, resource: &Resource) -> Option<String> {
    let is_same = |it: &Resource| it.group_resource() == resource.group_resource();
    let is_kept = !ring.is_deleted() && ring.spec.resources.iter().any(is_same);
    is_kept.then(|| resource.group_resource().group)
}

/// A kind that several main ones own is watched once, and no narrower than the widest of them says.
fn add_controlled(all: &mut Vec<Watched>, controlled: &Controlled, served: &Served) {
    let narrowing = controlled.selector.as_ref().map(spec::Selector::to_query);
    let narrowing = narrowing.filter(|query| !query.is_empty());
    match all.iter_mut().find(|it| it.served == *served) {
        Some(same) if same.narrowing != narrowing => same.narrowing = None,
        Some(_) => {}
        None => all.push(Watched { served: served.clone(), narrowing }),
    }
}

/// The ring's settings, for the core.
pub(super) fn options(
    (ring, names, home): (&Ring, &Names, &str),
    kinds: Kinds,
    leaving: BTreeSet<GroupKind>,
) -> Options {
    let accounts = &ring.spec.instances.service_accounts;
    let of_instances = accounts.iter().find_map(|account| account.split_once('/'));
    Options {
        names: names.clone(),
        kinds,
        handover: ring.spec.handover.clone(),
        partitioning: ring.spec.partitioning.clone(),
        hold_max: ring.spec.restart.hold_max(),
        leaving,
        home: of_instances.map_or(home, |(namespace, _)| namespace).to_owned(),
    }
}

fn namespaces(view: &View, home: &str) -> BTreeSet<String> {
    let selector = view.ring.spec.namespace_selector.as_ref();
    let selected = view.namespaces.iter().filter(|it| it.is_selected(selector, home));
    selected.map(|namespace| namespace.name.clone()).collect()
}

/// With all its causes, for a line that stands alone.
pub(super) fn in_words(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |words, cause| format!("{words}: {cause}"))
}
