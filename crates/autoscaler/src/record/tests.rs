use registry::{Group, Registry};

use crate::core::Memory;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn facts(target: i64) -> Facts {
    let group = Group {
        id: "a".into(),
        min: 0,
        max: 9,
        exists: true,
        options: registry::Options::default(),
        target: Ok(target),
        instances: Ok(Vec::new()),
    };
    Facts { nodes: Vec::new(), groups: Ok(vec![group]) }
}

fn options() -> Options {
    Options::new("a".to_owned())
}

/// A group misses two nodes until that is given up; with no line lost, or with one.
fn recorded(loses_second: bool) -> Vec<String> {
    let (recorder, mut lines) = channel();
    let mut log = Log::new(Some(recorder.clone()));
    let mut registry = Registry::new(options().registry);
    let memory = Memory::new();
    let mut texts = Vec::new();
    for (second, number) in [0, 600, 1000].into_iter().zip(0..) {
        let now = at(second);
        log.begin(now, &registry, &memory);
        let decisions = registry.observe(now, &facts(2)).decisions;
        let change = log.change_to(Seen::default());
        log.enter(|| Entry::Looked { now, seed: 0, facts: facts(2), change, decisions });
        if loses_second && number == 1 {
            for _ in 0..QUEUE_MAX {
                let filler = Line { start: None, entries: Vec::new() };
                assert!(recorder.offer(&filler));
            }
            assert!(!log.end());
            while lines.try_recv().is_some() {}
            continue;
        }
        assert!(log.end());
        texts.extend(lines.try_recv().map(|line| line.text));
    }
    texts
}

fn replayed(lines: &[String]) -> Result<(usize, u64), Error> {
    let mut replay = Replay::begin(&header(&options()))?;
    for line in lines {
        replay.line(line)?;
    }
    Ok((replay.iterations, replay.dropped))
}

#[test]
fn the_same_facts_come_to_the_same_decisions() {
    let lines = recorded(false);
    assert!(lines.last().unwrap().contains("ReduceTarget"), "{lines:?}");
    assert_eq!(replayed(&lines).unwrap(), (3, 0));
}

#[test]
fn another_decision_is_a_difference() {
    let mut lines = recorded(false);
    let last = lines.last_mut().unwrap();
    *last = last.replace("\"delta\":2", "\"delta\":1");
    let error = replayed(&lines).unwrap_err();
    let Error::Different(difference) = error else { panic!("{error}") };
    assert_eq!(difference.now, at(1000));
    assert_ne!(difference.recorded, difference.again);
}

#[test]
fn after_a_line_that_was_dropped_the_next_begins_anew() {
    let lines = recorded(true);
    assert!(lines.iter().all(|line| line.contains("\"start\"")), "{lines:?}");
    assert_eq!(replayed(&lines).unwrap(), (2, 1));
    assert_eq!(replayed(&lines[1..]).unwrap(), (1, 1), "so a file may begin there");
}

#[test]
fn who_writes_can_ask_for_a_beginning() {
    let (recorder, lines) = channel();
    assert!(!recorder.is_start_wanted());
    lines.want_start();
    assert!(recorder.is_start_wanted() && !recorder.is_start_wanted());
}

#[test]
fn what_is_no_record_is_told_apart() {
    let lines = recorded(false);
    assert!(matches!(Replay::begin("{}"), Err(Error::Header(_))));
    assert!(matches!(replayed(&lines[1..]), Err(Error::NoStart)));
    let newer = header(&options()).replace("\"version\":2", "\"version\":3");
    assert!(matches!(Replay::begin(&newer), Err(Error::Version(3))));
}
