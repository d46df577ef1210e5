//! Leases: granted and given up. Keeping them alive is the [`keeper`](super::keeper)'s.

use std::time::Duration;

use etcd_api::ApiError;
use etcd_api::etcdserverpb::{LeaseGrantRequest, LeaseRevokeRequest};

use super::{Error, Store, error};
use crate::core::time::Boottime;
use crate::core::txn::LeaseId;

/// A lease that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    pub lease: LeaseId,
    /// When it was asked for: it holds at least its whole time from here.
    pub sent: Boottime,
}

// === impl Store ===

impl Store {
    /// [`Error::Unknown`] may leave a lease behind that nobody knows; it ends by itself.
    pub async fn grant(&self, ttl: Duration) -> Result<Granted, Error> {
        let sent = self.clock.boot();
        let whole_s = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
        let ttl = i64::try_from(whole_s).unwrap_or(i64::MAX);
        let request = LeaseGrantRequest { ttl, id: 0 };
        let response = error::answered(self.lease.clone().lease_grant(request)).await?;
        Ok(Granted { lease: LeaseId(response.id), sent })
    }

    /// Gives a lease up, and with it all keys under it. One that is gone is given up.
    pub async fn revoke(&self, lease: LeaseId) -> Result<(), Error> {
        let request = LeaseRevokeRequest { id: lease.0 };
        match error::answered(self.lease.clone().lease_revoke(request)).await {
            Ok(_) => Ok(()),
            Err(Error::Refused(status))
                if status.message() == ApiError::LeaseNotFound.message() =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
