//! Properties of watchers: several of them over one server that forgets, with answers that get lost
//! and crashes between any two steps. What they post is compared with what happened.

mod replica;
mod server;
mod world;

use labels::core::watch::index::EventKind;
use proptest::prelude::*;

use self::{
    replica::{Fate, Fault},
    world::{Step, World, steps, steps_that_forget},
};

/// Plays the steps, lets everything settle, and tells the first broken promise.
fn outcome(steps: &[Step], fault: Option<Fault>) -> Result<(), String> {
    let mut world = World::new(fault);
    for step in steps {
        world.play(step);
        world.check()?;
    }
    world.settle();
    world.check()?;
    world.check_end()
}

proptest! {
    /// While the server keeps its history: the watermark never passes an event that is not posted,
    /// each node's events are first posted in order, none twice unless it was worked off, and
    /// whoever crashes wherever, in the end every event is there with its labels.
    #[test]
    fn every_event_is_posted_in_order(steps in steps()) {
        outcome(&steps, None).map_err(TestCaseError::fail)?;
    }

    /// When the server forgets too: the labels of whoever had a checkpoint are told, as they were
    /// then or later.
    #[test]
    fn what_a_checkpoint_has_is_not_lost(steps in steps_that_forget()) {
        outcome(&steps, None).map_err(TestCaseError::fail)?;
    }
}

/// An end that steps aside for the arrival takes the version after it, at which the node may have
/// changed unseen. It tells what was seen all the same.
#[test]
fn an_end_that_stepped_aside_is_told_as_it_was_seen() {
    let change = |kind, label| Step::Change { node: 0, kind, label };
    let steps = [
        change(EventKind::Added, 0),
        Step::Read { replica: 0 },
        change(EventKind::Modified, 1),
        Step::TakePosts { replica: 0 },
        Step::Wait { ms: 5_000 },
        Step::Post { replica: 0, which: 0, fate: Fate::Answered },
        Step::Save { replica: 0 },
        Step::Forget,
        change(EventKind::Deleted, 0),
    ];
    assert_eq!(outcome(&steps, None), Ok(()));
}

/// The properties above must notice these.
#[test]
fn faults_put_in_are_found() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    for fault in Fault::ALL {
        let mut runner = TestRunner::deterministic();
        let strategy = if fault.needs_forgetting() { steps_that_forget() } else { steps() };
        let is_found = (0..2_000).any(|_| {
            let steps = strategy.new_tree(&mut runner).unwrap().current();
            outcome(&steps, Some(fault)).is_err()
        });
        assert!(is_found, "{fault:?}");
    }
}
