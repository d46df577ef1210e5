//! Who calls, and whether there is room for one more who stays.

use std::sync::Arc;

use ::store::http::PeerIdentity;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Request;

use super::Service;
use super::error::Error;

/// Who calls over the node's own socket, or where `--insecure` lets everybody in.
const LOCAL: &str = "local";

// === impl Service ===

impl Service {
    /// The name to write beside what the caller does.
    pub(super) fn admit<T>(&self, request: &Request<T>) -> Result<Arc<str>, Error> {
        match request.extensions().get::<PeerIdentity>() {
            Some(identity) => Ok(Arc::clone(&identity.common_name)),
            None if self.needs_certificate => Err(Error::NoCertificate),
            None => Ok(LOCAL.into()),
        }
    }
}

/// A place for one who stays; it is free again when the place is dropped.
pub(super) fn place(
    places: &Arc<Semaphore>,
    what: &'static str,
    max: usize,
) -> Result<OwnedSemaphorePermit, Error> {
    Arc::clone(places).try_acquire_owned().or(Err(Error::Busy { what, max }))
}
