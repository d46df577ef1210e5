//! A keyspace that is built anew from what was kept equals the one that wrote it: in all that can be
//! read, in its leases, and in which changes later compactions name as dead.

use mvcc::{Keyspace, Revision};
use proptest::prelude::*;

use super::Pair;
use crate::{
    arbitrary::{self, Step},
    world::{Memory, World},
};

proptest! {
    #[test]
    fn of_what_was_kept(life in arbitrary::life(), sweep in 0_usize..8, later in arbitrary::life()) {
        let mut pair = Pair::after(&life)?;
        pair.world.sweep(sweep);
        let mut rebuilt = Pair { world: rebuilt(&pair.world), model: pair.model.clone() };
        rebuilt.check_all()?;

        // Both live on, each beside a model of its own.
        let later: Vec<Step> = later.into_iter().chain([Step::Sweep(usize::MAX)]).collect();
        pair.live(&later)?;
        rebuilt.live(&later)?;
        rebuilt.world.sweep(usize::MAX);
        prop_assert_eq!(rebuilt.world.memory.kept, pair.world.memory.kept);
    }
}

/// What a restart does: grant the leases that are left, replay the changes without their values,
/// go to the durable revision, compact.
fn rebuilt(world: &World) -> World {
    let mut keyspace = Keyspace::new();
    for (id, lease) in world.keyspace.leases().iter() {
        keyspace.grant(id, lease.ttl_s).expect("ids are unique");
    }
    for (position, kv) in &world.memory.kept {
        keyspace.replay(*position, &kv.without_value());
    }
    keyspace.replay_end(world.keyspace.revision());
    if world.keyspace.compacted() > Revision::NEVER_COMPACTED {
        keyspace.compact(world.keyspace.compacted()).expect("it could be compacted before");
    }
    let mut memory = Memory::default();
    memory.kept.clone_from(&world.memory.kept);
    World { keyspace, memory }
}
