//! One story per fault of the script.

use expect_test::{Expect, expect};

use super::story;

/// A group that is quick, with one machine; and this fault.
fn check(fault: &str, script: &str, expected: Expect) {
    let scenario = format!(
        "groups: [{{id: a, max: 9, target: 1, zones: [x, y], boot: 10s, register: 10s, ready: 10s}}]\n\
         faults: [{{{fault}}}]"
    );
    story::check(&scenario, script, expected);
}

#[test]
fn quota() {
    check(
        "fault: quota, count: 1",
        "0s increase a 2
         0s show
         60s show
         60s delete a a-1
         70s show",
        expect![[r#"
            0s increase a 2: done
            0s show: [a-0 running, a-1 creating OutOfResources QUOTA_EXCEEDED, a-2 creating] [a-0 Ready since 0s]
            60s show: [a-0 running, a-1 creating OutOfResources QUOTA_EXCEEDED, a-2 running] [a-0 Ready since 0s, a-2 Ready since 30s]
            60s delete a a-1: done
            70s show: [a-0 running, a-2 running] [a-0 Ready since 0s, a-2 Ready since 30s]
        "#]],
    );
}

#[test]
fn create_error() {
    check(
        "fault: create-error, code: BAD_IMAGE, until: 1s",
        "0s increase a 1
         1s increase a 1
         11s show",
        expect![[r#"
            0s increase a 1: done
            1s increase a 1: done
            11s show: [a-0 running, a-1 creating Other BAD_IMAGE, a-2 running] [a-0 Ready since 0s]
        "#]],
    );
}

#[test]
fn stockout_ends_when_it_ends_or_nobody_wants_more() {
    check(
        "fault: stockout, until: 1m",
        "0s increase a 3
         59s show
         59s target a
         59s decrease a 2
         60s show",
        expect![[r#"
            0s increase a 3: done
            59s show: [a-0 running] [a-0 Ready since 0s]
            59s target a: 4
            59s decrease a 2: done
            60s show: [a-0 running, a-1 creating] [a-0 Ready since 0s]
        "#]],
    );
}

#[test]
fn stockout_of_a_zone() {
    check(
        "fault: stockout, zone: x",
        "0s increase a 3\n20s show",
        expect![[r#"
        0s increase a 3: done
        20s show: [a-0 running, a-1 running] [a-0 Ready since 0s, a-1 NotReady since 20s]
    "#]],
    );
}

#[test]
fn never_registers() {
    check(
        "fault: never-registers",
        "0s increase a 1\n10s show\n1h show",
        expect![[r#"
        0s increase a 1: done
        10s show: [a-0 running, a-1 running] [a-0 Ready since 0s]
        1h show: [a-0 running, a-1 running] [a-0 Ready since 0s]
    "#]],
    );
}

#[test]
fn wrong_provider_id() {
    check(
        "fault: wrong-provider-id",
        "0s increase a 1
         20s group-of a-0
         20s group-of a-1",
        expect![[r#"
            0s increase a 1: done
            20s group-of a-0: a
            20s group-of a-1: none
        "#]],
    );
}

#[test]
fn empty_provider_id() {
    check(
        "fault: empty-provider-id",
        "0s increase a 1\n20s group-of a-1",
        expect![[r#"
        0s increase a 1: done
        20s group-of a-1: a
    "#]],
    );
}

#[test]
fn never_ready() {
    check(
        "fault: never-ready",
        "0s increase a 1\n1h show",
        expect![[r#"
            0s increase a 1: done
            1h show: [a-0 running, a-1 running] [a-0 Ready since 0s, a-1 NotReady since 20s]
        "#]],
    );
}

#[test]
fn ready_then_not_ready_then_ready() {
    check(
        "fault: not-ready, from: 1m, until: 2m, count: 1",
        "0s increase a 1
         59s show
         60s show
         119s show
         120s show",
        expect![[r#"
            0s increase a 1: done
            59s show: [a-0 running, a-1 running] [a-0 Ready since 0s, a-1 Ready since 30s]
            60s show: [a-0 running, a-1 running] [a-0 NotReady since 1m, a-1 Ready since 30s]
            119s show: [a-0 running, a-1 running] [a-0 NotReady since 1m, a-1 Ready since 30s]
            120s show: [a-0 running, a-1 running] [a-0 Ready since 2m, a-1 Ready since 30s]
        "#]],
    );
}

#[test]
fn two_faults_strike_two_machines() {
    let scenario = "groups: [{id: a, max: 3, target: 3}]\n\
                    faults:\n\
                    - {fault: not-ready, count: 1, until: 1m}\n\
                    - {fault: silent, count: 1}";
    story::check(
        scenario,
        "0s show\n1m show",
        expect![[r#"
            0s show: [a-0 running, a-1 running, a-2 running] [a-0 NotReady since 0s, a-1 Silent since 0s, a-2 Ready since 0s]
            1m show: [a-0 running, a-1 running, a-2 running] [a-0 Ready since 1m, a-1 Silent since 0s, a-2 Ready since 0s]
        "#]],
    );
}

#[test]
fn ready_then_silent() {
    check(
        "fault: silent, from: 1m",
        "59s show\n60s show\n1h show",
        expect![[r#"
        59s show: [a-0 running] [a-0 Ready since 0s]
        60s show: [a-0 running] [a-0 Silent since 1m]
        1h show: [a-0 running] [a-0 Silent since 1m]
    "#]],
    );
}

#[test]
fn flapping() {
    check(
        "fault: flapping, from: 1m, every: 3m",
        "1m show\n4m show\n7m show\n10m show",
        expect![[r#"
            1m show: [a-0 running] [a-0 NotReady since 1m]
            4m show: [a-0 running] [a-0 Ready since 4m]
            7m show: [a-0 running] [a-0 NotReady since 7m]
            10m show: [a-0 running] [a-0 Ready since 10m]
        "#]],
    );
}

#[test]
fn partition_silences_a_zone_and_keeps_others_from_registering_there() {
    check(
        "fault: partition, zone: y, from: 15s, until: 1m",
        "0s increase a 2
         15s show
         59s show
         60s show",
        expect![[r#"
            0s increase a 2: done
            15s show: [a-0 running, a-1 running, a-2 running] [a-0 Ready since 0s]
            59s show: [a-0 running, a-1 running, a-2 running] [a-0 Ready since 0s, a-2 Ready since 30s]
            60s show: [a-0 running, a-1 running, a-2 running] [a-0 Ready since 0s, a-1 NotReady since 1m, a-2 Ready since 30s]
        "#]],
    );
}

#[test]
fn vanishes_and_is_not_replaced() {
    check(
        "fault: vanishes, from: 1m, count: 1",
        "60s show
         60s target a
         1h show
         1h decrease a 1",
        expect![[r#"
            60s show: [] []
            60s target a: 1
            1h show: [] []
            1h decrease a 1: done
        "#]],
    );
}

#[test]
fn vanishes_and_is_replaced() {
    let scenario = "groups: [{id: a, max: 3, target: 1, replaces_lost: true}]\n\
                    faults: [{fault: vanishes, from: 1m, count: 1}]";
    story::check(
        scenario,
        "60s show\n90s show\n2m show",
        expect![[r#"
            60s show: [a-1 creating] []
            90s show: [a-1 running] []
            2m show: [a-1 running] [a-1 Ready since 1m 50s]
        "#]],
    );
}

#[test]
fn node_outlives_its_machine() {
    check(
        "fault: node-outlives, by: 1m",
        "0s delete a a-0
         10s show
         69s show
         70s show",
        expect![[r#"
            0s delete a a-0: done
            10s show: [] [a-0 Silent since 10s]
            69s show: [] [a-0 Silent since 10s]
            70s show: [] []
        "#]],
    );
}

#[test]
fn slow_delete() {
    check(
        "fault: slow-delete, takes: 5m",
        "0s delete a a-0\n299s show\n5m show",
        expect![[r#"
        0s delete a a-0: done
        299s show: [a-0 deleting] [a-0 Ready since 0s]
        5m show: [] []
    "#]],
    );
}

#[test]
fn delete_fails() {
    check(
        "fault: delete-fails, count: 1, message: try later",
        "0s delete a a-0\n0s target a\n0s delete a a-0\n0s target a",
        expect![[r#"
            0s delete a a-0: Internal: try later
            0s target a: 1
            0s delete a a-0: done
            0s target a: 0
        "#]],
    );
}

#[test]
fn delete_unimplemented() {
    check(
        "fault: delete-unimplemented",
        "0s delete a a-0\n0s target a",
        expect![[r#"
        0s delete a a-0: not implemented
        0s target a: 1
    "#]],
    );
}

#[test]
fn timeout_after_effect() {
    check(
        "fault: timeout-after-effect, method: NodeGroupIncreaseSize, count: 1",
        "0s increase a 2\n0s target a\n0s increase a 1\n0s target a",
        expect![[r#"
            0s increase a 2: no answer
            0s target a: 3
            0s increase a 1: done
            0s target a: 4
        "#]],
    );
}

#[test]
fn groups_cannot_be_listed() {
    check(
        "fault: call-fails, method: NodeGroups, until: 1m",
        "0s groups\n0s refresh\n60s groups",
        expect![[r#"
            0s groups: Internal: scripted to fail
            0s refresh: done
            60s groups: 1
        "#]],
    );
}

#[test]
fn refresh_fails() {
    check(
        "fault: call-fails, method: Refresh, code: unavailable",
        "0s refresh",
        expect![[r#"
        0s refresh: Unavailable: scripted to fail
    "#]],
    );
}

#[test]
fn stale_target() {
    check(
        "fault: stale-target, by: 30s",
        "10s increase a 2\n11s target a\n39s target a\n40s target a",
        expect![[r#"
            10s increase a 2: done
            11s target a: 1
            39s target a: 1
            40s target a: 3
        "#]],
    );
}

#[test]
fn no_template() {
    check(
        "fault: no-template, until: 1m",
        "0s template a\n60s template a",
        expect![[r#"
        0s template a: none
        60s template a: y
    "#]],
    );
}

#[test]
fn legacy_replies() {
    check(
        "fault: legacy-replies, until: 1m",
        "0s generation\n60s generation",
        expect![[r#"
        0s generation: Legacy
        60s generation: Both
    "#]],
    );
}

#[test]
fn wrong_certificate() {
    check(
        "fault: wrong-certificate, until: 1m",
        "0s certificate\n60s certificate",
        expect![[r#"
        0s certificate: wrong
        60s certificate: right
    "#]],
    );
}

#[test]
fn a_fault_of_one_group_leaves_the_others_alone() {
    let scenario = "groups: [{id: a, max: 3}, {id: b, max: 3}]\n\
                    faults: [{fault: quota, group: a}]";
    story::check(
        scenario,
        "0s increase a 1\n0s increase b 1\n1m show",
        expect![[r#"
            0s increase a 1: done
            0s increase b 1: done
            1m show: [a-0 creating OutOfResources QUOTA_EXCEEDED, b-0 running] [b-0 Ready since 50s]
        "#]],
    );
}

#[test]
fn one_in_so_many() {
    check(
        "fault: never-registers, one_in: 2",
        "0s increase a 6\n1m show",
        expect![[r#"
            0s increase a 6: done
            1m show: [a-0 running, a-1 running, a-2 running, a-3 running, a-4 running, a-5 running, a-6 running] [a-0 Ready since 0s, a-2 Ready since 30s, a-3 Ready since 30s, a-4 Ready since 30s, a-6 Ready since 30s]
        "#]],
    );
}
