//! Reading all groups: a fault of one touches that one alone.

use autoscaler::provider::{GroupOptions, NodeRef, Provider, Reader, Template};
use jiff::SignedDuration;
use registry::{GroupId, Membership, Times};

use crate::scene::{Scene, cloud, started};

const GROUPS: &str = "groups:\n\
    - {id: a, max: 3, target: 1, options: {unneeded: 1h}}\n\
    - {id: b, max: 3, target: 2}\n";

async fn scene(fault: &str) -> Scene {
    Scene::new(&format!("{GROUPS}faults: [{{{fault}}}]")).await
}

fn defaults() -> GroupOptions {
    GroupOptions::with_times(&Times::default())
}

fn node(name: &str, provider_id: &str) -> NodeRef {
    NodeRef {
        name: name.into(),
        provider_id: provider_id.to_owned(),
        labels: [].into(),
        annotations: [].into(),
    }
}

#[tokio::test]
async fn all_groups_are_read() {
    let scene = scene("fault: never-ready").await;
    let mut reader = Reader::new(scene.client());
    let groups = reader.groups(&defaults()).await.unwrap();
    let read: Vec<_> = groups
        .iter()
        .map(|group| {
            let instances = group.instances.as_ref().unwrap().len();
            (group.id.as_str(), group.target.clone().unwrap(), instances)
        })
        .collect();
    assert_eq!(read, [("a", 1, 1), ("b", 2, 2)]);
    assert_eq!(groups[0].options.unneeded, Some(SignedDuration::from_hours(1)));
    assert_eq!(groups[1].options.unneeded, defaults().times.unneeded);
    scene.stop().await;
}

#[tokio::test]
async fn a_fault_of_one_group_is_its_own() {
    let scene = scene("fault: call-fails, method: NodeGroupNodes, group: a").await;
    let groups = Reader::new(scene.client()).groups(&defaults()).await.unwrap();
    let fault = groups[0].instances.clone().unwrap_err();
    assert!(fault.0.contains("NodeGroupNodes") && fault.0.contains("scripted"), "{fault:?}");
    assert_eq!(groups[0].target, Ok(1));
    assert!(groups[1].instances.is_ok());
    scene.stop().await;
}

#[tokio::test]
async fn a_failed_listing_is_not_an_empty_one() {
    let scene = scene("fault: call-fails, method: NodeGroups").await;
    assert!(Reader::new(scene.client()).groups(&defaults()).await.is_err());
    scene.stop().await;
}

#[tokio::test]
async fn options_that_cannot_be_read_are_the_last_good_ones_or_the_group_is_stale() {
    let scene = scene("fault: call-fails, method: NodeGroupGetOptions, from: 1s").await;
    let mut reader = Reader::new(scene.client());
    reader.groups(&defaults()).await.unwrap();
    scene.pass(1);
    let groups = reader.groups(&defaults()).await.unwrap();
    assert_eq!(groups[0].options.unneeded, Some(SignedDuration::from_hours(1)));
    assert_eq!(groups[0].target, Ok(1));
    let groups = Reader::new(scene.client()).groups(&defaults()).await.unwrap();
    assert!(groups[0].target.is_err(), "it might need more time than the defaults give it");
    scene.stop().await;
}

#[tokio::test]
async fn nodes_are_asked_about_once() {
    let scene = scene("fault: call-fails, method: NodeGroupForNode, from: 1s").await;
    let mut reader = Reader::new(scene.client());
    let nodes = [node("a-0", "simcloud://a/a-0"), node("z", "other://z")];
    let known = reader.memberships(&nodes, started()).await;
    assert_eq!(known["a-0"], Membership::Group("a".into()));
    assert_eq!(known["z"], Membership::Unmanaged);
    scene.pass(1);
    assert_eq!(reader.memberships(&nodes, started()).await, known);
    let later = started() + SignedDuration::from_mins(5);
    let known = reader.memberships(&nodes, later).await;
    assert_eq!(known["a-0"], Membership::Group("a".into()));
    assert_eq!(known["z"], Membership::Unknown);
    scene.stop().await;
}

/// Target, instances and options were asked for in turn, each three times: all other groups waited three
/// quarters of a minute for one of which nothing was to be known.
#[tokio::test]
async fn a_group_about_which_the_provider_is_silent_is_waited_for_once() {
    let silent = |method| format!("{{fault: timeout-after-effect, group: a, method: {method}}}");
    let (target, options) = (silent("NodeGroupTargetSize"), silent("NodeGroupGetOptions"));
    let once = "{fault: call-fails, group: a, method: NodeGroupNodes, count: 1}";
    let (handle, _) = cloud(&format!("{GROUPS}faults: [{target}, {options}, {once}]"));
    let groups = Reader::new(handle.clone()).groups(&defaults()).await.unwrap();
    assert!(groups[0].target.is_err() && groups[0].instances.is_err(), "{groups:?}");
    assert_eq!(groups[1].target, Ok(2));
    let a = GroupId::from("a");
    assert!(handle.instances(&a).await.is_err(), "they were not asked for, so this fails only now");
    assert!(handle.instances(&a).await.is_ok());
}

/// Every node was asked about, five seconds for each sixteen of them: minutes for a thousand.
#[tokio::test]
async fn a_provider_that_is_silent_about_nodes_is_not_asked_about_all_of_them() {
    let fault = "{fault: timeout-after-effect, method: NodeGroupForNode, count: 16}";
    let (handle, _) = cloud(&format!("{GROUPS}faults: [{fault}]"));
    let mut reader = Reader::new(handle);
    let nodes: Vec<_> = (10..30).map(|at| node(&format!("z-{at}"), &format!("z://{at}"))).collect();
    let known = reader.memberships(&nodes, started()).await;
    assert!(known.values().all(|it| *it == Membership::Unknown), "{known:?}");
    let known = reader.memberships(&nodes, started()).await;
    assert!(known.values().all(|it| *it == Membership::Unmanaged), "{known:?}");
}

#[tokio::test]
async fn the_last_good_template_is_kept() {
    let scene = scene("fault: no-template, from: 1s").await;
    let mut reader = Reader::new(scene.client());
    let first = template(&mut reader).await;
    assert!(first.is_some());
    scene.pass(1);
    assert_eq!(template(&mut reader).await, first);
    assert!(template(&mut Reader::new(scene.client())).await.is_none());
    scene.stop().await;
}

async fn template<P: Provider>(reader: &mut Reader<P>) -> Option<Template> {
    let group = GroupId::from("a");
    reader.read_templates(std::slice::from_ref(&group)).await;
    reader.known_template(&group).cloned()
}
