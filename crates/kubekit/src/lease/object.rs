//! The Lease as the API server knows it: what is written into one, and what is read from it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};

use super::core::Sighting;

/// What whoever takes a Lease writes into it.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) holder: String,
    pub(crate) duration: Duration,
    /// Labels of Leases created with this claim.
    pub(crate) labels: BTreeMap<String, String>,
}

// === impl Claim ===

impl Claim {
    /// A Lease that does not exist yet.
    pub(crate) fn create(&self, name: &str, now: Timestamp) -> Lease {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(self.labels.clone()).filter(|labels| !labels.is_empty()),
            ..ObjectMeta::default()
        };
        Lease { metadata, spec: Some(self.spec(LeaseSpec::default(), now, 0)) }
    }

    /// The same Lease, held by the claimant. It keeps uid and resource version, so that the server
    /// refuses it if somebody wrote or replaced the Lease in between.
    pub(crate) fn take_over(&self, mut lease: Lease, now: Timestamp) -> Lease {
        let spec = lease.spec.take().unwrap_or_default();
        let transitions = spec.lease_transitions.unwrap_or(0).saturating_add(1);
        lease.spec = Some(self.spec(spec, now, transitions));
        lease
    }

    fn spec(&self, before: LeaseSpec, now: Timestamp, transitions: i32) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.holder.clone()),
            lease_duration_seconds: Some(whole_seconds(self.duration)),
            acquire_time: Some(MicroTime(now)),
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(transitions),
            ..before
        }
    }
}

/// The same Lease with a new sign of life.
pub(crate) fn renew(mut lease: Lease, now: Timestamp) -> Lease {
    lease.spec.get_or_insert_default().renew_time = Some(MicroTime(now));
    lease
}

/// The same Lease, held by nobody.
pub(crate) fn give_back(mut lease: Lease, now: Timestamp) -> Lease {
    lease.spec.get_or_insert_default().holder_identity = None;
    renew(lease, now)
}

pub(crate) fn sighting(lease: &Lease) -> Sighting {
    let spec = lease.spec.as_ref();
    let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
    Sighting {
        holder: holder(lease).map(ToOwned::to_owned),
        renew_time: spec.and_then(|spec| spec.renew_time.as_ref()).map(|time| time.0),
        resource_version: lease.metadata.resource_version.clone().unwrap_or_default(),
        stated_duration: seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .map(Duration::from_secs),
    }
}

/// Who holds it. Some write an empty name when they give a Lease back.
pub(crate) fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
    Some(holder).filter(|holder| !holder.is_empty())
}

/// Leases count whole seconds, at least one; rounded up, lest others take over too early.
fn whole_seconds(duration: Duration) -> i32 {
    let seconds = duration.as_millis().div_ceil(1000).max(1);
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn claim(holder: &str) -> Claim {
        let duration = Duration::from_secs(10);
        Claim { holder: holder.to_owned(), duration, labels: BTreeMap::new() }
    }

    fn stored(holder: &str) -> Lease {
        let mut lease = claim(holder).create("worker-7", at(100));
        lease.metadata.uid = Some("uid-1".to_owned());
        lease.metadata.resource_version = Some("41".to_owned());
        lease
    }

    #[test]
    fn a_takeover_keeps_what_guards_it() {
        let taken = claim("b").take_over(stored("a"), at(120));
        assert_eq!(taken.metadata, stored("a").metadata);
        let spec = taken.spec.unwrap();
        assert_eq!(spec.holder_identity.as_deref(), Some("b"));
        assert_eq!(spec.lease_transitions, Some(1));
        assert_eq!(spec.acquire_time, Some(MicroTime(at(120))));
    }

    #[test]
    fn a_renewal_changes_the_sign_of_life_alone() {
        let before = stored("a");
        let mut after = renew(before.clone(), at(103));
        assert_ne!(after, before);
        after.spec.as_mut().unwrap().renew_time = Some(MicroTime(at(100)));
        assert_eq!(after, before);
    }

    #[test]
    fn nobody_holds_what_was_given_back() {
        assert_eq!(holder(&give_back(stored("a"), at(103))), None);
        assert_eq!(holder(&stored("")), None);
        assert_eq!(holder(&Lease::default()), None);
        assert_eq!(holder(&stored("a")), Some("a"));
    }

    #[test]
    fn seconds_are_rounded_up() {
        for (millis, seconds) in [(0, 1), (1, 1), (1000, 1), (1001, 2), (10_000, 10)] {
            assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds, "{millis}");
        }
    }
}
