//! How much stealing wastes and how fair it is: many nodes, one store that takes its time, and the
//! delays of the core. Virtual time; the same seed gives the same figures.

mod cluster;

use std::time::Duration;

use self::cluster::{Figures, Policy, Setting, run};

const STORE_OP: Duration = Duration::from_micros(150);

fn setting() -> Setting {
    Setting {
        policy: Policy::Rank,
        slots: vec![4; 7],
        tasks: 2000,
        per_second: 100,
        run: Duration::from_millis(100),
        store_op: STORE_OP,
        seed: 1,
    }
}

/// How full `nodes` nodes of four slots are.
fn loaded(nodes: usize, share: f64) -> Setting {
    let run = Duration::from_millis(100);
    let slots = u32::try_from(4 * nodes).expect("small");
    let per_second = (f64::from(slots) * share / run.as_secs_f64()).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small and positive"
    )]
    let per_second = per_second as u64;
    Setting { slots: vec![4; nodes], per_second, run, ..setting() }
}

#[track_caller]
fn check(name: &str, setting: Setting, wasted_max: f64) -> Figures {
    let figures = run(&setting);
    assert_eq!(figures.started, setting.tasks, "{name}: every task is started");
    assert!(figures.wasted_per_task < wasted_max, "{name}: {figures:?}");
    figures
}

#[test]
fn seven_nodes_waste_next_to_nothing() {
    let light = check("36 % load", loaded(7, 0.36), 0.02);
    assert!(light.start_p50 < Duration::from_millis(8), "{light:?}");
    assert!(light.start_p99 < Duration::from_millis(25), "{light:?}");
    let heavy = check("80 % load", loaded(7, 0.80), 0.2);
    assert!(heavy.start_p99 < Duration::from_millis(80), "{heavy:?}");
}

#[test]
fn fifty_nodes_waste_next_to_nothing() {
    let steady = Setting { slots: vec![4; 50], tasks: 1000, per_second: 1000, ..setting() };
    let steady = check("1,000 per second", steady, 0.05);
    assert!(steady.start_p50 < Duration::from_millis(8), "{steady:?}");
}

#[test]
fn a_burst_is_shared_out() {
    let burst = Setting { slots: vec![4; 50], per_second: u64::MAX, ..setting() };
    let burst = check("burst of 2,000", burst, 0.2);
    assert!(burst.makespan < Duration::from_secs(4), "{burst:?}");
}

/// Why there are ranks: without them, every node asks for every task.
#[test]
fn races_and_loads_alone_waste_far_more() {
    let with = |policy| run(&Setting { policy, tasks: 500, ..loaded(7, 0.36) }).wasted_per_task;
    let (race, load, rank) = (with(Policy::Race), with(Policy::Load), with(Policy::Rank));
    assert!(race > 3.0 && load > 1.0 && rank < 0.02, "{race} {load} {rank}");
}

#[test]
fn large_nodes_take_more_and_small_nodes_less() {
    let slots = vec![1, 1, 2, 2, 4, 4, 8, 8];
    let total: u32 = slots.iter().sum();
    let mixed = Setting { slots, per_second: u64::from(total) * 5, tasks: 6000, ..setting() };
    let figures = check("mixed sizes", mixed, 0.2);
    assert!(figures.fairness > 0.98, "{figures:?}");
}
