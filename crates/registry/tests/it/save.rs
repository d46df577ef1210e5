//! The saved state: what is taken, what is not, and how large it gets.

use registry::{Action, Outcome, RecordError, Registry, RestoreError, STATE_BYTES_MAX, Step};

use crate::scene::{beginning, span};
use crate::story::{Story, config};

fn saved() -> Vec<u8> {
    let mut story = Story::new();
    story.ask("g1", 2, 1).observe("g1 T=3: ready, unready, starting, instance");
    story.unneeded(&["g1-1"]);
    story.registry.save()
}

fn restore(bytes: &[u8]) -> Result<Registry, RestoreError> {
    Registry::restore(config(), bytes, beginning())
}

#[test]
fn what_is_restored_is_what_was_saved() {
    let bytes = saved();
    assert_eq!(restore(&bytes).unwrap().save(), bytes);
}

#[test]
fn ordinary_nodes_take_no_room() {
    let of = |nodes: u32| {
        let mut story = Story::new();
        story.observe(&format!("g1 T={nodes}: {nodes} ready"));
        story.registry.save().len()
    };
    assert!(of(1_000) < of(1) + 10, "{} and {}", of(1_000), of(1));
}

#[test]
fn what_is_damaged_newer_or_ahead_is_refused() {
    let bytes = saved();
    let text = String::from_utf8(bytes.clone()).unwrap();
    let check = |text: &str, expected: &str| {
        let error = restore(text.as_bytes()).err().map(|error| error.to_string());
        assert_eq!(error.as_deref(), Some(expected));
    };
    check("", "the saved state is not one");
    check(&text[..text.len() - 1], "the saved state is not one");
    let newer = text.replace("\"version\":1", "\"version\":2");
    check(&newer, "the saved state has version 2, and 1 is the newest known");
    let other = text.replace("g1-2", "g1-9");
    check(&other, "the saved state does not match its checksum");
    let earlier = beginning() - span("6m");
    let ahead = Registry::restore(config(), &bytes, earlier).err().map(|error| error.to_string());
    let expected = "the saved state is of 2026-03-01T10:00:00Z, which is ahead of the clock";
    assert_eq!(ahead.as_deref(), Some(expected));
}

#[test]
fn a_large_state_loses_what_only_makes_us_later() {
    let group = "a-group-with-a-rather-long-name".repeat(3);
    let facts = format!("{group} T=6000: 6000 ready\n g2 T=3: ready");
    let names: Vec<String> = (1..=6_000).map(|number| format!("{group}-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut story = Story::new();
    story.ask("g2", 2, 1).observe(&facts);
    story.unneeded(&names[..3_000]);
    let whole = story.registry.save();
    assert_eq!(restore(&whole).unwrap().save(), whole, "this much fits");
    story.at("1m").unneeded(&names);
    let bytes = story.registry.save();
    assert!(bytes.len() <= STATE_BYTES_MAX, "{}", bytes.len());
    let restored = restore(&bytes).unwrap();
    let is_kept = |name: &&&str| restored.unneeded_since(&(**name).into()).is_some();
    assert_eq!(names[..3_000].iter().filter(is_kept).count(), 3_000, "the oldest are kept");
    assert!(names[3_000..].iter().filter(is_kept).count() < 3_000, "not all of the newest are");
    assert_eq!(restored.requests(&"g2".into()).count(), 1);
}

#[test]
fn nothing_is_begun_that_could_not_be_remembered() {
    let mut story = Story::new();
    let mut number = 0;
    let refused = loop {
        let instance = format!("{}-{number}", "x".repeat(3_000)).as_str().into();
        let action = Action::Delete { group: "g1".into(), instance };
        let outcome = Outcome { action, step: Step::Requested };
        if let Err(refused) = story.registry.record(story.now, &outcome) {
            break refused;
        }
        number += 1;
    };
    assert_eq!(refused, RecordError::StateFull);
    assert!(number > 200);
    assert!(story.registry.save().len() <= STATE_BYTES_MAX);
}
