//! Any life of a keyspace beside the naive model of it: every answer is the model's, refusals
//! included, and a refused transaction changes nothing. The check of a transaction's shape agrees
//! with one that compares all pairs of its writes.
#![no_main]

mod life;
#[expect(dead_code, reason = "the properties of `mvcc` ask more of its oracle")]
#[path = "../../crates/mvcc/tests/it"]
mod oracle {
    //! The keyspace with the least around it, and the naive model, as `mvcc` tests itself with them.
    pub(crate) mod model;
    pub(crate) mod world;
}

use etcd_api::etcdserverpb::{RangeRequest, TxnRequest};
use libfuzzer_sys::fuzz_target;
use mvcc::check::{self, RequestError};
use mvcc::{Revision, story::Command};

use self::life::{Life, Step};
use self::oracle::model::{Model, duplicates};
use self::oracle::world::{TXN_OPS_MAX, World};

fuzz_target!(|life: Life| {
    let (mut world, mut model) = (World::default(), Model::default());
    for step in life.steps() {
        match step {
            Step::Sweep(keys_max) => drop(world.sweep(keys_max)),
            Step::Do(Command::Txn(txn)) if !is_well_formed(&txn) => {}
            Step::Do(command) => compare(&mut world, &mut model, &command),
        }
    }
    for revision in model.compacted.max(1)..=model.revision {
        compare(&mut world, &mut model, &everything_at(revision));
    }
});

fn compare(world: &mut World, model: &mut Model, command: &Command) {
    let expected = model.answer(command);
    assert_eq!(world.answer(command), expected, "{command:?}");
    assert_eq!(world.keyspace.revision(), Revision(model.revision));
    assert_eq!(world.keyspace.compacted(), Revision(model.compacted));
}

fn is_well_formed(txn: &TxnRequest) -> bool {
    let verdict = check::txn(txn, TXN_OPS_MAX);
    if !matches!(verdict, Err(RequestError::EmptyOp)) {
        let is_duplicate = verdict == Err(RequestError::DuplicateKey);
        assert_eq!(is_duplicate, duplicates::are_in(txn), "{txn:?}");
    }
    verdict.is_ok()
}

fn everything_at(revision: i64) -> Command {
    let (key, range_end) = ("\0".into(), "\0".into());
    Command::Range(RangeRequest { key, range_end, revision, ..Default::default() })
}
