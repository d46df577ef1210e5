//! From Kubernetes' Nodes to what the registry goes by. Reads; judges nothing.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1 as core;
use registry::{Condition, ConditionStatus, Membership, Node, NodeName, Taint};

use crate::provider::NodeRef;

/// What GPUs are called among a node's resources.
const GPU_RESOURCES: [&str; 3] = ["nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915"];

/// What names a node to the provider; nothing if it has no name.
pub(crate) fn node_ref(node: &core::Node) -> Option<NodeRef> {
    let metadata = &node.metadata;
    Some(NodeRef {
        name: NodeName(metadata.name.clone()?),
        provider_id: provider_id(node).to_owned(),
        labels: metadata.labels.clone().unwrap_or_default(),
        annotations: metadata.annotations.clone().unwrap_or_default(),
    })
}

/// A Node as the registry has it. `gpu_label` promises a GPU.
pub(crate) fn node(node: &core::Node, membership: Membership, gpu_label: &str) -> Option<Node> {
    let metadata = &node.metadata;
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    Some(Node {
        created: metadata.creation_timestamp.as_ref().map_or(Timestamp::UNIX_EPOCH, |at| at.0),
        name: NodeName(metadata.name.clone()?),
        provider_id: provider_id(node).to_owned(),
        conditions: conditions.into_iter().flatten().map(condition).collect(),
        taints: taints.into_iter().flatten().map(taint).collect(),
        labels: metadata.labels.clone().unwrap_or_default(),
        annotations: metadata.annotations.clone().unwrap_or_default(),
        missing_resources: missing_gpu(node, gpu_label),
        membership,
    })
}

fn provider_id(node: &core::Node) -> &str {
    node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()).unwrap_or_default()
}

fn condition(condition: &core::NodeCondition) -> (String, Condition) {
    let status = match condition.status.as_str() {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    };
    let last_transition = condition.last_transition_time.as_ref().map(|at| at.0);
    (condition.type_.clone(), Condition { status, last_transition })
}

fn taint(taint: &core::Taint) -> Taint {
    Taint { key: taint.key.clone(), value: taint.value.clone().unwrap_or_default() }
}

/// The label of GPU nodes on a node that offers none.
fn missing_gpu(node: &core::Node, gpu_label: &str) -> BTreeSet<String> {
    let labels = node.metadata.labels.as_ref();
    let is_promised = !gpu_label.is_empty() && labels.is_some_and(|it| it.contains_key(gpu_label));
    let allocatable = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    let offers = |name: &&str| {
        let quantity = allocatable.and_then(|it| it.get(*name));
        quantity.is_some_and(|quantity| !quantity.0.trim_start_matches('0').is_empty())
    };
    let is_missing = is_promised && !GPU_RESOURCES.iter().any(offers);
    is_missing.then(|| GPU_RESOURCES[0].to_owned()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(yaml: &str) -> core::Node {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn a_node_is_read_as_it_is() {
        let stored = parsed(
            "{metadata: {name: a, creationTimestamp: '2026-03-01T08:00:00Z', labels: {k: v}},
              spec: {providerID: 'sim:///a', taints: [{key: t, value: x, effect: NoSchedule}]},
              status: {conditions: [{type: Ready, status: 'False', lastTransitionTime: '2026-03-01T08:01:00Z'}]}}",
        );
        let read = node(&stored, Membership::Unmanaged, "").unwrap();
        assert_eq!(read.provider_id, "sim:///a");
        assert_eq!(read.taints.first().unwrap().value, "x");
        let ready = &read.conditions["Ready"];
        assert_eq!(ready.status, ConditionStatus::False);
        assert_eq!(ready.last_transition.unwrap().to_string(), "2026-03-01T08:01:00Z");
        assert_eq!(read.created.to_string(), "2026-03-01T08:00:00Z");
    }

    #[test]
    fn a_promised_gpu_that_is_absent_is_named() {
        let missing = |allocatable: &str| {
            let yaml = format!(
                "{{metadata: {{name: a, labels: {{gpu: t4}}}}, status: {{allocatable: {allocatable}}}}}"
            );
            node(&parsed(&yaml), Membership::Unmanaged, "gpu").unwrap().missing_resources.len()
        };
        assert_eq!(missing("{cpu: 1}"), 1);
        assert_eq!(missing("{nvidia.com/gpu: 0}"), 1);
        assert_eq!(missing("{nvidia.com/gpu: 1}"), 0);
    }
}
