//! Why one object is where it is, and what it waits for, in every ring that has its kind.

use std::collections::BTreeSet;

use serde::{Serialize, Serializer};

use super::view::{Catalogue, View, kinds, look_up, resources};
use super::{Admin, Error};
use crate::core::explain::{DrainLeft, Explanation, Scene, explain};
use crate::core::key::Role;
use crate::core::names::RingName;
use crate::core::object::{GroupKind, Object, ObjectName};
use crate::kubernetes::{Objects, Ring, Served};

/// The condition that says whether former owners are refused.
const FENCED: &str = "Fenced";

/// An object as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Kind, singular, plural, or plural and group.
    pub kind: String,
    pub name: String,
    /// Of no meaning for objects of the cluster.
    pub namespace: String,
}

/// What holds in one ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    pub ring: RingName,
    pub explanation: Explanation,
}

/// The same for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Facts<'a> {
    ring: &'a RingName,
    key: Option<&'a str>,
    counts_as: Option<&'a str>,
    slot: Option<u16>,
    belongs_to: Option<&'a str>,
    label: Option<&'a str>,
    label_state: Option<&'static str>,
    draining: bool,
    /// 0 once it is over; absent if nobody can read until when.
    drain_seconds_left: Option<u64>,
    waits_for: String,
}

// === impl Admin ===

impl Admin {
    pub async fn explain(&self, target: &Target) -> Result<Vec<Explained>, Error> {
        let rings = self.all_rings().await?;
        let mut catalogue = Catalogue::new();
        for ring in &rings {
            look_up(&self.client, &ring.spec, &mut catalogue).await?;
        }
        let served = find(target, &catalogue)?;
        let has_kind = |ring: &Ring| resources(&ring.spec).contains(&served.resource);
        let mut all = Vec::new();
        for ring in rings.into_iter().filter(has_kind) {
            let view = self.view(ring).await?;
            all.push(self.explain_in(&view, target, (served, &catalogue)).await?);
        }
        Ok(all)
    }

    async fn explain_in(
        &self,
        view: &View,
        target: &Target,
        (served, catalogue): (&Served, &Catalogue),
    ) -> Result<Explained, Error> {
        let name = target.in_scope(served);
        let object = self.objects(view, served).get(&name).await?;
        let object = object.ok_or_else(|| Error::NoObject { object: target.say(served) })?;
        let kinds = kinds(&view.ring.spec, catalogue);
        let parent = match kinds.role(&object) {
            Role::Child { parent, .. } => self.parent(view, &parent, catalogue).await?,
            Role::Main { .. } | Role::Foreign => None,
        };
        let is_selected = self.is_selected(&name, &view.ring.spec).await?;
        let (table, states) = (view.table()?, view.states());
        let scene = Scene {
            object: &object,
            parent: parent.as_ref(),
            kinds: &kinds,
            table: table.as_ref(),
            states: &states,
            is_selected,
            force: view.ring.spec.handover.force,
            is_fenced: view.is_fenced(),
            now: view.now.wall,
        };
        Ok(Explained { ring: view.name().clone(), explanation: explain(&scene) })
    }

    async fn parent(
        &self,
        view: &View,
        name: &ObjectName,
        catalogue: &Catalogue,
    ) -> Result<Option<Object>, Error> {
        match catalogue.values().find(|served| served.kind == name.kind) {
            Some(served) => Ok(self.objects(view, served).get(name).await?),
            None => Ok(None),
        }
    }

    fn objects(&self, view: &View, served: &Served) -> Objects {
        Objects::new(self.client.clone(), view.names.clone(), served.clone())
    }
}

/// The one kind that is meant.
pub(super) fn find<'a>(target: &Target, catalogue: &'a Catalogue) -> Result<&'a Served, Error> {
    let kind = &target.kind;
    let mut matching = catalogue.values().filter(|served| names(served, kind));
    match (matching.next(), matching.next()) {
        (Some(served), None) => Ok(served),
        (Some(_), Some(_)) => {
            let all = catalogue.values().filter(|served| names(served, kind));
            let kinds = all.map(|served| served.resource.to_string()).collect();
            Err(Error::Ambiguous { kind: kind.clone(), kinds })
        }
        (None, _) => {
            let known: BTreeSet<String> = catalogue.keys().map(ToString::to_string).collect();
            Err(Error::NoKind { kind: kind.clone(), rings: known.into_iter().collect() })
        }
    }
}

/// Whether the word names the kind: `sites`, `site`, `Site`, `sites.example.com`, `site.example.com`.
fn names(served: &Served, word: &str) -> bool {
    let word = word.to_lowercase();
    let GroupKind { group, kind } = &served.kind;
    let (plural, singular) = (&served.resource.resource, kind.to_lowercase());
    [plural, &singular].into_iter().any(|name| {
        word == *name
            || word
                .strip_prefix(name.as_str())
                .is_some_and(|rest| rest.strip_prefix('.') == Some(group))
    })
}

// === impl Target ===

impl Target {
    fn in_scope(&self, served: &Served) -> ObjectName {
        ObjectName {
            kind: served.kind.clone(),
            namespace: served.is_namespaced.then(|| self.namespace.clone()),
            name: self.name.clone(),
        }
    }

    fn say(&self, served: &Served) -> String {
        let kind = &served.kind.kind;
        match served.is_namespaced {
            true => format!("{kind} `{}` in namespace `{}`", self.name, self.namespace),
            false => format!("{kind} `{}`", self.name),
        }
    }
}

// === impl View ===

impl View {
    fn is_fenced(&self) -> bool {
        let status = self.ring.status.as_ref();
        let mut conditions = status.into_iter().flat_map(|status| &status.conditions);
        conditions.any(|condition| condition.type_ == FENCED && condition.status == "True")
    }
}

// === impl Explained ===

impl Serialize for Explained {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { ring, explanation: it } = self;
        let facts = Facts {
            ring,
            key: it.key.as_deref(),
            counts_as: it.counts_as.as_deref(),
            slot: it.slot.map(|slot| slot.0),
            belongs_to: it.table_owner.as_ref().map(|id| id.as_str()),
            label: it.label.as_ref().map(|id| id.as_str()),
            label_state: it.label_state.map(|state| state.as_str()),
            draining: it.drain.is_some(),
            drain_seconds_left: it.drain.and_then(|drain| match drain {
                DrainLeft::For(left) => Some(left.as_secs()),
                DrainLeft::Over => Some(0),
                DrainLeft::Unreadable => None,
            }),
            waits_for: it.reason.to_string(),
        };
        facts.serialize(serializer)
    }
}
