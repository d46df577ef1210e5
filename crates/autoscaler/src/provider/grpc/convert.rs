//! From messages to what they mean, and back. Checks nothing that `registry` checks.

use std::num::NonZeroU32;

use cloud_api::error_class;
use cloud_api::externalgrpc as wire;
use cloud_api::externalgrpc::instance_status::InstanceState as WireState;
use cloud_api::kubernetes;
use prost::Message;
use registry::{ErrorClass, ErrorInfo, GroupId, Instance, InstanceId, InstanceState};

use crate::provider::{Error, ListedGroup, Method, NodeRef, Template};

pub(super) fn group(group: wire::NodeGroup) -> ListedGroup {
    ListedGroup {
        id: GroupId(group.id),
        min: group.min_size.into(),
        max: group.max_size.into(),
        debug: group.debug,
    }
}

pub(super) fn node(node: &NodeRef) -> wire::ExternalGrpcNode {
    wire::ExternalGrpcNode {
        provider_id: node.provider_id.clone(),
        name: node.name.0.clone(),
        labels: node.labels.clone(),
        annotations: node.annotations.clone(),
    }
}

pub(super) fn instance(instance: wire::Instance) -> Instance {
    let status = instance.status.unwrap_or_default();
    let state = match status.instance_state() {
        WireState::Running => Some(InstanceState::Running),
        WireState::Creating => Some(InstanceState::Creating),
        WireState::Deleting => Some(InstanceState::Deleting),
        WireState::Unspecified => None,
    };
    let error = status.error_info.filter(|error| !error.error_code.is_empty()).map(error_info);
    Instance { id: InstanceId(instance.id), state, error }
}

fn error_info(error: wire::InstanceErrorInfo) -> ErrorInfo {
    let class = match error.instance_error_class {
        error_class::OUT_OF_RESOURCES => ErrorClass::OutOfResources,
        _ => ErrorClass::Other,
    };
    ErrorInfo { class, code: error.error_code, message: error.error_message }
}

/// Of either generation; the newer if there are both.
pub(super) fn template(
    answer: wire::NodeGroupTemplateNodeInfoResponse,
) -> Result<Option<Template>, Error> {
    let bytes = if answer.node.is_empty() { answer.legacy_node } else { answer.node };
    if bytes.is_empty() {
        return Ok(None);
    }
    let node = kubernetes::Node::decode(bytes).map_err(|source| Error::Unreadable {
        method: Method::NodeGroupTemplateNodeInfo,
        source: Box::new(source),
    })?;
    Ok(Some(node.into()))
}

/// As the protocol counts. No group is so large that its size had no place there.
pub(super) fn delta(method: Method, by: NonZeroU32) -> Result<i32, Error> {
    let words = "more than the protocol can ask for";
    i32::try_from(by.get()).map_err(|_too_large| Error::rejected(method, "local", words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(state: i32, error_code: &str) -> (Option<InstanceState>, bool) {
        let error_info = wire::InstanceErrorInfo {
            error_code: error_code.to_owned(),
            ..wire::InstanceErrorInfo::default()
        };
        let status = wire::InstanceStatus { instance_state: state, error_info: Some(error_info) };
        let read = instance(wire::Instance { id: "i".to_owned(), status: Some(status) });
        (read.state, read.error.is_some())
    }

    #[test]
    fn an_instance_has_a_state_if_it_is_known_and_an_error_if_it_has_a_code() {
        assert_eq!(check(1, ""), (Some(InstanceState::Running), false));
        assert_eq!(check(2, "QUOTA"), (Some(InstanceState::Creating), true));
        assert_eq!(check(3, ""), (Some(InstanceState::Deleting), false));
        assert_eq!(check(0, ""), (None, false));
        assert_eq!(check(17, ""), (None, false));
        let bare = instance(wire::Instance { id: "i".to_owned(), status: None });
        assert_eq!((bare.state, bare.error), (None, None));
    }

    #[test]
    fn a_template_of_either_generation_is_read() {
        let labelled = |value: &str| {
            let labels = [("generation".to_owned(), value.to_owned())].into();
            let metadata = kubernetes::ObjectMeta { labels, ..Default::default() };
            kubernetes::Node { metadata: Some(metadata), ..Default::default() }.encode_to_vec()
        };
        let check = |legacy: Vec<u8>, current: Vec<u8>| {
            let answer = wire::NodeGroupTemplateNodeInfoResponse {
                legacy_node: legacy.into(),
                node: current.into(),
                resource_slices: Vec::new(),
            };
            template(answer).unwrap().map(|template| template.labels["generation"].clone())
        };
        assert_eq!(check(labelled("old"), Vec::new()).as_deref(), Some("old"));
        assert_eq!(check(Vec::new(), labelled("new")).as_deref(), Some("new"));
        assert_eq!(check(labelled("old"), labelled("new")).as_deref(), Some("new"));
        assert_eq!(check(Vec::new(), Vec::new()), None);
    }

    #[test]
    fn bytes_that_are_no_node_are_no_template() {
        let answer = wire::NodeGroupTemplateNodeInfoResponse {
            node: vec![0xff].into(),
            ..wire::NodeGroupTemplateNodeInfoResponse::default()
        };
        assert!(matches!(template(answer), Err(Error::Unreadable { .. })));
    }

    #[test]
    fn sizes_have_a_limit() {
        let method = Method::NodeGroupIncreaseSize;
        assert_eq!(delta(method, NonZeroU32::MIN).unwrap(), 1);
        assert!(delta(method, NonZeroU32::MAX).is_err());
    }
}
