//! What a new node of a group would be, by the provider's word.

use std::collections::BTreeMap;

use cloud_api::kubernetes as wire;

/// As much of a Node as decides whether a pod fits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub taints: Vec<TemplateTaint>,
    pub is_unschedulable: bool,
    /// Quantities in Kubernetes' notation, by resource.
    pub capacity: BTreeMap<String, String>,
    pub allocatable: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateTaint {
    pub key: String,
    pub value: String,
    pub effect: String,
}

// === impl Template ===

impl From<wire::Node> for Template {
    fn from(node: wire::Node) -> Self {
        let metadata = node.metadata.unwrap_or_default();
        let spec = node.spec.unwrap_or_default();
        let status = node.status.unwrap_or_default();
        Self {
            labels: metadata.labels,
            annotations: metadata.annotations,
            taints: spec.taints.into_iter().map(TemplateTaint::from).collect(),
            is_unschedulable: spec.unschedulable,
            capacity: texts(status.capacity),
            allocatable: texts(status.allocatable),
        }
    }
}

// === impl TemplateTaint ===

impl From<wire::Taint> for TemplateTaint {
    fn from(taint: wire::Taint) -> Self {
        let wire::Taint { key, value, effect } = taint;
        Self { key, value, effect }
    }
}

fn texts(quantities: BTreeMap<String, wire::Quantity>) -> BTreeMap<String, String> {
    quantities.into_iter().map(|(name, quantity)| (name, quantity.text)).collect()
}
