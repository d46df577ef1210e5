//! The filters, in one fixed order: does a pod of this class fit on this node now?

use crate::amounts::Short;
use crate::class::ClassId;
use crate::cluster::Cluster;
use crate::node::NodeId;
use crate::placement::Mismatch;
use crate::ports::HostPort;
use crate::topology::{Links, TallyId};

/// The first filter that a pod fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    Machine(Mismatch),
    Port(HostPort),
    TooManyPods,
    Short(Short),
    /// By the constraint's place among the pod's.
    SpreadLabel(usize),
    Skew(usize),
    Affinity,
    AntiAffinity,
    Repelled,
}

// === impl Obstacle ===

impl Obstacle {
    /// Whether pods that come to this or any node may remove it. All others only go when pods do.
    pub(crate) fn may_pass(self) -> bool {
        matches!(self, Self::Skew(_) | Self::Affinity)
    }
}

// === impl Cluster ===

impl Cluster {
    /// Whether one more pod of the class fits on the node.
    ///
    /// # Panics
    ///
    /// If the node is not there.
    pub fn fits(&mut self, class: ClassId, node: NodeId) -> bool {
        self.check(class, node).is_ok()
    }

    pub(crate) fn check(&mut self, id: ClassId, node: NodeId) -> Result<(), Obstacle> {
        let placement = self.class(id).placement;
        self.verdict(placement, node).map_err(Obstacle::Machine)?;
        self.check_room(id, node)?;
        let links = self.topology.links(id);
        self.check_spread(id, links, node)?;
        self.check_company(links, node)
    }

    fn check_room(&self, id: ClassId, node: NodeId) -> Result<(), Obstacle> {
        let class = self.class(id);
        let host = self.host(node);
        let is_taken = |port: &&HostPort| host.ports.iter().any(|(used, _)| used.conflicts(port));
        if let Some(port) = class.ports.iter().find(is_taken) {
            return Err(Obstacle::Port(*port));
        }
        if host.pods + 1 > host.machine.pods_max {
            return Err(Obstacle::TooManyPods);
        }
        let short = class.requests.shortage(&host.machine.allocatable, &host.used);
        short.map_or(Ok(()), |short| Err(Obstacle::Short(short)))
    }

    fn check_spread(&self, id: ClassId, links: &Links, node: NodeId) -> Result<(), Obstacle> {
        let class = self.class(id);
        for (at, (rule, link)) in class.spread.iter().zip(&links.spread).enumerate() {
            let tally = self.topology.spread(link.id);
            let domain = self.topology.domain(tally.key(), node.slot());
            let domain = domain.ok_or(Obstacle::SpreadLabel(at))?;
            let skew = tally.skew(domain, link.adds, rule.domains_min);
            if skew.is_some_and(|skew| skew > rule.skew_max) {
                return Err(Obstacle::Skew(at));
            }
        }
        Ok(())
    }

    fn check_company(&self, links: &Links, node: NodeId) -> Result<(), Obstacle> {
        let mut has_company = true;
        for id in &links.affinity {
            let tally = self.topology.tally(*id);
            let domain = self.topology.domain(tally.key(), node.slot());
            has_company &= tally.count(domain.ok_or(Obstacle::Affinity)?) > 0;
        }
        let is_first = || {
            links.is_own_company
                && links.affinity.iter().all(|id| self.topology.tally(*id).is_empty())
        };
        if !has_company && !is_first() {
            return Err(Obstacle::Affinity);
        }
        let is_near = |id: &TallyId| {
            let tally = self.topology.tally(*id);
            let domain = self.topology.domain(tally.key(), node.slot());
            domain.is_some_and(|domain| tally.count(domain) > 0)
        };
        if links.anti_affinity.iter().any(is_near) {
            return Err(Obstacle::AntiAffinity);
        }
        if links.repelled_by.iter().any(is_near) {
            return Err(Obstacle::Repelled);
        }
        Ok(())
    }
}
