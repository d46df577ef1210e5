//! Compressed days with seeded faults: whatever happens, some things never do.

use std::collections::{BTreeMap, BTreeSet};

use chance::Chance;

use crate::sim::{Sim, mins};

/// Simulated hours per seed. A tick of the clock is ten seconds.
const HOURS: u64 = 5;

/// How many worlds are lived through.
const SEEDS: u64 = 3;

/// Two groups in two zones, and whatever goes wrong by the seed.
fn scenario(chance: &mut Chance) -> String {
    let mut faults = Vec::new();
    let kinds = [
        "quota",
        "stockout",
        "create-error",
        "never-registers",
        "never-ready",
        "not-ready",
        "silent",
        "vanishes",
        "node-outlives",
        "slow-delete",
        "delete-fails",
        "timeout-after-effect",
        "call-fails",
        "stale-target",
        "no-template",
        "empty-provider-id",
    ];
    for _ in 0..6 {
        let kind = *chance.pick(&kinds);
        let group = *chance.pick(&["a", "b"]);
        let from = chance.below(300);
        let until = from + 5 + chance.below(60);
        let more = match kind {
            "slow-delete" => ", takes: 8m, count: 2",
            "stale-target" => ", by: 40s",
            "timeout-after-effect" => *chance.pick(&[
                ", method: NodeGroupIncreaseSize, count: 2",
                ", method: NodeGroupDeleteNodes, count: 2",
            ]),
            "call-fails" => *chance.pick(&[
                ", method: NodeGroupNodes",
                ", method: NodeGroupTargetSize",
                ", method: NodeGroupIncreaseSize",
                ", method: NodeGroupDecreaseTargetSize",
            ]),
            "node-outlives" => ", by: 3m, count: 2",
            "stockout" | "no-template" => "",
            _ => ", count: 2",
        };
        faults.push(format!(
            "{{fault: {kind}, group: {group}, from: {from}m, until: {until}m{more}}}"
        ));
    }
    format!(
        "groups: [{{id: a, min: 1, max: 8, target: 2, zones: [z1]}}, {{id: b, max: 8, target: 1, zones: [z2], replaces_lost: true}}]\nfaults: [{}]",
        faults.join(", ")
    )
}

#[test]
fn days_of_faults_break_no_promise() {
    for seed in 0..SEEDS {
        let mut chance = Chance::new(seed);
        let scenario = scenario(&mut chance);
        let mut sim = Sim::new(&scenario);
        sim.deploy("web", 4, "1").min_available = Some(2);
        sim.deploy("batch", 0, "3");
        for _ in 0..HOURS * 12 {
            match chance.below(4) {
                0 => sim.scale("web", 2 + chance.below(14)),
                1 => sim.scale("batch", chance.below(5)),
                2 if chance.once_in(4) => sim.restart(),
                _ => {}
            }
            for _ in 0..30 {
                sim.tick();
                hold(&mut sim, &format!("seed {seed}: {scenario}"));
            }
        }
        recover(&mut sim, seed);
    }
}

/// What holds after every tick.
fn hold(sim: &mut Sim, which: &str) {
    let now = sim.elapsed();
    let mut changes: BTreeMap<String, usize> = BTreeMap::new();
    for noted in sim.calls.iter().filter(|noted| noted.at == now) {
        let mut words = noted.what.split(' ');
        if let (Some("increase" | "decrease"), Some(group)) = (words.next(), words.next()) {
            *changes.entry(group.to_owned()).or_default() += 1;
        }
    }
    assert!(changes.values().all(|count| *count <= 1), "{which}: {changes:?}\n{}", sim.story());
    for group in ["a", "b"] {
        let Ok(target) = sim.cloud.target(sim.now, &group.into()) else { continue };
        assert!(target <= 8, "{which}: {group} has target {target}");
    }
}

/// Once nothing goes wrong any more, all pods run, nothing is left half done, and nothing
/// was deleted twice.
fn recover(sim: &mut Sim, seed: u64) {
    sim.scale("web", 6);
    sim.scale("batch", 2);
    sim.run_for(mins(120));
    let running = (sim.running("web"), sim.running("batch"));
    assert_eq!(running, (6, 2), "seed {seed}: {}", sim.story());
    let deleted: Vec<_> = sim.calls("delete").iter().map(|noted| noted.what.clone()).collect();
    let once: BTreeSet<&String> = deleted.iter().collect();
    assert_eq!(deleted.len(), once.len(), "seed {seed}: {deleted:?}\n{}", sim.story());
}
