//! Counts are exact for any range at any revision, also in trees that are more than one node deep
//! and while a compaction is being swept.

use etcd_api::etcdserverpb::{CompactionRequest, DeleteRangeRequest, PutRequest, RangeRequest};
use mvcc::story::Command;
use proptest::{collection::vec, prelude::*};

use super::Pair;

/// Enough keys for leaves to be split, joined and covered as a whole.
const KEYS: u16 = 1500;

fn key(n: u16) -> bytes::Bytes {
    format!("{n:04}").into()
}

/// Every second key exists, each since a revision of its own.
fn filled() -> Pair {
    let mut pair = Pair::default();
    // In an order that fills nodes in the middle too.
    for n in (0..KEYS).map(|n| n.wrapping_mul(7) % KEYS).filter(|n| n % 2 == 0) {
        let put = Command::Put(PutRequest { key: key(n), ..Default::default() });
        assert_eq!(pair.world.answer(&put), pair.model.answer(&put));
    }
    pair
}

#[derive(Clone, Debug)]
enum Step {
    Put(u16),
    Delete(u16, u16),
    /// At so many revisions before the current one.
    Compact(i64),
    Sweep(usize),
    Count {
        from: u16,
        to: u16,
        ago: i64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let ago = || prop_oneof![Just(0_i64), 0_i64..1000];
    prop_oneof![
        2 => (0..KEYS).prop_map(Step::Put),
        1 => (0..KEYS, 0_u16..300).prop_map(|(from, len)| Step::Delete(from, from + len)),
        1 => ago().prop_map(Step::Compact),
        1 => (0_usize..400).prop_map(Step::Sweep),
        4 => (0..KEYS, 0..KEYS, ago()).prop_map(|(from, to, ago)| Step::Count { from, to, ago }),
    ]
}

impl Step {
    fn run(&self, pair: &mut Pair) -> Result<(), TestCaseError> {
        let current = pair.model.revision;
        match *self {
            Self::Sweep(keys_max) => {
                pair.world.sweep(keys_max);
                Ok(())
            }
            Self::Put(n) => {
                pair.check(&Command::Put(PutRequest { key: key(n), ..Default::default() }))
            }
            Self::Delete(from, to) => pair.check(&Command::DeleteRange(DeleteRangeRequest {
                key: key(from),
                range_end: key(to),
                prev_kv: false,
            })),
            Self::Compact(ago) => {
                let revision = (current - ago).max(1);
                pair.check(&Command::Compact(CompactionRequest { revision, physical: false }))
            }
            Self::Count { from, to, ago } => pair.check(&Command::Range(RangeRequest {
                key: key(from),
                range_end: key(to),
                revision: (current - ago).max(1),
                count_only: true,
                ..Default::default()
            })),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn of_many_keys(steps in vec(step(), 60)) {
        let mut pair = filled();
        for step in steps {
            step.run(&mut pair)?;
        }
    }
}
