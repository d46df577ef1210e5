//! Which group and which machine each Node has.

use std::collections::BTreeMap;

use super::{Place, Placed, Reading, Sieve};
use crate::facts::{Instance, Membership, Node};
use crate::id::GroupId;
use crate::notice::Report;

/// Where instances can be looked up.
struct Machines<'f> {
    /// By id.
    places: Vec<Place<'f>>,
    /// By the last segment of the id; `None` where several have it.
    by_segment: BTreeMap<&'f str, Option<Place<'f>>>,
}

// === impl Sieve ===

impl Sieve<'_> {
    pub(super) fn nodes<'f>(
        &mut self,
        nodes: &'f [Node],
        groups: &BTreeMap<GroupId, Reading<'f>>,
        places: Vec<Place<'f>>,
    ) -> Vec<Placed<'f>> {
        let mut sorted: Vec<&Node> = nodes.iter().collect();
        // Of several with one name the youngest comes last, and so is the one that is kept.
        sorted.sort_by(|one, other| one.name.cmp(&other.name).then_with(|| one.cmp(other)));
        let twice = sorted.windows(2).filter(|pair| pair[0].name == pair[1].name);
        let twice = twice.map(|pair| Report::NodeListedTwice { node: pair[0].name.clone() });
        self.reports.extend(twice);
        let has_unnamed = nodes.iter().any(|node| node.provider_id.is_empty());
        let machines = Machines::of(places, has_unnamed);
        let placed = sorted.into_iter().map(|node| self.place(node, groups, &machines));
        let mut placed: Vec<Placed<'_>> = placed.collect();
        placed.dedup_by(|next, last| {
            let is_same = next.node.name == last.node.name;
            if is_same {
                std::mem::swap(last, next);
            }
            is_same
        });
        placed
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
        let named = id.and_then(|id| machines.find(id));
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

    /// Of several Nodes with one machine the youngest counts. All machines that have one are returned,
    /// by id.
    pub(super) fn find_twins<'f>(&mut self, nodes: &mut [Placed<'f>]) -> Vec<&'f str> {
        let machines = nodes.iter().filter_map(|placed| Some((placed.machine()?, placed.node)));
        let mut sorted: Vec<(&str, &Node)> = machines.collect();
        sorted.sort();
        for twins in sorted.chunk_by(|(one, _), (other, _)| one == other) {
            let [.., (id, youngest)] = twins else { continue };
            if twins.len() == 1 {
                continue;
            }
            self.reports.push(Report::InstanceWithSeveralNodes { instance: (*id).into() });
            for (_, twin) in twins {
                let found = nodes.binary_search_by_key(&&twin.name, |placed| &placed.node.name);
                if let Ok(at) = found {
                    nodes[at].has_twin = true;
                    nodes[at].is_counted = twin.name == youngest.name;
                }
            }
        }
        let mut registered: Vec<&str> = sorted.into_iter().map(|(id, _)| id).collect();
        registered.dedup();
        registered
    }
}

// === impl Machines ===

impl<'f> Machines<'f> {
    fn of(places: Vec<Place<'f>>, has_unnamed: bool) -> Self {
        let mut by_segment = BTreeMap::new();
        for place in places.iter().filter(|_| has_unnamed) {
            let known = by_segment.entry(place.instance.id.last_segment()).or_insert(Some(*place));
            known.take_if(|known| known.instance.id != place.instance.id);
        }
        Self { places, by_segment }
    }

    fn find(&self, id: &str) -> Option<&Place<'f>> {
        let at = self.places.binary_search_by_key(&id, |place| place.id).ok()?;
        self.places.get(at)
    }
}
