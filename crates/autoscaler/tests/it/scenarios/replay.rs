//! What was recorded comes to the same decisions again, plans and removals included.

use autoscaler::record::{self, Error, Lines, Replay};

use crate::sim::Sim;

/// Two groups, of which one fails; a node whose pod has to move; a halt.
fn story() -> Sim {
    let mut sim = Sim::new(
        "groups: [{id: a, max: 10}, {id: b, min: 1, max: 10, target: 4}]\nfaults: [{fault: quota, group: a, from: 20m}, {fault: not-ready, group: b, from: 40m, until: 50m, count: 3}]",
    );
    sim.deploy("filler", 1, "3");
    sim.deploy("blocker", 1, "1");
    sim.deploy("web", 1, "900m").min_available = Some(0);
    sim
}

/// Every line of an hour in which much happens.
fn recorded(sim: &mut Sim) -> Vec<String> {
    let (recorder, mut lines) = record::channel();
    sim.recorder = Some(recorder);
    let mut texts = Vec::new();
    for minute in 0..60 {
        match minute {
            1 => sim.scale("blocker", 0),
            22 => sim.scale("web", 12),
            30 => sim.restart(),
            35 => sim.scale("web", 2),
            _ => {}
        }
        for _ in 0..6 {
            sim.tick();
            texts.extend(rest(&mut lines));
        }
    }
    texts
}

fn rest(lines: &mut Lines) -> impl Iterator<Item = String> {
    std::iter::from_fn(|| lines.try_recv()).map(|line| line.text)
}

fn replayed(sim: &Sim, lines: &[String]) -> Result<usize, Error> {
    let mut replay = Replay::begin(&record::header(&sim.options()))?;
    for line in lines {
        replay.line(line)?;
    }
    Ok(replay.iterations)
}

#[test]
fn an_hour_comes_to_the_same_again() {
    let mut sim = story();
    let lines = recorded(&mut sim);
    for what in ["increase", "evict", "delete", "taint"] {
        assert!(!sim.calls(what).is_empty(), "{what}: {}", sim.story());
    }
    assert_eq!(replayed(&sim, &lines).unwrap(), 360);
}

#[test]
fn another_plan_is_a_difference() {
    let mut sim = story();
    let lines = recorded(&mut sim);
    let others = [
        (
            r#""Acted":{"action":{"Call":{"Increase":{"group":"b""#,
            r#""group":"b""#,
            r#""group":"a""#,
        ),
        (r#"{"Evict":{"node":"b-1""#, r#""node":"b-1""#, r#""node":"b-0""#),
    ];
    for (what, was, is) in others {
        let at = lines.iter().position(|line| line.contains(what)).expect("it was recorded");
        let mut other = lines.clone();
        other[at] = other[at].replacen(what, &what.replace(was, is), 1);
        let outcome = replayed(&sim, &other);
        assert!(matches!(outcome, Err(Error::Different(_))), "{what}: {outcome:?}");
    }
}

/// Who is not written to for a while begins anew, and says how much is missing.
#[test]
fn what_could_not_be_written_is_counted_and_the_rest_comes_to_the_same() {
    let mut sim = story();
    let (recorder, mut lines) = record::channel();
    sim.recorder = Some(recorder);
    let mut texts = Vec::new();
    for number in 0..120 {
        sim.tick();
        if !(40..60).contains(&number) {
            texts.extend(rest(&mut lines));
        }
    }
    let mut replay = Replay::begin(&record::header(&sim.options())).unwrap();
    texts.iter().for_each(|line| replay.line(line).unwrap());
    // The first iteration after the pause still finds the queue full.
    let kept = 120 - 21 + record::QUEUE_MAX;
    assert_eq!((replay.iterations, replay.dropped), (kept, 120 - u64::try_from(kept).unwrap()));
}
