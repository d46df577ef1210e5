//! Events on Nodes.

use k8s_openapi::api::core::v1::ObjectReference;
use kubekit::events::{Event, Handle, Severity};

use crate::core::{
    command::{self, EventReason},
    object::LiveNode,
};

/// Tells about a node, dead or alive.
pub(super) fn tell(events: &Handle, node: &str, live: Option<&LiveNode>, event: &command::Event) {
    let is_warning = event.reason.is_warning();
    events.publish(Event {
        regarding: ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(node.to_owned()),
            uid: live.map(|live| live.uid.to_string()),
            ..ObjectReference::default()
        },
        severity: if is_warning { Severity::Warning } else { Severity::Normal },
        reason: event.reason.as_str(),
        action: action(event.reason),
        note: event.note.clone(),
    });
}

/// What was being done.
fn action(reason: EventReason) -> &'static str {
    match reason {
        EventReason::LabelsStored
        | EventReason::LateDelete
        | EventReason::DeleteContradicted
        | EventReason::ResourceVersionWentBack
        | EventReason::SnapshotTooLarge => "Store",
        EventReason::LabelsRestored
        | EventReason::RestoreSkipped
        | EventReason::RestoreConflict => "Restore",
        EventReason::LabelsAmended => "Amend",
        EventReason::Quarantined | EventReason::NameClash => "Quarantine",
    }
}
