//! Two processors side by side, step by step: interleavings that chance seldom draws.

use labels::core::object::{Labels, Uid};

use super::{
    Violation,
    cluster::Cluster,
    processor::{Deeds, Fault, Processor},
};

#[derive(Default)]
struct Story {
    cluster: Cluster,
    deeds: Deeds,
}

// === impl Story ===

impl Story {
    /// u1 and u2 have come and gone, u3 is there; the death of u2 waits to be told.
    fn begin() -> Result<Self, Violation> {
        let mut story = Self::default();
        for uid in ["u1", "u2"] {
            story.cluster.bear(Uid(uid.to_owned()), Labels::new());
            story.post_all();
            story.work_off(&mut Processor::new(None))?;
            story.cluster.edit(|node| drop(node.labels.insert(uid.to_owned(), "x".to_owned())));
            story.cluster.delete_node();
        }
        story.cluster.bear(Uid("u3".to_owned()), Labels::new());
        Ok(story)
    }

    fn post_all(&mut self) {
        let events = self.cluster.events.clone();
        events.iter().for_each(|event| self.cluster.post(event));
    }

    /// The last birth overtakes the death before it.
    fn post_last(&mut self) {
        let last = self.cluster.events.last().cloned();
        self.cluster.post(&last.expect("something happened"));
    }

    fn step(&mut self, processor: &mut Processor) -> Result<(), Violation> {
        processor.step(&mut self.cluster, &mut self.deeds)
    }

    fn work_off(&mut self, processor: &mut Processor) -> Result<(), Violation> {
        self.step(processor)?;
        while !processor.is_idle() {
            self.step(processor)?;
        }
        Ok(())
    }
}

/// A slow processor begins with the `added` of u3 alone. Before it goes on, the late death of u2
/// comes, and a quick one stores it and restores u3 from it.
fn slow_beside_quick(fault: Option<Fault>) -> Result<(), Violation> {
    let mut story = Story::begin()?;
    let mut slow = Processor::new(fault);
    story.post_last();
    story.step(&mut slow)?;
    story.post_all();
    story.work_off(&mut Processor::new(None))?;
    story.work_off(&mut slow)
}

#[test]
fn a_record_read_after_its_node_knows_its_marker() {
    slow_beside_quick(None).expect("nothing is restored twice");
}

#[test]
fn a_record_read_before_its_node_does_not() {
    let violation = slow_beside_quick(Some(Fault::RecordReadFirst)).unwrap_err();
    assert!(violation.0.contains("I2"), "{violation:?}");
}

/// One processor has given u3 what u1 left, and is about to delete the `added`. Meanwhile another
/// stores the late death of u2 and dies. True if u3 gets what u2 left after all.
fn dies_after_storing(fault: Option<Fault>) -> Result<bool, Violation> {
    let mut story = Story::begin()?;
    let mut first = Processor::new(None);
    story.post_last();
    while !first.is_finishing() {
        story.step(&mut first)?;
    }
    story.post_all();
    let mut second = Processor::new(fault);
    let stored = story.cluster.record.clone();
    while story.cluster.record == stored || !second.is_at_last() {
        story.step(&mut second)?;
    }
    drop(second);
    story.work_off(&mut first)?;
    story.work_off(&mut Processor::new(None))?;
    Ok(story.cluster.node.is_some_and(|node| node.labels.contains_key("u2")))
}

#[test]
fn what_stored_a_record_stays_queued_until_it_is_settled() {
    assert!(dies_after_storing(None).unwrap());
}

#[test]
fn deleting_it_earlier_is_noticed() {
    assert!(!dies_after_storing(Some(Fault::EarlyDelete)).unwrap());
}
