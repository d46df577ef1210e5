//! What the kubelets of the cloud would write to the API server now, and what controllers that are not
//! there would: a plan, made anew from what is seen each time. Carries out nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use registry::{ConditionStatus, NodeName};

use super::after;
use super::cloud::Cloud;
use super::node::{Health, Node};

/// How often a kubelet renews its Lease.
const RENEWAL: Duration = Duration::from_secs(10);

/// What the API server has.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Those that bear our label.
    pub nodes: BTreeMap<NodeName, SeenNode>,
    /// Those that are bound to a Node.
    pub pods: Vec<SeenPod>,
    /// When Leases were last renewed.
    pub renewals: BTreeMap<NodeName, Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenNode {
    /// Condition Ready.
    pub ready: Option<ConditionStatus>,
    /// The taint that admission gives to every new Node.
    pub has_not_ready_taint: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenPod {
    pub pod: PodName,
    pub node: NodeName,
    pub is_pending: bool,
    pub is_terminating: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodName {
    pub namespace: String,
    pub name: String,
}

/// One write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// With its conditions.
    Register(NodeName),
    /// Sets condition Ready.
    Report {
        node: NodeName,
        ready: ConditionStatus,
        since: Timestamp,
    },
    LiftTaint(NodeName),
    Renew(NodeName),
    Remove(NodeName),
    Run(PodName),
    /// Without grace: nobody is left who would end it.
    End(PodName),
}

// === impl Cloud ===

impl Cloud {
    /// What is to be written, Nodes first.
    #[must_use]
    pub fn plan(&self, seen: &Seen) -> Vec<Command> {
        let mut commands: Vec<Command> =
            self.nodes.values().flat_map(|node| self.for_node(node, seen)).collect();
        let gone = seen.nodes.keys().filter(|name| !self.nodes.contains_key(*name));
        commands.extend(gone.cloned().map(Command::Remove));
        commands.extend(seen.pods.iter().filter_map(|pod| self.for_pod(pod)));
        commands
    }

    fn for_node(&self, node: &Node, seen: &Seen) -> Vec<Command> {
        let mut commands = Vec::new();
        let name = || node.name.clone();
        let is_heard = node.health != Health::Silent;
        match seen.nodes.get(&node.name) {
            None if is_heard => commands.push(Command::Register(name())),
            None => {}
            Some(known) => {
                let ready = self.reported(node).filter(|ready| known.ready != Some(*ready));
                let report = |ready| Command::Report { node: name(), ready, since: node.since };
                commands.extend(ready.map(report));
                if known.has_not_ready_taint && node.health == Health::Ready {
                    commands.push(Command::LiftTaint(name()));
                }
            }
        }
        let renewed = seen.renewals.get(&node.name);
        if is_heard && renewed.is_none_or(|at| after(*at, RENEWAL) <= self.now) {
            commands.push(Command::Renew(name()));
        }
        commands
    }

    /// What condition Ready ought to be; `None`: whatever it was.
    fn reported(&self, node: &Node) -> Option<ConditionStatus> {
        match node.health {
            Health::Ready => Some(ConditionStatus::True),
            Health::NotReady => Some(ConditionStatus::False),
            Health::Silent => {
                let overdue = after(node.since, self.scenario.unknown_after?);
                (overdue <= self.now).then_some(ConditionStatus::Unknown)
            }
        }
    }

    fn for_pod(&self, seen: &SeenPod) -> Option<Command> {
        let pod = || seen.pod.clone();
        match self.nodes.get(&seen.node) {
            Some(node) if node.health == Health::Silent => None,
            Some(_) if seen.is_terminating => Some(Command::End(pod())),
            Some(_) => seen.is_pending.then(|| Command::Run(pod())),
            None => self.has_issued(&seen.node.0).then(|| Command::End(pod())),
        }
    }
}
