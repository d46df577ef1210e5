//! What kubelets write, from what is seen.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use registry::{ConditionStatus, NodeName};

use super::story::started;
use crate::core::Cloud;
use crate::core::kubelet::{Command, PodName, Seen, SeenNode, SeenPod};
use crate::scenario::Scenario;

fn cloud(rest: &str, seconds: i64) -> Cloud {
    let scenario = format!("groups: [{{id: a, max: 3, target: 1}}]\n{rest}");
    let mut cloud = Cloud::new(Scenario::parse(&scenario).unwrap(), started());
    cloud.step(at(seconds));
    cloud
}

fn at(seconds: i64) -> Timestamp {
    started() + SignedDuration::from_secs(seconds)
}

fn node() -> NodeName {
    "a-0".into()
}

/// The Node `a-0` with this condition, its Lease just renewed.
fn seen(ready: ConditionStatus, has_not_ready_taint: bool, renewed: Timestamp) -> Seen {
    let known = SeenNode { ready: Some(ready), has_not_ready_taint };
    Seen {
        nodes: [(node(), known)].into(),
        renewals: [(node(), renewed)].into(),
        ..Seen::default()
    }
}

fn pod(node: &str, is_pending: bool, is_terminating: bool) -> SeenPod {
    let pod = PodName { namespace: "default".to_owned(), name: "p".to_owned() };
    SeenPod { pod, node: node.into(), is_pending, is_terminating }
}

#[test]
fn a_node_registers_and_renews() {
    let plan = cloud("", 0).plan(&Seen::default());
    assert_eq!(plan, [Command::Register(node()), Command::Renew(node())]);
}

#[test]
fn what_is_as_it_should_be_is_left_alone_until_the_lease_is_due() {
    let seen = |renewed| seen(ConditionStatus::True, false, renewed);
    assert_eq!(cloud("", 9).plan(&seen(at(0))), []);
    assert_eq!(cloud("", 10).plan(&seen(at(0))), [Command::Renew(node())]);
}

#[test]
fn the_taint_of_admission_is_lifted_from_who_is_ready() {
    let plan = cloud("", 0).plan(&seen(ConditionStatus::False, true, at(0)));
    let ready = ConditionStatus::True;
    let report = Command::Report { node: node(), ready, since: at(0) };
    assert_eq!(plan, [report, Command::LiftTaint(node())]);
    let unready = cloud("faults: [{fault: not-ready}]", 1);
    assert_eq!(unready.plan(&seen(ConditionStatus::False, true, at(1))), []);
}

#[test]
fn who_is_silent_writes_nothing_and_is_marked_unknown_if_that_is_our_task() {
    let faults = "faults: [{fault: silent, from: 1s}]";
    let seen = seen(ConditionStatus::True, false, at(0));
    assert_eq!(cloud(faults, 1000).plan(&seen), []);
    let marked = format!("unknown_after: 50s\n{faults}");
    assert_eq!(cloud(&marked, 50).plan(&seen), []);
    let ready = ConditionStatus::Unknown;
    assert_eq!(
        cloud(&marked, 51).plan(&seen),
        [Command::Report { node: node(), ready, since: at(1) }]
    );
}

#[test]
fn pods_are_run_and_ended_by_who_is_heard() {
    let quiet = || seen(ConditionStatus::True, false, at(0));
    let plan = |cloud: &Cloud, pod: SeenPod| cloud.plan(&Seen { pods: vec![pod], ..quiet() });
    let name = || pod("a-0", false, false).pod;
    let sound = cloud("", 0);
    assert_eq!(plan(&sound, pod("a-0", true, false)), [Command::Run(name())]);
    assert_eq!(plan(&sound, pod("a-0", false, true)), [Command::End(name())]);
    assert_eq!(plan(&sound, pod("a-0", false, false)), []);
    assert_eq!(plan(&sound, pod("stranger-0", true, true)), []);
    let silent = cloud("faults: [{fault: silent}]", 1);
    assert_eq!(plan(&silent, pod("a-0", true, true)), []);
}

#[test]
fn who_is_gone_is_removed_with_its_pods() {
    let mut cloud = cloud("", 0);
    cloud.delete(at(0), &"a".into(), &[super::story::by_id("a", "a-0")]).unwrap();
    cloud.step(at(0) + Duration::from_mins(1));
    let seen =
        Seen { pods: vec![pod("a-0", false, false)], ..seen(ConditionStatus::True, false, at(0)) };
    let name = pod("a-0", false, false).pod;
    assert_eq!(cloud.plan(&seen), [Command::Remove(node()), Command::End(name)]);
}
