//! Leases. All that stay live longer than a run; the shortest are revoked at once.

use etcd_api::etcdserverpb as pb;

use super::super::step::{CHOSEN_LEASE, Step};
use super::Generator;

/// Far longer than a run, so that no key disappears at a moment of the server's choosing.
const LONG_TTL: i64 = 100_000;

/// What etcd refuses: more than nine thousand million seconds.
const TOO_LONG_TTL: i64 = 9_000_000_001;

/// A number that is never granted.
const UNKNOWN_LEASE: i64 = 777;

// === impl Generator ===

impl Generator {
    pub(super) fn lease_step(&mut self) -> Step {
        match self.below(12) {
            0..4 => self.grant_step(),
            4 => self.short_grant_step(),
            5 => self.chosen_grant_step(),
            6..8 => self.revoke_step(),
            8 => Step::KeepAlive(pb::LeaseKeepAliveRequest { id: self.lease_or_chosen() }),
            9 => Step::Leases,
            _ => {
                let keys = self.one_in(2);
                let id = self.lease_or_chosen();
                Step::TimeToLive(pb::LeaseTimeToLiveRequest { id, keys })
            }
        }
    }

    /// The id of a lease that lives, or sometimes of one that does not.
    pub(super) fn lease(&mut self) -> i64 {
        if self.leases.is_empty() || self.one_in(12) {
            return UNKNOWN_LEASE;
        }
        let leases = self.leases.clone();
        self.pick(&leases)
    }

    fn lease_or_chosen(&mut self) -> i64 {
        if self.chosen_leases > 0 && self.one_in(3) {
            let at = self.rng_below_i64(self.chosen_leases);
            return CHOSEN_LEASE - at;
        }
        self.lease()
    }

    fn rng_below_i64(&mut self, bound: i64) -> i64 {
        let bound = usize::try_from(bound).expect("a count is not negative");
        self.below(bound) as i64
    }

    fn grant_step(&mut self) -> Step {
        if self.one_in(8) {
            let id = self.lease();
            let ttl = if self.one_in(2) { TOO_LONG_TTL } else { LONG_TTL };
            // An unknown id would be granted; only existing ones are asked for again.
            return match id {
                UNKNOWN_LEASE => Step::Grant(pb::LeaseGrantRequest { id, ttl: TOO_LONG_TTL }),
                id => Step::Grant(pb::LeaseGrantRequest { id, ttl }),
            };
        }
        self.next_lease += 1;
        self.leases.push(self.next_lease);
        let ttl = LONG_TTL + self.below(1000) as i64;
        Step::Grant(pb::LeaseGrantRequest { id: self.next_lease, ttl })
    }

    /// What is granted for less than the minimum, or for a negative time, lives two seconds.
    fn short_grant_step(&mut self) -> Step {
        self.next_lease += 1;
        let id = self.next_lease;
        self.planned.push_back(Step::Revoke(pb::LeaseRevokeRequest { id }));
        let ttl = self.pick(&[0, 1, -7]);
        Step::Grant(pb::LeaseGrantRequest { id, ttl })
    }

    /// Never attached to a key: hashes of the data would differ with its number.
    fn chosen_grant_step(&mut self) -> Step {
        self.chosen_leases += 1;
        Step::Grant(pb::LeaseGrantRequest { id: 0, ttl: LONG_TTL })
    }

    fn revoke_step(&mut self) -> Step {
        if self.chosen_leases > 0 && self.one_in(4) {
            let at = self.rng_below_i64(self.chosen_leases);
            return Step::Revoke(pb::LeaseRevokeRequest { id: CHOSEN_LEASE - at });
        }
        let id = self.lease();
        self.leases.retain(|lease| *lease != id);
        self.holders.retain(|holder| holder.lease != id);
        Step::Revoke(pb::LeaseRevokeRequest { id })
    }
}
