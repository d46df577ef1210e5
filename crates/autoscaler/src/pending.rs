//! Which pods wait for a node, by Kubernetes' own word.

use crate::core::KeptPod;

const SCHEDULED: &str = "PodScheduled";
const UNSCHEDULABLE: &str = "Unschedulable";

/// Whether the scheduler has tried the pod and found no node for it.
pub(crate) fn is_unschedulable(pod: &KeptPod) -> bool {
    let conditions = pod.kind.status.as_ref().and_then(|status| status.conditions.as_ref());
    let is_refused = conditions.into_iter().flatten().any(|condition| {
        condition.type_ == SCHEDULED
            && condition.status == "False"
            && condition.reason.as_deref() == Some(UNSCHEDULABLE)
    });
    pod.node.is_none() && is_refused && pod.kind.metadata.deletion_timestamp.is_none()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn a_pod_waits_once_the_scheduler_has_refused_it() {
        let waits =
            |yaml: &str| is_unschedulable(&serde_saphyr::from_str::<Pod>(yaml).unwrap().into());
        let refused =
            "status: {conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]}";
        assert!(waits(&format!("{{metadata: {{name: a}}, {refused}}}")));
        assert!(!waits("{metadata: {name: a}}"));
        assert!(!waits(&format!("{{spec: {{nodeName: n, containers: []}}, {refused}}}")));
        let gated = refused.replace("Unschedulable", "SchedulingGated");
        assert!(!waits(&format!("{{metadata: {{name: a}}, {gated}}}")));
    }
}
