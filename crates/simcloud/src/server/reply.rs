//! Answers as messages of either generation.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use autoscaler::provider::ListedGroup;
use cloud_api::externalgrpc as wire;
use cloud_api::externalgrpc::instance_status::InstanceState as WireState;
use cloud_api::externalgrpc::{LegacyDuration, NodeGroupAutoscalingOptions};
use cloud_api::{error_class, kubernetes, well_known};
use prost::Message;
use registry::{ErrorClass, ErrorInfo, GroupId, Instance, InstanceState};

use crate::core::Template;
use crate::scenario::{Generation, GroupOptions, Taint};

pub(super) fn group(group: ListedGroup) -> wire::NodeGroup {
    let size = |size: i64| i32::try_from(size).unwrap_or(i32::MAX);
    let (min_size, max_size) = (size(group.min), size(group.max));
    wire::NodeGroup { id: group.id.0, min_size, max_size, debug: group.debug }
}

pub(super) fn membership(group: Option<GroupId>) -> wire::NodeGroup {
    let id = group.map_or_else(String::new, |group| group.0);
    wire::NodeGroup { id, ..wire::NodeGroup::default() }
}

pub(super) fn gpu_types(types: BTreeSet<String>) -> wire::GetAvailableGpuTypesResponse {
    let types = types.into_iter().map(|name| (name, well_known::Any::default()));
    wire::GetAvailableGpuTypesResponse { gpu_types: types.collect() }
}

pub(super) fn instance(instance: Instance) -> wire::Instance {
    let state = match instance.state {
        Some(InstanceState::Running) => WireState::Running,
        Some(InstanceState::Creating) => WireState::Creating,
        Some(InstanceState::Deleting) => WireState::Deleting,
        None => WireState::Unspecified,
    };
    let error_info = instance.error.map(error_info);
    let status = wire::InstanceStatus { instance_state: state.into(), error_info };
    wire::Instance { id: instance.id.0, status: Some(status) }
}

fn error_info(error: ErrorInfo) -> wire::InstanceErrorInfo {
    let instance_error_class = match error.class {
        ErrorClass::OutOfResources => error_class::OUT_OF_RESOURCES,
        ErrorClass::Other => error_class::OTHER,
    };
    let ErrorInfo { code, message, .. } = error;
    wire::InstanceErrorInfo { error_code: code, error_message: message, instance_error_class }
}

pub(super) fn template(
    template: Option<Template>,
    generation: Generation,
) -> wire::NodeGroupTemplateNodeInfoResponse {
    let mut answer = wire::NodeGroupTemplateNodeInfoResponse::default();
    let Some(template) = template else { return answer };
    let node = node(template).encode_to_vec();
    if generation != Generation::Current {
        answer.legacy_node = node.clone().into();
    }
    if generation != Generation::Legacy {
        answer.node = node.into();
    }
    answer
}

fn node(template: Template) -> kubernetes::Node {
    let labels = template.labels();
    let quantities = |quantities: &BTreeMap<String, String>| {
        let quantity = |(name, text): (&String, &String)| {
            (name.clone(), kubernetes::Quantity { text: text.clone() })
        };
        quantities.iter().map(quantity).collect()
    };
    let taint = |Taint { key, value, effect }| kubernetes::Taint { key, value, effect };
    let capacity = &template.group.capacity;
    let status = kubernetes::NodeStatus {
        capacity: quantities(capacity),
        allocatable: quantities(capacity),
    };
    let taints = template.group.taints.into_iter().map(taint).collect();
    kubernetes::Node {
        metadata: Some(kubernetes::ObjectMeta { labels, ..kubernetes::ObjectMeta::default() }),
        spec: Some(kubernetes::NodeSpec { taints, ..kubernetes::NodeSpec::default() }),
        status: Some(status),
    }
}

/// What was sent, but for what the group sets. Fields of a generation that the cloud does not speak
/// are sent back as they came if it is the older one, as by old providers that keep what they do not
/// know; and left out if it is the newer one.
pub(super) fn options(
    sent: NodeGroupAutoscalingOptions,
    own: &GroupOptions,
    generation: Generation,
) -> NodeGroupAutoscalingOptions {
    let answer = with_others(sent, own);
    match generation {
        Generation::Legacy => with_legacy(answer, own),
        Generation::Both => with_current(with_legacy(answer, own), own),
        Generation::Current => NodeGroupAutoscalingOptions {
            legacy_scale_down_unneeded: None,
            legacy_scale_down_unready: None,
            legacy_max_node_provision: None,
            ..with_current(answer, own)
        },
    }
}

fn with_others(
    sent: NodeGroupAutoscalingOptions,
    own: &GroupOptions,
) -> NodeGroupAutoscalingOptions {
    NodeGroupAutoscalingOptions {
        scale_down_utilization_threshold: own
            .utilization_threshold
            .unwrap_or(sent.scale_down_utilization_threshold),
        scale_down_gpu_utilization_threshold: own
            .gpu_utilization_threshold
            .unwrap_or(sent.scale_down_gpu_utilization_threshold),
        zero_or_max_node_scaling: own.zero_or_max.unwrap_or(sent.zero_or_max_node_scaling),
        ignore_daemon_sets_utilization: own
            .ignore_daemon_sets
            .unwrap_or(sent.ignore_daemon_sets_utilization),
        ..sent
    }
}

fn with_legacy(
    sent: NodeGroupAutoscalingOptions,
    own: &GroupOptions,
) -> NodeGroupAutoscalingOptions {
    let span = |own: Option<Duration>| {
        let nanos = |own: Duration| i64::try_from(own.as_nanos()).unwrap_or(i64::MAX);
        own.map(|own| LegacyDuration { nanos: nanos(own) })
    };
    NodeGroupAutoscalingOptions {
        legacy_scale_down_unneeded: span(own.unneeded).or(sent.legacy_scale_down_unneeded),
        legacy_scale_down_unready: span(own.unready).or(sent.legacy_scale_down_unready),
        legacy_max_node_provision: span(own.provision).or(sent.legacy_max_node_provision),
        ..sent
    }
}

fn with_current(
    sent: NodeGroupAutoscalingOptions,
    own: &GroupOptions,
) -> NodeGroupAutoscalingOptions {
    let span = |own: Option<Duration>| {
        own.map(|own| well_known::Duration {
            seconds: i64::try_from(own.as_secs()).unwrap_or(i64::MAX),
            nanos: i32::try_from(own.subsec_nanos()).expect("less than a second"),
        })
    };
    NodeGroupAutoscalingOptions {
        scale_down_unneeded: span(own.unneeded).or(sent.scale_down_unneeded),
        scale_down_unready: span(own.unready).or(sent.scale_down_unready),
        max_node_provision: span(own.provision).or(sent.max_node_provision),
        max_node_startup: span(own.startup).or(sent.max_node_startup),
        ..sent
    }
}
