//! Which group and which machine each Node has.

use std::collections::BTreeMap;

use super::{Placed, Reading, Sieve};
use crate::facts::{Instance, Membership, Node};
use crate::id::{GroupId, NodeName};
use crate::notice::Report;

/// Where instances can be looked up.
struct Machines<'f> {
    by_id: BTreeMap<&'f str, Place<'f>>,
    /// By the last segment of the id; `None` where several have it.
    by_segment: BTreeMap<&'f str, Option<Place<'f>>>,
}

/// An instance, and the group that lists it.
#[derive(Clone, Copy)]
struct Place<'f> {
    group: &'f GroupId,
    instance: &'f Instance,
}

// === impl Sieve ===

impl Sieve<'_> {
    pub(super) fn nodes<'f>(
        &mut self,
        nodes: &'f [Node],
        groups: &BTreeMap<GroupId, Reading<'f>>,
    ) -> BTreeMap<&'f NodeName, Placed<'f>> {
        let mut sorted: Vec<&Node> = nodes.iter().collect();
        // Of several with one name the youngest comes last, and so is the one that is collected.
        sorted.sort_by(|one, other| one.name.cmp(&other.name).then_with(|| one.cmp(other)));
        let twice = sorted.windows(2).filter(|pair| pair[0].name == pair[1].name);
        let twice = twice.map(|pair| Report::NodeListedTwice { node: pair[0].name.clone() });
        self.reports.extend(twice);
        let has_unnamed = nodes.iter().any(|node| node.provider_id.is_empty());
        let machines = Machines::of(groups, has_unnamed);
        let placed =
            sorted.into_iter().map(|node| (&node.name, self.place(node, groups, &machines)));
        placed.collect()
    }

    fn place<'f>(
        &mut self,
        node: &'f Node,
        groups: &BTreeMap<GroupId, Reading<'f>>,
        machines: &Machines<'f>,
    ) -> Placed<'f> {
        self.report_future(node);
        let created = node.created.min(self.now);
        let (group, instance) = self.belongs(node, groups, machines);
        Placed { node, created, group, instance, has_twin: false, is_counted: true }
    }

    fn belongs<'f>(
        &mut self,
        node: &'f Node,
        groups: &BTreeMap<GroupId, Reading<'f>>,
        machines: &Machines<'f>,
    ) -> (Option<&'f GroupId>, Option<&'f Instance>) {
        let id = Some(node.provider_id.as_str()).filter(|id| !id.is_empty());
        let named = id.and_then(|id| machines.by_id.get(id));
        let instance = named.map(|place| place.instance);
        let reading = match &node.membership {
            Membership::Group(group) => groups.get(group),
            Membership::Unmanaged | Membership::Unknown => None,
        };
        match (&node.membership, reading) {
            (Membership::Group(group), Some(reading)) => {
                if id.is_none() && reading.sizes.is_ok() {
                    return self.match_by_name(node, group, machines);
                }
                (Some(group), instance)
            }
            (Membership::Group(_) | Membership::Unmanaged, _) => (None, instance),
            (Membership::Unknown, _) => {
                self.reports.push(Report::MembershipUnknown { node: node.name.clone() });
                (named.map(|place| place.group), instance)
            }
        }
    }

    /// A node without provider id belongs where one instance is called like it, if the provider
    /// agrees.
    fn match_by_name<'f>(
        &mut self,
        node: &Node,
        group: &'f GroupId,
        machines: &Machines<'f>,
    ) -> (Option<&'f GroupId>, Option<&'f Instance>) {
        let place = machines.by_segment.get(node.name.as_str()).copied().flatten();
        let Some(place) = place.filter(|place| place.group == group) else {
            self.reports.push(Report::NodeUnmatched { node: node.name.clone() });
            return (None, None);
        };
        (Some(group), Some(place.instance))
    }

    fn report_future(&mut self, node: &Node) {
        let is_ahead = |at| at > self.now;
        let mut transitions = node.conditions.values().filter_map(|it| it.last_transition);
        let what = if is_ahead(node.created) {
            "creation"
        } else if transitions.any(is_ahead) {
            "transition"
        } else {
            return;
        };
        self.reports.push(Report::TimeInFuture { node: node.name.clone(), what });
    }

    /// Of several Nodes with one machine the youngest counts.
    pub(super) fn find_twins(&mut self, nodes: &mut BTreeMap<&NodeName, Placed<'_>>) {
        let machines = nodes.values().filter_map(|placed| Some((placed.machine()?, placed.node)));
        let mut sorted: Vec<(&str, &Node)> = machines.collect();
        sorted.sort();
        for twins in sorted.chunk_by(|(one, _), (other, _)| one == other) {
            let [.., (id, youngest)] = twins else { continue };
            if twins.len() == 1 {
                continue;
            }
            self.reports.push(Report::InstanceWithSeveralNodes { instance: (*id).into() });
            for (_, twin) in twins {
                if let Some(placed) = nodes.get_mut(&twin.name) {
                    placed.has_twin = true;
                    placed.is_counted = twin.name == youngest.name;
                }
            }
        }
    }
}

// === impl Machines ===

impl<'f> Machines<'f> {
    fn of(groups: &BTreeMap<GroupId, Reading<'f>>, has_unnamed: bool) -> Self {
        let good = groups.values().filter_map(|reading| reading.sizes.as_ref().ok());
        let place = |group, instance| Place { group, instance };
        let places = good.flat_map(|it| it.instances.values().map(|each| place(it.group, each)));
        let by_id: BTreeMap<&str, Place<'_>> =
            places.map(|place| (place.instance.id.as_str(), place)).collect();
        let mut by_segment = BTreeMap::new();
        for place in by_id.values().filter(|_| has_unnamed) {
            let known = by_segment.entry(place.instance.id.last_segment()).or_insert(Some(*place));
            known.take_if(|known| known.instance.id != place.instance.id);
        }
        Self { by_id, by_segment }
    }
}
