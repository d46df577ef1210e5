//! Properties, one invariant per file. Each runs a keyspace and the naive model side by side.

mod compaction_keeps_what_can_be_read;
mod counts;
mod duplicate_keys;
mod failed_reads_change_nothing;
mod hashes;
mod key_ranges;
mod leases;
mod previous_versions;
mod ranges;
mod replay;
mod transactions;

use mvcc::{Revision, story::Command};
use proptest::prelude::*;

use crate::{arbitrary::Step, model::Model, world::World};

/// A keyspace and the model of it, which get the same commands.
#[derive(Default)]
struct Pair {
    world: World,
    model: Model,
}

// === impl Pair ===

impl Pair {
    /// Lives through `steps`; every answer is compared.
    fn after(steps: &[Step]) -> Result<Self, TestCaseError> {
        let mut pair = Self::default();
        pair.live(steps)?;
        Ok(pair)
    }

    fn live(&mut self, steps: &[Step]) -> Result<(), TestCaseError> {
        steps.iter().try_for_each(|step| match step {
            Step::Do(command) => self.check(command),
            Step::Sweep(keys_max) => {
                self.world.sweep(*keys_max);
                Ok(())
            }
        })
    }

    /// Both give the same answer, and stand at the same revision after it.
    fn check(&mut self, command: &Command) -> Result<(), TestCaseError> {
        let expected = self.model.answer(command);
        prop_assert_eq!(self.world.answer(command), expected, "{:?}", command);
        prop_assert_eq!(self.world.keyspace.revision(), Revision(self.model.revision));
        prop_assert_eq!(self.world.keyspace.compacted(), Revision(self.model.compacted));
        Ok(())
    }

    /// The revisions that can be read.
    fn readable(&self) -> std::ops::RangeInclusive<i64> {
        self.model.compacted.max(1)..=self.model.revision
    }

    /// Everything that a client can read is as the model has it.
    fn check_all(&mut self) -> Result<(), TestCaseError> {
        for revision in self.readable() {
            let everything = etcd_api::etcdserverpb::RangeRequest {
                key: "\0".into(),
                range_end: "\0".into(),
                revision,
                ..Default::default()
            };
            self.check(&Command::Range(everything))?;
        }
        (1..4).try_for_each(|id| {
            let request = etcd_api::etcdserverpb::LeaseTimeToLiveRequest { id, keys: true };
            self.check(&Command::TimeToLive(request))
        })
    }
}
