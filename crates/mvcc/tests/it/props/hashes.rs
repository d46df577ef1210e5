//! The hash of a history up to a revision is the same before and after the compaction's sweep, in a
//! store that reached the same history another way, and differs when the history differs.

use etcd_api::etcdserverpb::HashKvRequest;
use mvcc::story::{Answer, Command};
use proptest::prelude::*;

use super::Pair;
use crate::{
    arbitrary::{self, Step},
    world::World,
};

proptest! {
    #[test]
    fn do_not_depend_on_the_sweep(life in arbitrary::life(), sweep in 0_usize..8) {
        let mut pair = Pair::after(&life)?;
        let before = hashes(&mut pair);
        pair.world.sweep(sweep);
        prop_assert_eq!(&hashes(&mut pair), &before);
        pair.world.sweep(usize::MAX);
        prop_assert_eq!(&hashes(&mut pair), &before);
    }

    #[test]
    fn do_not_depend_on_what_comes_later(life in arbitrary::life(), later in arbitrary::life()) {
        let mut pair = Pair::after(&life)?;
        let before = hashes(&mut pair);
        let (readable, compacted) = (pair.readable(), pair.model.compacted);
        let is_compaction = |step: &Step| matches!(step, Step::Do(Command::Compact(_)));
        let later: Vec<Step> = later.into_iter().filter(|step| !is_compaction(step)).collect();
        pair.live(&later)?;
        prop_assert_eq!(pair.model.compacted, compacted);
        let again: Vec<u32> = readable.map(|at| hash(&mut pair.world, at)).collect();
        prop_assert_eq!(again, before);
    }

    #[test]
    fn differ_with_the_history(life in arbitrary::life(), more in arbitrary::write()) {
        let mut pair = Pair::after(&life)?;
        let (revision, before) = (pair.model.revision, pair.model.revision);
        let hash_before = hash(&mut pair.world, before);
        pair.check(&more)?;
        if pair.model.revision > revision {
            prop_assert_ne!(hash(&mut pair.world, revision + 1), hash_before);
        }
    }
}

/// At every revision that can be read.
fn hashes(pair: &mut Pair) -> Vec<u32> {
    pair.readable().map(|at| hash(&mut pair.world, at)).collect()
}

fn hash(world: &mut World, revision: i64) -> u32 {
    match world.answer(&Command::HashKv(HashKvRequest { revision })) {
        Answer::HashKv(response) => response.hash,
        other => panic!("{other}"),
    }
}
