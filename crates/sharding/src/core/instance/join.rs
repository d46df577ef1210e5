//! When an instance may take the Lease that it finds.

use std::time::Duration;

use super::Identity;
use crate::core::lease::{Holder, Lease};

/// A Lease of our name, and what we saw of it.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    pub lease: &'a Lease,
    /// The ring it is labelled with.
    pub ring: Option<&'a str>,
    /// For how long we have seen holder and renewal unchanged.
    pub unchanged_for: Duration,
    /// Whether its holder has renewed it before our eyes.
    pub is_renewed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    Create,
    Take,
    /// Look again; after this long, if nothing changes, it may be taken.
    Wait(Duration),
    Fail(JoinError),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    #[error("the Lease belongs to ring {ring:?}; give the instance another id")]
    LeaseOfOtherRing { ring: String },
    #[error("another process with the same id is alive; ids must be unique in a ring")]
    IdentityInUse,
}

/// What to do about the Lease of our name.
#[must_use]
pub fn start(me: &Identity, found: Option<&Found<'_>>) -> Start {
    let Some(found) = found else { return Start::Create };
    if let Some(ring) = found.ring.filter(|ring| *ring != me.names.ring().as_str()) {
        return Start::Fail(JoinError::LeaseOfOtherRing { ring: ring.to_owned() });
    }
    let lease = found.lease;
    match lease.held_by(me.names.sharder_holder()) {
        Holder::Nobody => Start::Take,
        // The sharder may be moving our objects for as long as it says; a stranger likewise.
        Holder::Sharder | Holder::Stranger => after(lease.stated_duration(), found.unchanged_for),
        Holder::Instance if is_our_own_past(me, lease) => Start::Take,
        Holder::Instance if found.is_renewed => Start::Fail(JoinError::IdentityInUse),
        Holder::Instance => after(lease.stated_duration(), found.unchanged_for),
    }
}

/// Whether whoever held it under our name has certainly ended.
fn is_our_own_past(me: &Identity, lease: &Lease) -> bool {
    let marks = &lease.marks;
    let is_same_container = me.pod.is_some() && marks.pod == me.pod;
    // The same incarnation: our own write, whose answer was lost.
    let is_self = marks.incarnation.as_deref() == Some(me.incarnation.as_str());
    is_same_container || is_self || marks.hold.is_some()
}

fn after(limit: Duration, unchanged_for: Duration) -> Start {
    if unchanged_for >= limit { Start::Take } else { Start::Wait(limit - unchanged_for) }
}
