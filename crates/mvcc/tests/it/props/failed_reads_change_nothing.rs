//! When a change cannot be read back in the middle of a request, the keyspace is exactly as before:
//! in what can be read, in its leases, and in what later compactions find.

use etcd_api::etcdserverpb::{CompactionRequest, RangeRequest, RequestOp, request_op::Request};
use mvcc::story::Command;
use proptest::{collection::vec, prelude::*};

use super::Pair;
use crate::{arbitrary, world::Refusal};

/// More reads than these requests make are never needed to reach their last one.
const READS_MAX: usize = 12;

/// Any write, or a transaction that reads everything once it has written: only then is there
/// something to take back.
fn attempt() -> impl Strategy<Value = Command> {
    let read_everything = || RequestOp {
        request: Some(Request::RequestRange(RangeRequest {
            key: "\0".into(),
            range_end: "\0".into(),
            ..Default::default()
        })),
    };
    let write_and_read = arbitrary::valid_txn().prop_map(move |mut txn| {
        txn.success.push(read_everything());
        txn.failure.push(read_everything());
        Command::Txn(txn)
    });
    prop_oneof![1 => arbitrary::write(), 3 => write_and_read]
}

proptest! {
    #[test]
    fn at_any_read(
        life in arbitrary::life(),
        attempts in vec((attempt(), 0..READS_MAX), 1..10),
    ) {
        let mut pair = Pair::after(&life)?;
        // Does the same, and no read ever fails.
        let mut twin = Pair::after(&life)?;
        for (command, reads) in attempts {
            fail_then_succeed(&mut pair, &command, reads)?;
            twin.check(&command)?;
        }
        check_compaction(&mut pair, &mut twin)?;
    }
}

/// Tries a command that can read so many changes and no more. If that was too little, all is as
/// before, and the command succeeds when it is tried again.
fn fail_then_succeed(
    pair: &mut Pair,
    command: &Command,
    reads: usize,
) -> Result<(), TestCaseError> {
    pair.world.memory.fail_after(Some(reads));
    let attempt = pair.world.try_answer(command);
    pair.world.memory.fail_after(None);
    match attempt {
        Err(Refusal::Read) => {
            pair.check_all()?;
            pair.check(command)
        }
        Err(Refusal::Api(error)) => {
            let expected = pair.model.answer(command).to_string();
            prop_assert_eq!(format!("error: {error}\n"), expected);
            Ok(())
        }
        Ok(answer) => {
            prop_assert_eq!(answer, pair.model.answer(command));
            Ok(())
        }
    }
}

/// A change that was taken back leaves no trace in what is known to be superseded: sweeps find the
/// same, key by key.
fn check_compaction(pair: &mut Pair, twin: &mut Pair) -> Result<(), TestCaseError> {
    let request = CompactionRequest { revision: pair.model.revision, physical: false };
    pair.check(&Command::Compact(request))?;
    twin.check(&Command::Compact(request))?;
    loop {
        let sweep = pair.world.sweep(1);
        prop_assert_eq!(&sweep, &twin.world.sweep(1));
        if sweep.is_done {
            break;
        }
    }
    let kept: Vec<_> = pair.world.memory.kept.keys().copied().collect();
    let expected: Vec<_> = pair.model.kept_after(pair.model.compacted).into_iter().collect();
    prop_assert_eq!(kept, expected);
    pair.check_all()
}
