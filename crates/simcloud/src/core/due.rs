//! When something next happens by itself. With it, one long step is as good as many short ones.

use jiff::Timestamp;

use super::cloud::Cloud;
use super::node::Machine;

/// The first such moment after now and no later than `until`.
pub(super) fn next(cloud: &Cloud, until: Timestamp) -> Option<Timestamp> {
    let machines = cloud.groups.values().flat_map(|group| group.instances.values());
    let machines = machines.flat_map(|instance| {
        [Some(instance.running_at), instance.registers_at, instance.gone_at].into_iter().flatten()
    });
    let nodes = cloud.nodes.values().flat_map(|node| {
        let goes_at = match node.machine {
            Machine::Gone { until } => until,
            Machine::Present => None,
        };
        [node.ready_at, goes_at].into_iter().flatten()
    });
    let faults = cloud.ledger.edges(cloud.now);
    let all = machines.chain(nodes).chain(faults);
    all.filter(|at| cloud.now < *at && *at <= until).min()
}
