//! The first failing filter in words. Where the scheduler has words for it, they are the scheduler's.

use std::fmt;

use crate::check::Obstacle;
use crate::class::ClassId;
use crate::cluster::{Cluster, Template};
use crate::node::NodeId;
use crate::placement::Mismatch;

/// Why a pod does not fit on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    Cordoned,
    NodeName,
    Taint {
        key: String,
        value: String,
    },
    NodeAffinity,
    VolumeAffinity,
    VolumeZone,
    HostPort(i32),
    TooManyPods {
        max: i64,
    },
    /// Of cpu, in thousandths; else in units.
    Insufficient {
        resource: String,
        requested: i64,
        used: i64,
        allocatable: i64,
    },
    /// The node lacks the label that pods are spread over.
    SpreadLabel(String),
    Spread(String),
    PodAffinity,
    PodAntiAffinity,
    /// Pods that are there keep this one away.
    ExistingAntiAffinity,
}

// === impl Refusal ===

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cordoned => f.write_str("node is unschedulable"),
            Self::NodeName => f.write_str("node does not match the requested node name"),
            Self::Taint { key, value } => {
                write!(f, "node has untolerated taint {{{key}: {value}}}")
            }
            Self::NodeAffinity => f.write_str("node does not match Pod's node affinity/selector"),
            Self::VolumeAffinity => f.write_str("node has volume node affinity conflict"),
            Self::VolumeZone => f.write_str("node has no available volume zone"),
            Self::HostPort(port) => write!(f, "node does not have free port {port}"),
            Self::TooManyPods { max } => write!(f, "Too many pods: {max} of {max}"),
            Self::Insufficient { resource, requested, used, allocatable } => {
                let unit = if resource == "cpu" { "m" } else { "" };
                write!(f, "Insufficient {resource}: requested {requested}{unit}, ")?;
                write!(f, "used {used}{unit} of {allocatable}{unit}")
            }
            Self::SpreadLabel(key) => write!(f, "node lacks topology label {key}"),
            Self::Spread(key) => {
                write!(f, "node does not match pod topology spread constraints on {key}")
            }
            Self::PodAffinity => f.write_str("node does not match pod affinity rules"),
            Self::PodAntiAffinity => f.write_str("node does not match pod anti-affinity rules"),
            Self::ExistingAntiAffinity => {
                f.write_str("node does not satisfy existing pods anti-affinity rules")
            }
        }
    }
}

// === impl Cluster ===

impl Cluster {
    /// Why one more pod of the class does not fit on the node; none if it does.
    ///
    /// # Panics
    ///
    /// If the node is not there.
    pub fn explain(&mut self, class: ClassId, node: NodeId) -> Option<Refusal> {
        let obstacle = self.check(class, node).err()?;
        Some(self.refusal(class, node, obstacle))
    }

    /// Why a pod of the class would not fit on a new node of the group; none if it would.
    #[must_use]
    pub fn explain_new(&self, class: ClassId, template: &Template) -> Option<Refusal> {
        let mut fork = self.fork();
        let node = fork.add_from(template);
        fork.explain(class, node)
    }

    pub(crate) fn refusal(&self, class: ClassId, node: NodeId, obstacle: Obstacle) -> Refusal {
        let class = self.class(class);
        let host = self.host(node);
        let words = &self.lexicon.words;
        let key = |at: usize| words.text(class.spread[at].key).into_owned();
        match obstacle {
            Obstacle::Machine(mismatch) => self.mismatch(node, mismatch),
            Obstacle::Port(port) => Refusal::HostPort(port.number),
            Obstacle::TooManyPods => Refusal::TooManyPods { max: host.machine.pods_max },
            Obstacle::Short(short) => Refusal::Insufficient {
                resource: short.name(words),
                requested: class.requests.get(short),
                used: host.used.get(short),
                allocatable: host.machine.allocatable.get(short),
            },
            Obstacle::SpreadLabel(at) => Refusal::SpreadLabel(key(at)),
            Obstacle::Skew(at) => Refusal::Spread(key(at)),
            Obstacle::Affinity => Refusal::PodAffinity,
            Obstacle::AntiAffinity => Refusal::PodAntiAffinity,
            Obstacle::Repelled => Refusal::ExistingAntiAffinity,
        }
    }

    fn mismatch(&self, node: NodeId, mismatch: Mismatch) -> Refusal {
        let words = &self.lexicon.words;
        match mismatch {
            Mismatch::Cordoned => Refusal::Cordoned,
            Mismatch::Name => Refusal::NodeName,
            Mismatch::Taint(at) => {
                let taint = self.host(node).machine.taints[usize::from(at)];
                let text = |symbol| words.text(symbol).into_owned();
                Refusal::Taint { key: text(taint.key), value: text(taint.value) }
            }
            Mismatch::Affinity => Refusal::NodeAffinity,
            Mismatch::VolumeAffinity => Refusal::VolumeAffinity,
            Mismatch::VolumeZone => Refusal::VolumeZone,
        }
    }
}
