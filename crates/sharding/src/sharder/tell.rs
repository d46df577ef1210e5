//! What users are told by Events: on the Ring about its instances, on an object that was taken by
//! force.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use kube::core::ObjectMeta;
use kubekit::events::{Event, Handle as Events, Severity};

use super::plan::in_words;
use crate::core::object::{GroupKind, ObjectName};
use crate::core::sharder::News;
use crate::kubernetes::{Ring, Unreadable};

pub(super) struct Teller {
    events: Events,
    ring: ObjectReference,
}

/// A Ring that this version cannot read.
pub(super) fn unreadable(events: &Events, metadata: &ObjectMeta, error: &Unreadable) {
    let regarding = ring_reference(metadata);
    let note = format!("the ring stands still: {}", in_words(error));
    let (severity, reason, action) = (Severity::Warning, "InvalidSpec", "Read");
    events.publish(Event { regarding, severity, reason, action, note });
}

// === impl Teller ===

impl Teller {
    pub(super) fn new(events: Events, ring: &Ring) -> Self {
        Self { events, ring: ring_reference(&ring.metadata) }
    }

    /// `api_version` knows in which version a kind is served.
    pub(super) fn tell(&self, news: &News, api_version: impl Fn(&GroupKind) -> Option<String>) {
        let (reason, action, note) = match news {
            News::MemberDead(id) => {
                ("MemberDead", "Move", format!("instance {id} is dead; its objects are moved"))
            }
            News::UnreadableWeight(id) => {
                let note = format!(
                    "the virtual-nodes label of {id} is no number from 0 to 1000; 100 counts"
                );
                ("BadVirtualNodes", "Weigh", note)
            }
            News::IdInUse { id, namespace } => {
                let note =
                    format!("Lease {namespace}/{id} gets nothing: an elder one has the same id");
                ("Conflict", "Join", note)
            }
            News::Overdue { object, owner } => {
                let note = format!("{owner} does not give up {object}, and it is not safe to take");
                ("DrainOverdue", "Drain", note)
            }
            News::TooManyInstances(count) => {
                ("TooManyInstances", "Balance", format!("{count} instances share too few slots"))
            }
            News::Strayed { object, carries } => {
                let note =
                    format!("somebody labelled it for {carries}; it is given back to its instance");
                let regarding = reference(object, api_version(&object.kind));
                return self.publish(regarding, "Relabelled", "Drain", note);
            }
            News::NameTaken { id, namespace } => {
                let note = format!(
                    "Lease {namespace}/{id} is not of this ring; what {id} has stays where it is"
                );
                ("LeaseNotOfRing", "Acquire", note)
            }
            News::Stuck { object, owner } => {
                let note =
                    format!("{owner} is gone, and the object cannot be labelled for another");
                let regarding = reference(object, api_version(&object.kind));
                return self.publish(regarding, "CannotMove", "Move", note);
            }
            News::Forced { object, from } => {
                let note = format!("{from} did not give it up in time; it was taken");
                let regarding = reference(object, api_version(&object.kind));
                return self.publish(regarding, "ForceMoved", "Move", note);
            }
            News::Assigned { .. } | News::Moved { .. } => return,
        };
        self.publish(self.ring.clone(), reason, action, note);
    }

    fn publish(
        &self,
        regarding: ObjectReference,
        reason: &'static str,
        action: &'static str,
        note: String,
    ) {
        let severity = Severity::Warning;
        self.events.publish(Event { regarding, severity, reason, action, note });
    }
}

fn ring_reference(metadata: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        api_version: Some(Ring::api_version(&()).into_owned()),
        kind: Some(Ring::kind(&()).into_owned()),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

fn reference(object: &ObjectName, api_version: Option<String>) -> ObjectReference {
    ObjectReference {
        api_version,
        kind: Some(object.kind.kind.clone()),
        namespace: object.namespace.clone(),
        name: Some(object.name.clone()),
        ..ObjectReference::default()
    }
}
