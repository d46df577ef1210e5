//! What is noticed is told: Events, metrics, and the log.

use std::collections::{BTreeMap, BTreeSet};

use registry::{EventReason, NodeName, Notices};

use super::Driver;
use super::term::Term;
use crate::cluster::{About, Cluster, Event};
use crate::core::{self, Account, KeptPod, PodKey, Subject, World};
use crate::options::Mode;
use crate::provider::Provider;

type Index<'a> = BTreeMap<PodKey, &'a KeptPod>;

// === impl Term ===

impl Term {
    /// What the registry has noticed. Strange facts are those of an observation; an outcome has none.
    pub(super) fn tell_notices<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
        notices: Notices,
    ) {
        for failure in &notices.failures {
            driver.metrics.on_failure(failure);
            let registry::Failure { group, code, message, delta } = failure;
            tracing::warn!(%group, %code, message, delta, "a scale-up failed");
        }
        for event in notices.events {
            tracing::info!(reason = %event.reason, message = event.message, "noticed");
            if driver.options.mode == Mode::Act {
                driver.cluster.tell(Event {
                    about: About::Status,
                    reason: of_registry(event.reason),
                    is_warning: event.reason.is_warning(),
                    note: event.message,
                });
            }
        }
        for report in &notices.reports {
            let report = report.to_string();
            if self.reported.insert(report.clone()) {
                tracing::warn!("{report}");
            }
        }
    }

    /// What an iteration has found out, each thing once while it lasts.
    pub(super) fn tell_account<P: Provider, C: Cluster>(
        &mut self,
        driver: &Driver<P, C>,
        account: &Account,
        world: &World,
    ) {
        let mut told = BTreeSet::new();
        let mut pods = None;
        for event in &account.events {
            let core::Event { about, reason, message } = event;
            let key = format!("{about:?} {reason} {message}");
            let is_new = !self.told.contains(&key);
            told.insert(key);
            if is_new && driver.options.mode == Mode::Act {
                driver.cluster.tell(Event {
                    about: of_subject(about, world, &mut pods),
                    reason: of_core(*reason),
                    is_warning: reason.is_warning(),
                    note: message.clone(),
                });
            }
        }
        self.told = told;
        for report in &account.reports {
            if self.reported.insert(report.clone()) {
                tracing::warn!("{report}");
            }
        }
        let reports = account.notices.reports.iter().map(ToString::to_string);
        let current: BTreeSet<String> = reports.chain(account.reports.iter().cloned()).collect();
        self.reported.retain(|report| current.contains(report));
    }
}

pub(super) fn about_node(name: &NodeName, world: &World) -> About {
    let uid = world.nodes.get(name).and_then(|node| node.metadata.uid.clone());
    About::Node { name: name.clone(), uid }
}

/// Of one pod; several are found by an index.
pub(super) fn uid_of(key: &PodKey, world: &World) -> Option<String> {
    world.pods.iter().find(|pod| PodKey::of(pod) == *key).and_then(|pod| uid(pod))
}

/// Pods are found by an index that is made for the first of them.
fn of_subject<'a>(subject: &Subject, world: &'a World, pods: &mut Option<Index<'a>>) -> About {
    match subject {
        Subject::Cluster => About::Status,
        Subject::Node(name) => about_node(name, world),
        Subject::Pod(key) => {
            let index = || world.pods.iter().map(|pod| (PodKey::of(pod), &**pod)).collect();
            let pod = pods.get_or_insert_with(index).get(key);
            About::Pod { key: key.clone(), uid: pod.and_then(|pod| uid(pod)) }
        }
    }
}

fn uid(pod: &KeptPod) -> Option<String> {
    pod.uid.as_deref().map(ToOwned::to_owned)
}

/// By upstream's names.
fn of_registry(reason: EventReason) -> &'static str {
    match reason {
        EventReason::ScaledUpGroup => "ScaledUpGroup",
        EventReason::FailedToScaleUpGroup => "FailedToScaleUpGroup",
        EventReason::ScaleUpTimedOut => "ScaleUpTimedOut",
        EventReason::FailedToRevertScaleUp => "FailedToRevertScaleUp",
        EventReason::ScaleUpFailed => "ScaleUpFailed",
        EventReason::DeleteUnregistered => "DeleteUnregistered",
        EventReason::DeleteUnregisteredFailed => "DeleteUnregisteredFailed",
        EventReason::ClusterUnhealthy => "ClusterUnhealthy",
    }
}

/// By upstream's names.
fn of_core(reason: core::EventReason) -> &'static str {
    use core::EventReason;
    match reason {
        EventReason::TriggeredScaleUp => "TriggeredScaleUp",
        EventReason::NotTriggerScaleUp => "NotTriggerScaleUp",
        EventReason::MaxNodesTotalReached => "MaxNodesTotalReached",
        EventReason::ScaleDown => "ScaleDown",
        EventReason::ScaleDownEmpty => "ScaleDownEmpty",
    }
}
