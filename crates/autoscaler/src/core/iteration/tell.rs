//! Events of an iteration, in upstream's words.

use std::collections::BTreeMap;

use registry::{GroupId, RemovalReason};

use super::super::account::Account;
use super::super::event::{Event, EventReason, Subject};
use super::super::scale_up::{GroupVerdict, PodVerdict, ScaleUpPlan, Unusable, summary};
use super::super::world::PodKey;

pub(super) fn scale_up(
    account: &mut Account,
    plan: Option<&ScaleUpPlan>,
    pods: &BTreeMap<PodKey, PodVerdict>,
    groups: &BTreeMap<GroupId, GroupVerdict>,
) {
    for (pod, verdict) in pods {
        let refused = |why: &str| {
            (EventReason::NotTriggerScaleUp, format!("pod didn't trigger scale-up: {why}"))
        };
        let told = match verdict {
            PodVerdict::Triggered { .. } => plan.map(|plan| {
                (EventReason::TriggeredScaleUp, format!("pod triggered scale-up: {plan}"))
            }),
            PodVerdict::Unsupported(why) => Some(refused(why)),
            PodVerdict::Refused(refusals) if refusals.is_empty() => {
                Some(refused("there are no groups"))
            }
            PodVerdict::Refused(refusals) => Some(refused(&summary(refusals))),
            _ => None,
        };
        account.events.extend(told.map(|(reason, message)| Event {
            about: Subject::Pod(pod.clone()),
            reason,
            message,
        }));
    }
    let has_refused = pods.values().any(|verdict| matches!(verdict, PodVerdict::Refused(_)));
    let is_full =
        |verdict: &GroupVerdict| matches!(verdict, GroupVerdict::Unusable(Unusable::NodesTotal));
    if has_refused && groups.values().any(is_full) {
        account.events.push(Event {
            about: Subject::Cluster,
            reason: EventReason::MaxNodesTotalReached,
            message: "Max total nodes in cluster reached".to_owned(),
        });
    }
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
