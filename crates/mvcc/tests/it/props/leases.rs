//! A lease holds exactly the keys whose newest version names it, through puts, deletes, transactions
//! and refusals, and takes them along when it is revoked.

use etcd_api::etcdserverpb::{LeaseGrantRequest, LeaseRevokeRequest, LeaseTimeToLiveRequest};
use mvcc::story::Command;
use proptest::{collection::vec, prelude::*};

use super::Pair;
use crate::arbitrary;

proptest! {
    #[test]
    fn hold_the_keys_that_name_them(writes in vec(arbitrary::write(), 0..30)) {
        let mut pair = Pair::default();
        for id in 1..4 {
            pair.check(&Command::Grant(LeaseGrantRequest { id, ttl: 60 }))?;
        }
        for write in writes {
            pair.check(&write)?;
            check_leases(&mut pair)?;
        }
        for id in 1..4 {
            pair.check(&Command::Revoke(LeaseRevokeRequest { id }))?;
            check_leases(&mut pair)?;
        }
        prop_assert!(pair.world.keyspace.leases().is_empty());
    }
}

fn check_leases(pair: &mut Pair) -> Result<(), TestCaseError> {
    (1..4).try_for_each(|id| {
        pair.check(&Command::TimeToLive(LeaseTimeToLiveRequest { id, keys: true }))
    })
}
