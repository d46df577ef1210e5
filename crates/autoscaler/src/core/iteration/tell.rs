//! Events of an iteration, in upstream's words.

use std::collections::BTreeSet;

use registry::{GroupId, RemovalReason};

use super::super::account::Account;
use super::super::event::{Event, EventReason, Subject};
use super::super::scale_up::{GroupVerdict, PodVerdict, Unusable, summary};

/// Once increases were carried out: pods are told of those that may have happened.
pub(super) fn scale_up(account: &mut Account, grown: &BTreeSet<GroupId>) {
    let plan = account.scale_up.as_ref().and_then(|plan| plan.within(grown));
    let mut events = Vec::new();
    for (pod, verdict) in &account.pods {
        let refused = |why: &str| {
            (EventReason::NotTriggerScaleUp, format!("pod didn't trigger scale-up: {why}"))
        };
        let told = match verdict {
            PodVerdict::Triggered { .. } => plan.as_ref().map(|plan| {
                (EventReason::TriggeredScaleUp, format!("pod triggered scale-up: {plan}"))
            }),
            PodVerdict::Unsupported(why) => Some(refused(why)),
            PodVerdict::Refused(refusals) if refusals.is_empty() => {
                Some(refused("there are no groups"))
            }
            PodVerdict::Refused(refusals) => Some(refused(&summary(refusals))),
            _ => None,
        };
        events.extend(told.map(|(reason, message)| Event {
            about: Subject::Pod(pod.clone()),
            reason,
            message,
        }));
    }
    let has_refused =
        account.pods.values().any(|verdict| matches!(verdict, PodVerdict::Refused(_)));
    let is_full =
        |verdict: &GroupVerdict| matches!(verdict, GroupVerdict::Unusable(Unusable::NodesTotal));
    if has_refused && account.groups.values().any(is_full) {
        events.push(Event {
            about: Subject::Cluster,
            reason: EventReason::MaxNodesTotalReached,
            message: "Max total nodes in cluster reached".to_owned(),
        });
    }
    account.events.append(&mut events);
}

pub(super) fn scale_down(account: &mut Account) {
    for order in &account.removals {
        let node = &order.node;
        let why = match order.reason {
            RemovalReason::Unneeded if order.is_empty => "empty",
            RemovalReason::Unneeded => "underutilized",
            _ => "unready",
        };
        let reason =
            if order.is_empty { EventReason::ScaleDownEmpty } else { EventReason::ScaleDown };
        account.events.push(Event {
            about: Subject::Cluster,
            reason,
            message: format!("Scale-down: removing {why} node {node}"),
        });
        account.events.push(Event {
            about: Subject::Node(node.clone()),
            reason: EventReason::ScaleDown,
            message: format!("marked the node as toBeDeleted/unschedulable, since it is {why}"),
        });
    }
}
