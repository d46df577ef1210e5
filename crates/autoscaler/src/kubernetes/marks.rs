//! What a Node bears on our behalf, as a patch: taints are one value to the API server, so they are
//! written as they were read but for ours, and only over that reading.

use k8s_openapi::api::core::v1::{Node, Taint};
use serde_json::{Value, json};

use crate::cluster::Mark;
use crate::core::names::{CORDONED, DELETION_CANDIDATE, TO_BE_DELETED};

/// Nothing if the Node is as it should be.
pub(super) fn patch(node: &Node, mark: &Mark) -> Option<Value> {
    let spec = node.spec.clone().unwrap_or_default();
    let before = spec.taints.unwrap_or_default();
    let taints = tainted(&before, mark);
    let is_ours = node.metadata.annotations.as_ref().is_some_and(|it| it.contains_key(CORDONED));
    let is_cordoned = spec.unschedulable == Some(true);
    let cordon = match mark {
        Mark::ToBeDeleted { cordons: true, .. } if !is_cordoned => Some(true),
        Mark::Stays if is_ours => Some(false),
        _ => None,
    };
    if taints == before && cordon.is_none() {
        return None;
    }
    let mut patch = json!({
        "metadata": {"resourceVersion": node.metadata.resource_version},
        "spec": {"taints": taints},
    });
    if let Some(is_cordoned) = cordon {
        patch["spec"]["unschedulable"] = json!(is_cordoned);
        patch["metadata"]["annotations"] =
            json!({CORDONED: if is_cordoned { json!("true") } else { Value::Null }});
    }
    Some(patch)
}

fn tainted(before: &[Taint], mark: &Mark) -> Vec<Taint> {
    let without = |key: &str| before.iter().filter(|it| it.key != key).cloned().collect::<Vec<_>>();
    let has = |key: &str| before.iter().any(|it| it.key == key);
    let with = |key: &str, effect: &str, since: i64| {
        let mut taints = before.to_vec();
        // Its value says since when; the first is kept.
        if !has(key) {
            taints.push(Taint {
                key: key.to_owned(),
                value: Some(since.to_string()),
                effect: effect.to_owned(),
                ..Taint::default()
            });
        }
        taints
    };
    match mark {
        Mark::ToBeDeleted { since, .. } => with(TO_BE_DELETED, "NoSchedule", *since),
        Mark::Stays => without(TO_BE_DELETED),
        Mark::Candidate { since } => with(DELETION_CANDIDATE, "PreferNoSchedule", *since),
        Mark::Needed => without(DELETION_CANDIDATE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(yaml: &str) -> Node {
        serde_saphyr::from_str(yaml).unwrap()
    }

    const TAINTED: &str = "{metadata: {name: a, resourceVersion: '7'}, \
                           spec: {taints: [{key: other, effect: NoExecute}]}}";

    #[test]
    fn others_taints_stay_and_ours_bears_its_time() {
        let mark = Mark::ToBeDeleted { since: 100, cordons: true };
        let patch = patch(&node(TAINTED), &mark).unwrap();
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        assert_eq!(patch["spec"]["taints"][0]["key"], "other");
        assert_eq!(patch["spec"]["taints"][1]["key"], TO_BE_DELETED);
        assert_eq!(patch["spec"]["taints"][1]["value"], "100");
        assert_eq!(patch["spec"]["taints"][1]["effect"], "NoSchedule");
        assert_eq!(patch["spec"]["unschedulable"], true);
        assert_eq!(patch["metadata"]["annotations"][CORDONED], "true");
    }

    #[test]
    fn a_cordon_of_others_is_left_to_them() {
        let cordoned = node(
            "{metadata: {name: a}, spec: {unschedulable: true, \
              taints: [{key: ToBeDeletedByClusterAutoscaler, effect: NoSchedule}]}}",
        );
        let patch = patch(&cordoned, &Mark::Stays).unwrap();
        assert_eq!(patch["spec"]["taints"], json!([]));
        assert!(patch["spec"].get("unschedulable").is_none());
    }

    #[test]
    fn our_cordon_goes_with_our_taint() {
        let cordoned = node(
            "{metadata: {name: a, annotations: {autoscaler.windlass.dev/cordoned: 'true'}}, \
              spec: {unschedulable: true}}",
        );
        let patch = patch(&cordoned, &Mark::Stays).unwrap();
        assert_eq!(patch["spec"]["unschedulable"], false);
        assert_eq!(patch["metadata"]["annotations"][CORDONED], Value::Null);
    }

    #[test]
    fn what_is_as_it_should_be_is_not_written() {
        assert_eq!(patch(&node(TAINTED), &Mark::Needed), None);
        assert_eq!(patch(&node(TAINTED), &Mark::Stays), None);
        let candidate = node(
            "{metadata: {name: a}, spec: {taints: \
              [{key: DeletionCandidateOfClusterAutoscaler, value: '5', effect: PreferNoSchedule}]}}",
        );
        assert_eq!(patch(&candidate, &Mark::Candidate { since: 9 }), None);
    }
}
