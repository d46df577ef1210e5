//! What the watcher has to tell people, as Events.

use k8s_openapi::api::core::v1::ObjectReference;
use kubekit::events::{Event, Handle, Severity};

use crate::core::{
    checkpoint::CheckpointError, command::EventReason, object::Uid, snapshot::TooLarge,
};

/// A node has more labels than a ConfigMap can hold.
pub(super) fn too_large(events: &Handle, node: &str, uid: Option<&Uid>, error: TooLarge) {
    events.publish(Event {
        regarding: about(node, uid),
        severity: Severity::Warning,
        reason: EventReason::SnapshotTooLarge.as_str(),
        action: "Store",
        note: format!("its labels will not survive it: {error}"),
    });
}

/// A node went unseen, and the checkpoint that has its labels makes no sense.
pub(super) fn unreadable(
    events: &Handle,
    node: &str,
    uid: &Uid,
    checkpoint: &str,
    error: &CheckpointError,
) {
    events.publish(Event {
        regarding: about(node, Some(uid)),
        severity: Severity::Warning,
        reason: "CheckpointUnreadable",
        action: "Store",
        note: format!(
            "its last labels are in ConfigMap {checkpoint}, which cannot be read: {error}; \
             mend it or delete it"
        ),
    });
}

fn about(node: &str, uid: Option<&Uid>) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(node.to_owned()),
        uid: uid.map(ToString::to_string),
        ..ObjectReference::default()
    }
}

/// The server's versions have no order that we know of. That is about no node, so it is told where
/// our own things are kept.
pub(super) fn unusable(events: &Handle, namespace: &str, note: String) {
    events.publish(Event {
        regarding: ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Namespace".to_owned()),
            name: Some(namespace.to_owned()),
            ..ObjectReference::default()
        },
        severity: Severity::Warning,
        reason: "ResourceVersionUnusable",
        action: "Watch",
        note,
    });
}
