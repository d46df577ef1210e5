//! What the watcher has to tell people, as Events.

use k8s_openapi::api::core::v1::ObjectReference;
use kubekit::events::{Event, Handle, Severity};

use crate::core::{
    checkpoint::CheckpointError, command::EventReason, object::Uid, rv::ResourceVersion,
    snapshot::TooLarge, watch::resume::Reason,
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

/// The server's versions have no order that we know of.
pub(super) fn unusable(events: &Handle, namespace: &str, note: String) {
    events.publish(Event {
        regarding: namespace_of_ours(namespace),
        severity: Severity::Warning,
        reason: "ResourceVersionUnusable",
        action: "Watch",
        note,
    });
}

/// Between these two versions, events of nodes are lost to us.
pub(super) fn missed(
    events: &Handle,
    namespace: &str,
    reason: Reason,
    [last, position]: [&ResourceVersion; 2],
) {
    events.publish(Event {
        regarding: namespace_of_ours(namespace),
        severity: Severity::Warning,
        reason: "HistoryMissed",
        action: "Watch",
        note: missed_note(reason, last, position),
    });
}

fn missed_note(reason: Reason, last: &ResourceVersion, position: &ResourceVersion) -> String {
    let what = match reason {
        Reason::WentBack => format!(
            "history went back: Nodes were seen up to resourceVersion {last}, and the API server is \
             at {position}; what happened between the version it went back to and {position} was \
             not seen"
        ),
        Reason::Expired | Reason::NoPosition => format!(
            "what happened to Nodes between resourceVersions {last} and {position} was not seen: \
             the API server no longer has it"
        ),
    };
    format!(
        "{what}. Of Nodes deleted there, only checkpoints tell the labels; of one that was born \
         there too, nothing does"
    )
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

/// What is about no node is told where our own things are kept.
fn namespace_of_ours(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Namespace".to_owned()),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}
