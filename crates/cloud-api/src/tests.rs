//! Bytes as the two generations have them, worked out by hand from the field numbers.

use std::collections::BTreeMap;
use std::fmt::Debug;

use bytes::Bytes;
use prost::Message;

use crate::externalgrpc::{
    ExternalGrpcNode, Instance, InstanceErrorInfo, InstanceStatus, LegacyDuration,
    NodeGroupAutoscalingOptions, NodeGroupTemplateNodeInfoResponse, PricingNodePriceRequest,
    PricingPodPriceRequest, instance_status::InstanceState,
};
use crate::kubernetes::{Node, NodeSpec, NodeStatus, ObjectMeta, Quantity, Taint};
use crate::{error_class, well_known};

/// The message as bytes, and the bytes as the message.
fn check<M: Message + Default + PartialEq + Debug>(message: &M, bytes: &[u8]) {
    assert_eq!(message.encode_to_vec(), bytes);
    assert_eq!(&M::decode(bytes).unwrap(), message);
}

fn tiny_node() -> Node {
    let metadata = ObjectMeta { name: "n".into(), ..ObjectMeta::default() };
    Node { metadata: Some(metadata), ..Node::default() }
}

/// `tiny_node` by hand: field 1 of length 3, in it field 1 of length 1.
const TINY_NODE: &[u8] = &[0x0a, 3, 0x0a, 1, b'n'];

#[test]
fn a_legacy_template_is_a_node_in_field_1() {
    assert_eq!(tiny_node().encode_to_vec(), TINY_NODE);
    let legacy = NodeGroupTemplateNodeInfoResponse {
        legacy_node: Bytes::from_static(TINY_NODE),
        ..NodeGroupTemplateNodeInfoResponse::default()
    };
    check(&legacy, &[0x0a, 5, 0x0a, 3, 0x0a, 1, b'n']);
}

#[test]
fn a_template_is_bytes_in_field_2_and_slices_in_field_3() {
    let current = NodeGroupTemplateNodeInfoResponse {
        node: Bytes::from_static(TINY_NODE),
        resource_slices: vec![Bytes::from_static(&[7])],
        ..NodeGroupTemplateNodeInfoResponse::default()
    };
    check(&current, &[0x12, 5, 0x0a, 3, 0x0a, 1, b'n', 0x1a, 1, 7]);
}

#[test]
fn legacy_durations_are_nanoseconds_in_fields_3_to_5() {
    let nanos = |nanos| Some(LegacyDuration { nanos });
    let legacy = NodeGroupAutoscalingOptions {
        legacy_scale_down_unneeded: nanos(1),
        legacy_scale_down_unready: nanos(2),
        legacy_max_node_provision: nanos(300),
        zero_or_max_node_scaling: true,
        ignore_daemon_sets_utilization: true,
        ..NodeGroupAutoscalingOptions::default()
    };
    let durations = [0x1a, 2, 0x08, 1, 0x22, 2, 0x08, 2, 0x2a, 3, 0x08, 0xac, 0x02];
    check(&legacy, &[&durations[..], &[0x30, 1, 0x38, 1]].concat());
}

#[test]
fn durations_are_seconds_and_nanoseconds_in_fields_8_to_11() {
    let span = |seconds, nanos| Some(well_known::Duration { seconds, nanos });
    let current = NodeGroupAutoscalingOptions {
        scale_down_unneeded: span(1, 0),
        scale_down_unready: span(2, 3),
        max_node_provision: span(4, 0),
        max_node_startup: span(5, 0),
        allow_non_atomic_scale_up_to_max: true,
        ..NodeGroupAutoscalingOptions::default()
    };
    let first = [0x42, 2, 0x08, 1, 0x4a, 4, 0x08, 2, 0x10, 3];
    check(&current, &[&first[..], &[0x52, 2, 0x08, 4, 0x5a, 2, 0x08, 5, 0x60, 1]].concat());
}

#[test]
fn thresholds_have_the_same_fields_in_both() {
    let options = NodeGroupAutoscalingOptions {
        scale_down_utilization_threshold: 0.5,
        scale_down_gpu_utilization_threshold: 2.0,
        ..NodeGroupAutoscalingOptions::default()
    };
    let half = 0.5_f64.to_le_bytes();
    let two = 2.0_f64.to_le_bytes();
    check(&options, &[&[0x09][..], &half, &[0x11], &two].concat());
}

#[test]
fn prices_are_asked_for_in_either_generation() {
    let second = |seconds| Some(well_known::Timestamp { seconds, nanos: 0 });
    let node = PricingNodePriceRequest {
        node: None,
        legacy_start: second(1),
        legacy_end: second(2),
        start: second(3),
        end: second(4),
    };
    let legacy = [0x12, 2, 0x08, 1, 0x1a, 2, 0x08, 2];
    check(&node, &[&legacy[..], &[0x22, 2, 0x08, 3, 0x2a, 2, 0x08, 4]].concat());
    let pod = PricingPodPriceRequest {
        legacy_pod: Bytes::from_static(b"p"),
        legacy_start: second(1),
        legacy_end: second(2),
        pod: Bytes::from_static(b"p"),
        start: second(3),
        end: second(4),
    };
    let legacy = [0x0a, 1, b'p', 0x12, 2, 0x08, 1, 0x1a, 2, 0x08, 2];
    check(&pod, &[&legacy[..], &[0x22, 1, b'p', 0x2a, 2, 0x08, 3, 0x32, 2, 0x08, 4]].concat());
}

#[test]
fn an_instance_tells_its_state_and_its_error() {
    let instance = Instance {
        id: "i".into(),
        status: Some(InstanceStatus {
            instance_state: InstanceState::Creating.into(),
            error_info: Some(InstanceErrorInfo {
                error_code: "Q".into(),
                error_message: "m".into(),
                instance_error_class: error_class::OTHER,
            }),
        }),
    };
    let error = [0x12, 8, 0x0a, 1, b'Q', 0x12, 1, b'm', 0x18, 99];
    check(&instance, &[&[0x0a, 1, b'i', 0x12, 12, 0x08, 2][..], &error].concat());
}

#[test]
fn a_node_is_named_by_provider_and_cluster() {
    let node = ExternalGrpcNode {
        provider_id: "p".into(),
        name: "n".into(),
        labels: BTreeMap::from([("a".into(), "b".into())]),
        annotations: BTreeMap::from([("c".into(), "d".into())]),
    };
    let maps = [0x1a, 6, 0x0a, 1, b'a', 0x12, 1, b'b', 0x22, 6, 0x0a, 1, b'c', 0x12, 1, b'd'];
    check(&node, &[&[0x0a, 1, b'p', 0x12, 1, b'n'][..], &maps].concat());
}

#[test]
fn a_template_says_what_decides_whether_a_pod_fits() {
    let four = || BTreeMap::from([("cpu".into(), Quantity { text: "4".into() })]);
    let taint = Taint { key: "k".into(), value: "v".into(), effect: "NoSchedule".into() };
    let spec = NodeSpec { unschedulable: true, taints: vec![taint], ..NodeSpec::default() };
    let labels = BTreeMap::from([("a".into(), "b".into())]);
    let node = Node {
        metadata: Some(ObjectMeta { labels, ..ObjectMeta::default() }),
        spec: Some(spec),
        status: Some(NodeStatus { capacity: four(), allocatable: four() }),
    };
    let metadata = [0x0a, 8, 0x5a, 6, 0x0a, 1, b'a', 0x12, 1, b'b'];
    let spec = [&[0x12, 22, 0x20, 1, 0x2a, 18, 0x0a, 1, b'k', 0x12, 1, b'v', 0x1a, 10][..]];
    let cpu = [0x0a, 3, b'c', b'p', b'u', 0x12, 3, 0x0a, 1, b'4'];
    let status = [&[0x1a, 24, 0x0a, 10][..], &cpu, &[0x12, 10], &cpu].concat();
    check(&node, &[&metadata[..], spec[0], b"NoSchedule", &status].concat());
}

#[test]
fn what_a_node_says_beyond_that_is_skipped() {
    // Field 7 of a NodeStatus, which is not declared here.
    let bytes = [0x1a, 4, 0x3a, 2, 0x0a, 0];
    assert_eq!(Node::decode(&bytes[..]).unwrap().status, Some(NodeStatus::default()));
}
