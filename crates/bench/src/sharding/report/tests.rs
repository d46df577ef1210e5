use expect_test::expect;

use super::*;

fn spread(p50_ms: f64, p99_ms: f64) -> Spread {
    Spread { p50_ms, p99_ms }
}

fn report() -> Report {
    let moved = |what: &str, objects, took_s| Move {
        what: what.to_owned(),
        objects,
        moved: objects / 4,
        took_s,
    };
    let even =
        |way: &str, max_over_mean| Evenness { way: way.to_owned(), instances: 5, max_over_mean };
    Report {
        machine: Machine {
            cores: 2,
            cpu: "some".into(),
            memory_bytes: 8 << 30,
            kernel: "6".into(),
        },
        objects: 1000,
        capacity: vec![
            Capacity { instances: 1, per_second: 130.0, ratio: 1.0 },
            Capacity { instances: 2, per_second: 250.0, ratio: 1.92 },
        ],
        evenness: vec![even("slots, simulated", 1.03), even("ring of 100 tokens, simulated", 1.2)],
        moves: vec![
            moved(JOINED, 1000, 2.5),
            moved(LEFT, 1000, 2.5),
            moved(REPLACED, 1000, 2.5),
            moved("3 → 4", 10_000, 18.0),
        ],
        gap: Gap { moves: 250, spread: spread(5.0, 40.0) },
        rolling: Rolling { instances: 3, moved: 0 },
        crashes: vec![Crash { lease_s: 5.0, moved: 333, begun_in_s: 10.5, took_s: 1.0 }],
        creation: Creation { bare: spread(2.0, 4.0), ringed: spread(2.1, 4.5) },
        cpu: Cpu { changes_per_second: 156, sharder: 0.01, instances: 0.1, alone: 0.1 },
        footprints: vec![Footprint {
            objects: 1000,
            resident_bytes: 14 << 20,
            own_bytes: 12 << 20,
            peak_bytes: 20 << 20,
        }],
    }
}

#[test]
fn every_figure_stands_beside_its_target() {
    let text = report().to_string();
    let table = text.split_once("\n\n").unwrap().1;
    expect![[r#"
        | measure                                                     | is                   | Go project   | target   |
        |-------------------------------------------------------------|----------------------|--------------|----------|
        | capacity, 1 instances vs 1                                  | 1.00 (130/s)         | 1            |          |
        | capacity, 2 instances vs 1                                  | 1.92 (250/s)         | 1.55         | ≥ 1.9    |
        | max/mean, 5 instances, slots, simulated                     | 1.030                | 1.16         | ≤ 1.05   |
        | max/mean, 5 instances, ring of 100 tokens, simulated        | 1.200                |              |          |
        | rebalance 1000 objects, 2 → 3                               | 2.50 s (250 moved)   | 17 s         | ≤ 3 s    |
        | rebalance 1000 objects, 3 → 2, stopped                      | 2.50 s (250 moved)   | 17 s         | ≤ 3 s    |
        | rebalance 1000 objects, a pod of 3 deleted and replaced     | 2.50 s (250 moved)   | 28 s         | ≤ 3 s    |
        | rebalance 10000 objects, 3 → 4                              | 18.00 s (2500 moved) |              | ≤ 20 s   |
        | gap of a graceful move, p99 of 250                          | 40.0 ms              |              | ≤ 100 ms |
        | the same, p50                                               | 5.00 ms              |              |          |
        | moves when 3 instances restart and hold                     | 0                    | nearly all   | 0        |
        | crash to reassignment begun, D = 5 s                        | 10.50 s              |              | ≤ 11 s   |
        | the same, then until done, D = 5 s                          | 1.00 s (333 moved)   |              | ≤ 3 s    |
        | create with / without, p99                                  | 4.50 ms / 4.00 ms    | 87 / 24.5 ms |          |
        | create with / without, p50                                  | 2.10 ms / 2.00 ms    |              |          |
        | added to a create, p99                                      | 0.50 ms              |              | ≤ 1 ms   |
        | sharder memory, 1000 objects, idle, resident                | 14.0 MiB             | 15–18 MiB    | ≤ 15 MiB |
        | sharder memory, 1000 objects, idle, without its program     | 12.0 MiB             |              |          |
        | sharder memory, 1000 objects, most resident since its start | 20.0 MiB             | 31 MiB       | ≤ 40 MiB |
        | sharder CPU at 156 changes/s                                | 0.010 cores          | 0.02–0.03    | ≤ 0.02   |
        | total CPU over one controller alone                         | +10 %                | +36 %        | ≤ +15 %  |
    "#]]
    .assert_eq(table);
}

#[test]
fn a_spread_needs_something_to_spread() {
    let times: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
    assert_eq!(Spread::of(&times).unwrap(), spread(50.0, 99.0));
    assert!(Spread::of(&[]).is_err());
}
