//! What calls do to sizes when nothing goes wrong.

use std::num::NonZeroU32;

use expect_test::expect;
use jiff::SignedDuration;

use super::story::{check, started};
use crate::core::Cloud;
use crate::scenario::Scenario;

/// Machines boot in 30 s, register 10 s later, are Ready after 10 s more, and go within 10 s.
const POOL: &str = "groups: [{id: a, max: 3, target: 1, zones: [x, y]}]";

#[test]
fn a_machine_boots_registers_becomes_ready_and_goes() {
    check(
        POOL,
        "0s show
         0s increase a 1
         0s show
         29s show
         30s show
         40s show
         50s show
         60s delete a a-1
         60s target a
         60s show
         70s show",
        expect![[r#"
            0s show: [a-0 running] [a-0 Ready since 0s]
            0s increase a 1: done
            0s show: [a-0 running, a-1 creating] [a-0 Ready since 0s]
            29s show: [a-0 running, a-1 creating] [a-0 Ready since 0s]
            30s show: [a-0 running, a-1 running] [a-0 Ready since 0s]
            40s show: [a-0 running, a-1 running] [a-0 Ready since 0s, a-1 NotReady since 40s]
            50s show: [a-0 running, a-1 running] [a-0 Ready since 0s, a-1 Ready since 50s]
            60s delete a a-1: done
            60s target a: 1
            60s show: [a-0 running, a-1 deleting] [a-0 Ready since 0s, a-1 Ready since 50s]
            70s show: [a-0 running] [a-0 Ready since 0s]
        "#]],
    );
}

#[test]
fn sizes_have_limits() {
    check(
        POOL,
        "0s increase a 3
         0s increase b 1
         0s decrease a 1
         0s delete a a-7
         0s delete a a-0 a-7
         0s target a",
        expect![[r#"
            0s increase a 3: FailedPrecondition: 4 is more than the group's maximum, 3
            0s increase b 1: NotFound: there is no group `b`
            0s decrease a 1: FailedPrecondition: 1 machines exist and would have to be deleted
            0s delete a a-7: NotFound: `a-7` is not in the group `a`
            0s delete a a-0 a-7: NotFound: `a-7` is not in the group `a`
            0s target a: 1
        "#]],
    );
}

#[test]
fn what_is_deleted_twice_is_deleted_once() {
    check(
        POOL,
        "0s delete a a-0
         1s delete a a-0
         1s target a
         10s show",
        expect![[r#"
            0s delete a a-0: done
            1s delete a a-0: done
            1s target a: 0
            10s show: [] []
        "#]],
    );
}

#[test]
fn the_next_machine_is_in_the_next_zone() {
    check(
        POOL,
        "0s template a\n0s increase a 1\n0s template a",
        expect![[r#"
        0s template a: y
        0s increase a 1: done
        0s template a: x
    "#]],
    );
}

#[test]
fn the_same_seed_tells_the_same_story() {
    let pool = |seed: u64| format!("seed: {seed}\ngroups: [{{id: a, max: 9, boot: 10s..60s}}]");
    let script = "0s increase a 4\n20s show\n40s show";
    check(
        &pool(7),
        script,
        expect![[r#"
            0s increase a 4: done
            20s show: [a-0 running, a-1 running, a-2 creating, a-3 creating] []
            40s show: [a-0 running, a-1 running, a-2 creating, a-3 creating] [a-0 Ready since 36s 709ms 756µs 904ns, a-1 Ready since 36s 624ms 385µs 838ns]
        "#]],
    );
    check(
        &pool(8),
        script,
        expect![[r#"
            0s increase a 4: done
            20s show: [a-0 creating, a-1 running, a-2 creating, a-3 creating] []
            40s show: [a-0 creating, a-1 running, a-2 running, a-3 creating] [a-1 Ready since 30s 162ms 41µs 520ns]
        "#]],
    );
}

#[test]
fn one_long_step_is_as_good_as_many_short_ones() {
    let scenario = "groups: [{id: a, max: 9, target: 3, zones: [x, y], boot: 5s..90s}]\n\
                    faults:\n\
                    - {fault: flapping, every: 7s, from: 1m, until: 3m, one_in: 2}\n\
                    - {fault: partition, zone: y, from: 2m, until: 4m}\n\
                    - {fault: vanishes, from: 100s, count: 1}\n\
                    - {fault: node-outlives, by: 13s}\n\
                    - {fault: never-ready, count: 1}";
    let end = started() + SignedDuration::from_mins(5);
    let mut long = Cloud::new(Scenario::parse(scenario).unwrap(), started());
    let mut short = long.clone();
    for cloud in [&mut long, &mut short] {
        cloud.increase(started(), &"a".into(), NonZeroU32::new(4).unwrap()).unwrap();
    }
    let mut now = started();
    while now < end {
        now += SignedDuration::from_millis(500);
        short.step(now);
    }
    long.step(end);
    assert_eq!(long.nodes, short.nodes);
    let instances = |cloud: &mut Cloud| cloud.instances(end, &"a".into()).unwrap();
    assert_eq!(instances(&mut long), instances(&mut short));
}
