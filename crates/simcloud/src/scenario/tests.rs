//! What a file may say, and how its mistakes are named.

use std::error::Error as _;

use super::*;

const GROUP: &str = "groups: [{id: a, max: 3}]\n";

fn refusal(yaml: &str) -> String {
    let error = Scenario::parse(yaml).unwrap_err();
    let source = error.source().map(ToString::to_string).unwrap_or_default();
    format!("{error}: {source}")
}

fn fault(line: &str) -> Fault {
    let scenario = Scenario::parse(&format!("{GROUP}faults: [{{{line}}}]")).unwrap();
    scenario.faults.into_iter().next().unwrap()
}

#[test]
fn little_has_to_be_said() {
    let scenario = Scenario::parse(GROUP).unwrap();
    assert_eq!(scenario.generation, Generation::Both);
    assert_eq!(scenario.groups[0].capacity["cpu"], "4");
    assert_eq!(scenario.groups[0].zones, ["z1"]);
}

#[test]
fn a_fault_has_a_place_a_time_and_a_number() {
    let seconds = Duration::from_secs;
    let quota = fault("fault: quota, group: a, from: 1m, until: 2m, count: 3, one_in: 2, code: Q");
    assert_eq!(quota.window, seconds(60)..seconds(120));
    assert_eq!((quota.count, quota.one_in, quota.group), (3, 2, Some("a".into())));
    assert!(matches!(quota.kind, Kind::Quota(Words { code, .. }) if code == "Q"));
    assert_eq!(fault("fault: never-ready").window, Duration::ZERO..Duration::MAX);
}

#[test]
fn what_is_wrong_is_named() {
    for (yaml, expected) in [
        ("groups: []", "no groups"),
        ("groups: [{id: a, max: 3, maxx: 4}]", "maxx"),
        ("groups: [{id: a, max: 3}]\nspeed: 3", "speed"),
        ("groups: [{id: '', max: 3}]", "empty id"),
        ("groups: [{id: a, max: 3}, {id: a, max: 3}]", "`a` is there twice"),
        ("groups: [{id: a, max: 3, target: 4}]", "target 4"),
        ("groups: [{id: a, max: 3, zones: []}]", "no zone"),
        ("groups: [{id: a, max: 3, boot: 2s..1s}]", "ends before it begins"),
        ("groups: [{id: a, max: 3}]\ntick: 0s", "`tick` is 0"),
    ] {
        let refusal = refusal(yaml);
        assert!(refusal.contains(expected), "{yaml}: {refusal}");
        assert!(!refusal.contains('\n'), "{refusal}");
    }
}

#[test]
fn what_is_wrong_with_a_fault_is_named() {
    for (line, expected) in [
        ("fault: rain", "no fault `rain`"),
        ("fault: quota, wind: 3", "wind"),
        ("fault: quota, group: b", "no group `b`"),
        ("fault: quota, every: 3s", "makes nothing of `every`"),
        ("fault: stockout, count: 3", "makes nothing of `count`"),
        ("fault: flapping", "needs `every`"),
        ("fault: flapping, every: 0s", "`every` is 0"),
        ("fault: partition", "needs `zone`"),
        ("fault: slow-delete", "needs `takes`"),
        ("fault: stale-target", "needs `by`"),
        ("fault: call-fails", "needs `method`"),
        ("fault: call-fails, method: Refrsh", "no method `Refrsh`"),
        ("fault: call-fails, method: Refresh, code: tired", "`tired` is no way"),
        ("fault: never-ready, from: 2s, until: 1s", "`until` is not after"),
        ("fault: never-ready, count: 0", "`count` is 0"),
    ] {
        let refusal = refusal(&format!("{GROUP}faults: [{{{line}}}]"));
        assert!(refusal.contains("fault 1") || refusal.contains("not as it should"), "{refusal}");
        assert!(refusal.contains(expected), "{line}: {refusal}");
    }
}
