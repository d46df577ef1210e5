//! One request about a Lease. Owns its time limit and the reading of refusals; never sends a
//! request twice, and never one without a guard.
//!
//! The client these requests go through must not repeat them either: see
//! [`Repeats::Never`](crate::client::Repeats::Never).

use std::fmt;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, PostParams, Preconditions};
use kube::core::Status;
use kube::{Api, Client};

use crate::failure::Failure;

/// Why a request about a Lease did not succeed. Unless it was refused, it may have been carried out
/// all the same.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("to {request} Lease `{lease}` took longer than {timeout:?}")]
    Timeout { request: Request, lease: String, timeout: Duration },
    #[error("cannot {request} Lease `{lease}`")]
    Failed {
        request: Request,
        lease: String,
        #[source]
        source: Failure,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Create,
    Read,
    Replace,
    Delete,
}

/// The Leases of one namespace.
#[derive(Clone)]
pub(crate) struct Leases {
    api: Api<Lease>,
    timeout: Duration,
}

// === impl Error ===

impl Error {
    /// What went wrong; nothing if there was no answer in time.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Timeout { .. } => None,
            Self::Failed { source, .. } => Some(source),
        }
    }
}

// === impl Leases ===

impl Leases {
    pub(crate) fn new(client: Client, namespace: &str, timeout: Duration) -> Self {
        Self { api: Api::namespaced(client, namespace), timeout }
    }

    /// The created Lease, or nothing if one of that name exists.
    pub(crate) async fn create(&self, lease: &Lease) -> Result<Option<Lease>, Error> {
        let (name, params) = (name(lease), PostParams::default());
        let answer = self.answer(Request::Create, name, self.api.create(&params, lease)).await?;
        self.unless(Request::Create, name, answer, Status::is_already_exists)
    }

    /// A quorum read: what is there now, not what some cache remembers.
    pub(crate) async fn read(&self, name: &str) -> Result<Option<Lease>, Error> {
        let answer = self.answer(Request::Read, name, self.api.get(name)).await?;
        self.unless(Request::Read, name, answer, Status::is_not_found)
    }

    /// The written Lease, or nothing if it was written or deleted since `lease` was read.
    pub(crate) async fn replace(&self, lease: &Lease) -> Result<Option<Lease>, Error> {
        debug_assert!(is_guarded(lease), "an unguarded write lets two contenders win");
        let (name, params) = (name(lease), PostParams::default());
        let replaced = self.api.replace(name, &params, lease);
        let answer = self.answer(Request::Replace, name, replaced).await?;
        self.unless(Request::Replace, name, answer, |status| {
            status.is_conflict() || status.is_not_found()
        })
    }

    /// Whether it was this very state of the Lease that was deleted.
    pub(crate) async fn delete(&self, lease: &Lease) -> Result<bool, Error> {
        debug_assert!(is_guarded(lease), "an unguarded delete removes another's Lease");
        let guard = Preconditions {
            uid: lease.metadata.uid.clone(),
            resource_version: lease.metadata.resource_version.clone(),
        };
        let (name, params) = (name(lease), DeleteParams::default().preconditions(guard));
        let answer = self.answer(Request::Delete, name, self.api.delete(name, &params)).await?;
        let deleted = self.unless(Request::Delete, name, answer, |status| {
            status.is_conflict() || status.is_not_found()
        })?;
        Ok(deleted.is_some())
    }

    async fn answer<T>(
        &self,
        request: Request,
        lease: &str,
        sent: impl Future<Output = kube::Result<T>>,
    ) -> Result<kube::Result<T>, Error> {
        let timeout = self.timeout;
        tokio::time::timeout(timeout, sent).await.map_err(|_elapsed| Error::Timeout {
            request,
            lease: lease.to_owned(),
            timeout,
        })
    }

    /// An expected refusal is an answer too.
    fn unless<T>(
        &self,
        request: Request,
        lease: &str,
        answer: kube::Result<T>,
        is_expected: impl Fn(&Status) -> bool,
    ) -> Result<Option<T>, Error> {
        match answer {
            Ok(value) => Ok(Some(value)),
            Err(kube::Error::Api(status)) if is_expected(&status) => Ok(None),
            Err(error) => {
                Err(Error::Failed { request, lease: lease.to_owned(), source: error.into() })
            }
        }
    }
}

// === impl Request ===

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Read => "read",
            Self::Replace => "replace",
            Self::Delete => "delete",
        })
    }
}

/// Leases may be created by a PUT: without the uid, one that was deleted would come back.
fn is_guarded(lease: &Lease) -> bool {
    lease.metadata.uid.is_some() && lease.metadata.resource_version.is_some()
}

fn name(lease: &Lease) -> &str {
    lease.metadata.name.as_deref().expect("Leases are read or created by name")
}
