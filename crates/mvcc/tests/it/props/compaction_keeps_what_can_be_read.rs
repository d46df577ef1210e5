//! A compaction, swept in any number of steps, keeps exactly what can still be read, names each dead
//! change once, and takes nothing from views that were taken before.

use etcd_api::etcdserverpb::RangeRequest;
use mvcc::{View, story::Command};
use proptest::{collection::vec, prelude::*};

use super::Pair;
use crate::{arbitrary, model::Model, world::Memory};

/// One compaction: at which share of the revisions that are left, and how it is swept.
fn compaction() -> impl Strategy<Value = (f64, Vec<usize>)> {
    (0.0..=1.0, vec(0_usize..4, 0..6))
}

proptest! {
    #[test]
    fn exactly(
        rounds in vec((arbitrary::life(), compaction()), 1..4),
    ) {
        let mut pair = Pair::default();
        for (life, (share, sweeps)) in rounds {
            pair.live(&life)?;
            compact(&mut pair, share)?;
            for keys_max in sweeps {
                pair.world.sweep(keys_max);
                pair.check_all()?;
            }
            prop_assert!(pair.world.sweep(usize::MAX).is_done);
            let kept: Vec<_> = pair.world.memory.kept.keys().copied().collect();
            let expected: Vec<_> = pair.model.kept_after(pair.model.compacted).into_iter().collect();
            prop_assert_eq!(kept, expected);
            pair.check_all()?;
        }
    }

    #[test]
    fn older_views_stay_readable(
        life in arbitrary::life(),
        (share, sweeps) in compaction(),
        later in arbitrary::life(),
    ) {
        let mut pair = Pair::after(&life)?;
        let view = pair.world.keyspace.view();
        let old = pair.model.clone();
        // Dead changes go when the last view that can read them has gone; this one keeps all.
        let mut kept = Memory::default();
        kept.kept.clone_from(&pair.world.memory.kept);
        compact(&mut pair, share)?;
        for keys_max in sweeps {
            pair.world.sweep(keys_max);
            check_view(&view, &old, &kept)?;
        }
        pair.live(&later)?;
        check_view(&view, &old, &kept)?;
    }
}

/// Compacts at a share of what can be read, if there is something above the compacted revision.
fn compact(pair: &mut Pair, share: f64) -> Result<(), TestCaseError> {
    let (compacted, current) = (pair.model.compacted.max(0), pair.model.revision);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "small numbers"
    )]
    let revision = compacted + 1 + ((current - compacted) as f64 * share) as i64;
    let request = etcd_api::etcdserverpb::CompactionRequest { revision, physical: false };
    pair.check(&Command::Compact(request))
}

/// The view answers as the model of its time.
fn check_view(view: &View, model: &Model, kept: &Memory) -> Result<(), TestCaseError> {
    for revision in model.compacted.max(1)..=model.revision {
        let (key, range_end) = (bytes::Bytes::from_static(b"\0"), bytes::Bytes::from_static(b"\0"));
        let request = RangeRequest { key, range_end, revision, ..Default::default() };
        let response = view
            .range(&request, kept)
            .map_err(|error| TestCaseError::fail(format!("{error:?}")))?;
        let expected: Vec<_> = model.state_at(revision).into_values().collect();
        prop_assert_eq!(response.kvs, expected);
    }
    Ok(())
}
