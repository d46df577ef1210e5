//! Which leases exist and which keys hang on each. Deadlines are not here: they are memory of the
//! process that watches the clock, this is what survives it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::{Error, key::Key};

/// The name of a lease. 0 on a key means that it has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub i64);

/// All leases.
#[derive(Debug, Default)]
pub struct Leases {
    leases: BTreeMap<LeaseId, Lease>,
}

/// One lease: how long it was granted for, and the keys that end with it.
#[derive(Debug)]
pub struct Lease {
    pub ttl_s: i64,
    keys: BTreeSet<Key>,
}

// === impl LeaseId ===

impl LeaseId {
    pub const NONE: Self = Self(0);
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Leases ===

impl Leases {
    pub fn grant(&mut self, id: LeaseId, ttl_s: i64) -> Result<(), Error> {
        if self.leases.contains_key(&id) {
            return Err(Error::LeaseExists(id));
        }
        self.leases.insert(id, Lease { ttl_s, keys: BTreeSet::new() });
        Ok(())
    }

    #[must_use]
    pub fn get(&self, id: LeaseId) -> Option<&Lease> {
        self.leases.get(&id)
    }

    /// In order of id.
    pub fn iter(&self) -> impl Iterator<Item = (LeaseId, &Lease)> {
        self.leases.iter().map(|(id, lease)| (*id, lease))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    pub(crate) fn remove(&mut self, id: LeaseId) {
        self.leases.remove(&id);
    }

    /// Moves `key` from one lease to another; either may be none or unknown.
    pub(crate) fn reattach(&mut self, key: &Key, from: LeaseId, to: LeaseId) {
        if from == to {
            return;
        }
        if let Some(lease) = self.leases.get_mut(&from) {
            lease.keys.remove(key);
        }
        if let Some(lease) = self.leases.get_mut(&to) {
            lease.keys.insert(key.clone());
        }
    }
}

impl FromIterator<(LeaseId, i64)> for Leases {
    /// Leases without keys, by their time in seconds.
    fn from_iter<I: IntoIterator<Item = (LeaseId, i64)>>(leases: I) -> Self {
        let lease = |(id, ttl_s)| (id, Lease { ttl_s, keys: BTreeSet::new() });
        Self { leases: leases.into_iter().map(lease).collect() }
    }
}

// === impl Lease ===

impl Lease {
    /// The keys attached to the lease, in order.
    pub fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.iter().map(|key| &**key)
    }
}
