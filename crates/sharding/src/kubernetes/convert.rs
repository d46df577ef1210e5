//! What is stored, as the core has it, and the patches that change it. Patches are JSON merge patches:
//! they carry their guard themselves and leave alone what they do not name, owner references and the
//! labels of others included.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, OwnerReference};
use serde_json::{Map, Value, json};

use super::stored::Known;
use crate::core::lease::{Lease, Marks};
use crate::core::names::{Annotation, InstanceId, NameError, Names};
use crate::core::object::{
    Controller, Drain, GroupKind, LabelChange, Object, ObjectName, Uid, Version,
};

/// Why what was read is not what the API server always sends, or not what a ring can use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("it has no {0}")]
    Missing(&'static str),
    #[error("the name of a Lease is the id of an instance")]
    Id(#[source] NameError),
    #[error("the name of a Ring ends the keys of labels")]
    Ring(#[source] NameError),
    #[error("it is no Ring that this version knows: {0}")]
    Spec(String),
}

/// A Lease of the ring.
pub fn lease(names: &Names, stored: &api::Lease) -> Result<Lease, Unreadable> {
    let metadata = &stored.metadata;
    let id = metadata.name.clone().ok_or(Unreadable::Missing("name"))?;
    let created = metadata.creation_timestamp.as_ref();
    let version = metadata.resource_version.clone();
    let label = |key: Option<String>| metadata.labels.as_ref()?.get(&key?).cloned();
    let spec = stored.spec.clone().unwrap_or_default();
    Ok(Lease {
        namespace: metadata.namespace.clone().ok_or(Unreadable::Missing("namespace"))?,
        id: InstanceId::try_from(id).map_err(Unreadable::Id)?,
        version: Version(version.ok_or(Unreadable::Missing("resource version"))?),
        created: created.ok_or(Unreadable::Missing("time of creation"))?.0,
        // Some write an empty name when they give a Lease back.
        holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
        duration_s: spec.lease_duration_seconds,
        renewed: spec.renew_time.map(|time| time.0),
        transitions: spec.lease_transitions.unwrap_or(0),
        weight: label(names.weight_label()),
        state: label(Some(names.state_label())),
        marks: marks(names, metadata.annotations.as_ref()),
    })
}

fn marks(names: &Names, annotations: Option<&BTreeMap<String, String>>) -> Marks {
    let text = |of: Annotation| annotations?.get(&names.annotation(of)?).cloned();
    let number = |of: Annotation| text(of)?.parse::<u64>().ok();
    Marks {
        incarnation: text(Annotation::Incarnation),
        pod: text(Annotation::Pod),
        hold: number(Annotation::HoldSeconds).map(Duration::from_secs),
        drain_epoch: number(Annotation::DrainEpoch).unwrap_or(0),
        drain_seen: number(Annotation::DrainSeen).unwrap_or(0),
    }
}

/// Makes the stored Lease this one, if it still has its version. `is_taken`: its holder begins to
/// hold it.
#[must_use]
pub fn lease_patch(names: &Names, lease: &Lease, is_taken: bool) -> Value {
    let mut patch = json!({
        "metadata": {
            "resourceVersion": lease.version.0,
            "labels": lease_labels(names, lease),
            "annotations": lease_annotations(names, lease),
        },
        "spec": lease_spec(lease),
    });
    if is_taken {
        patch["spec"]["acquireTime"] = patch["spec"]["renewTime"].clone();
    }
    patch
}

/// A Lease that does not exist yet.
#[must_use]
pub fn new_lease(names: &Names, lease: &Lease) -> Value {
    let mut labels = lease_labels(names, lease);
    labels.insert(names.ring_label(), json!(names.ring()));
    let mut spec = lease_spec(lease);
    spec["acquireTime"] = spec["renewTime"].clone();
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": lease.id,
            "namespace": lease.namespace,
            "labels": without_nulls(labels),
            "annotations": without_nulls(lease_annotations(names, lease)),
        },
        "spec": spec,
    })
}

fn lease_labels(names: &Names, lease: &Lease) -> Map<String, Value> {
    let weight = names.weight_label().map(|key| (key, json!(lease.weight)));
    let state = Some((names.state_label(), json!(lease.state)));
    weight.into_iter().chain(state).collect()
}

/// What is absent is removed.
fn lease_annotations(names: &Names, lease: &Lease) -> Map<String, Value> {
    let Marks { incarnation, pod, hold, drain_epoch, drain_seen } = &lease.marks;
    let epoch = |number: u64| (number > 0).then(|| number.to_string());
    let all = [
        (Annotation::Incarnation, incarnation.clone()),
        (Annotation::Pod, pod.clone()),
        (Annotation::HoldSeconds, hold.map(|hold| hold.as_secs().to_string())),
        (Annotation::DrainEpoch, epoch(*drain_epoch)),
        (Annotation::DrainSeen, epoch(*drain_seen)),
    ];
    let known = all.into_iter().filter_map(|(of, value)| Some((names.annotation(of)?, value)));
    known.map(|(key, value)| (key, json!(value))).collect()
}

fn lease_spec(lease: &Lease) -> Value {
    json!({
        "holderIdentity": lease.holder,
        "leaseDurationSeconds": lease.duration_s,
        "renewTime": lease.renewed.map(MicroTime),
        "leaseTransitions": lease.transitions,
    })
}

fn without_nulls(map: Map<String, Value>) -> Map<String, Value> {
    map.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// An object of this kind, of which the metadata is enough.
pub fn object<'a>(
    names: &Names,
    kind: &GroupKind,
    metadata: impl Into<Known<'a>>,
) -> Result<Object, Unreadable> {
    let metadata = metadata.into();
    let label = |key: String| metadata.labels.and_then(|labels| labels.get(&key));
    let controller = metadata.owners.iter().find(|owner| owner.controller == Some(true));
    let (shard, drain) = (label(names.shard_label()), label(names.drain_label()));
    let (shard, drain) =
        (shard.map(|id| InstanceId::from_label(id)), drain.map(|value| Drain::parse(value)));
    let version = metadata.version.ok_or(Unreadable::Missing("resource version"))?;
    let namespace = metadata.namespace.filter(|namespace| !namespace.is_empty());
    Ok(Object {
        shard,
        drain,
        controller: controller.map(of_owner),
        name: ObjectName {
            kind: kind.clone(),
            namespace: namespace.map(ToOwned::to_owned),
            name: metadata.name.ok_or(Unreadable::Missing("name"))?.to_owned(),
        },
        uid: Uid(metadata.uid.ok_or(Unreadable::Missing("uid"))?.to_owned()),
        version: Version(version.to_owned()),
    })
}

/// `apps/v1` is of the group `apps`; `v1` is of the group without a name.
fn of_owner(owner: &OwnerReference) -> Controller {
    let group = owner.api_version.split_once('/').map_or("", |(group, _version)| group);
    Controller {
        kind: GroupKind::new(group, &owner.kind),
        name: owner.name.clone(),
        uid: Uid(owner.uid.clone()),
    }
}

/// Changes the two labels, if the object still has this version.
#[must_use]
pub fn label_patch(names: &Names, version: &Version, change: &LabelChange) -> Value {
    let (shard, drain) = (names.shard_label(), names.drain_label());
    let labels = match change {
        LabelChange::Shard(to) => json!({shard: to, drain: null}),
        LabelChange::Drain(value) => json!({drain: value.to_string()}),
        LabelChange::Undrain => json!({drain: null}),
        LabelChange::Clear => json!({shard: null, drain: null}),
    };
    json!({"metadata": {"resourceVersion": version.0, "labels": labels}})
}
