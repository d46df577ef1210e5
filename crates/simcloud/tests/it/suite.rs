//! What every provider owes its caller: one story, told by each of them. The wire must not change a
//! word of it, whichever generation it is of.

use std::fmt::Debug;
use std::num::NonZeroU32;

use autoscaler::provider::{Error, GroupOptions, NodeRef, Provider};
use jiff::SignedDuration;
use registry::{GroupId, InstanceId, Times};

use crate::scene::{Scene, cloud};

const SCENARIO: &str = "
gpu_label: cloud.example/gpu
gpu_types: [big, small]
groups:
- id: a
  min: 1
  max: 5
  target: 2
  zones: [x, y]
  labels: {team: blue}
  taints: [{key: k, value: v, effect: NoSchedule}]
  options: {unneeded: 1m, unready: 2m, provision: 3m, utilization_threshold: 0.7, zero_or_max: true}
- {id: b, max: 3}
faults:
- {fault: quota, group: b, message: none left}
- {fault: delete-unimplemented, group: b}
- {fault: call-fails, method: NodeGroupTemplateNodeInfo, group: b, code: resource-exhausted}
";

/// A word per call, or what it failed with.
fn word<T: Debug>(result: &Result<T, Error>) -> String {
    match result {
        Ok(answer) => format!("{answer:?}"),
        Err(Error::Unsupported { method }) => format!("{method} unsupported"),
        Err(Error::Rejected { method, code, message }) => format!("{method} {code}: {message}"),
        Err(Error::Unknown { method, .. }) => format!("{method} unknown"),
        Err(Error::Unreadable { method, .. }) => format!("{method} unreadable"),
    }
}

async fn story(provider: &impl Provider) -> Vec<String> {
    let (a, b): (GroupId, GroupId) = ("a".into(), "b".into());
    let two = NonZeroU32::MIN.saturating_add(1);
    let defaults = GroupOptions::with_times(&Times::default());
    let first = InstanceId("simcloud://a/a-0".to_owned());
    let stranger = InstanceId("elsewhere://a/a-0".to_owned());
    vec![
        word(&provider.refresh().await),
        word(&provider.groups().await),
        word(&provider.group_of(&NodeRef::unregistered(&first)).await),
        word(&provider.group_of(&NodeRef::unregistered(&stranger)).await),
        word(&provider.target(&a).await),
        word(&provider.target(&"c".into()).await),
        word(&provider.instances(&a).await),
        word(&provider.template(&a).await),
        word(&provider.template(&b).await),
        word(&provider.options(&a, &defaults).await),
        word(&provider.options(&b, &defaults).await),
        word(&provider.gpu_label().await),
        word(&provider.gpu_types().await),
        word(&provider.increase(&b, two).await),
        word(&provider.increase(&b, two).await),
        word(&provider.instances(&b).await),
        word(&provider.decrease(&b, NonZeroU32::MIN).await),
        word(&provider.delete(&a, &[NodeRef::unregistered(&first)]).await),
        word(&provider.delete(&a, &[NodeRef::create_failed(&stranger)]).await),
        word(&provider.delete(&b, &[NodeRef::unregistered(&first)]).await),
        word(&provider.target(&a).await),
        word(&provider.instances(&a).await),
        word(&provider.cleanup().await),
    ]
}

#[tokio::test]
async fn the_wire_changes_nothing() {
    let (handle, _) = cloud(SCENARIO);
    let expected = story(&handle).await;
    assert_eq!(expected.len(), 23);
    for generation in ["legacy", "current", "both"] {
        let scene = Scene::new(&format!("generation: {generation}\n{SCENARIO}")).await;
        assert_eq!(story(&scene.client()).await, expected, "{generation}");
        scene.stop().await;
    }
}

#[tokio::test]
async fn the_story_is_what_the_scenario_says() {
    let (handle, _) = cloud(SCENARIO);
    let told = story(&handle).await.join("\n");
    for expected in [
        "min: 1, max: 5",
        "Some(GroupId(\"a\"))\nNone\n2\n",
        "NodeGroupTargetSize NotFound: there is no group `c`",
        "\"team\": \"blue\"",
        "NodeGroupTemplateNodeInfo ResourceExhausted: scripted to fail",
        "\"cloud.example/gpu\"\n{\"big\", \"small\"}",
        "code: \"QUOTA_EXCEEDED\", message: \"none left\"",
        "NodeGroupIncreaseSize FailedPrecondition: 4 is more than the group's maximum, 3",
        "NodeGroupDecreaseTargetSize FailedPrecondition: 2 machines exist",
        "NodeGroupDeleteNodes NotFound: `elsewhere://a/a-0` is not in the group `a`",
        "NodeGroupDeleteNodes unsupported\n1\n",
        "state: Some(Deleting)",
    ] {
        assert!(told.contains(expected), "{expected} is not in:\n{told}");
    }
    assert!(
        told.contains(&format!("unneeded: Some({:?})", SignedDuration::from_mins(1))),
        "{told}"
    );
}
