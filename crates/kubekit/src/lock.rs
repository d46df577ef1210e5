//! A lock per name, kept in Leases: many of them, each held for a few requests.
//!
//! Without contention a lock costs two requests, one to take and one to give back. Every request is
//! sent once and guarded by uid and resource version, so that of two contenders one wins. A holder
//! that stalls past its time loses the lock; what it still sends must be guarded by other means.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Client;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::lease::call::Leases;
use crate::lease::core::{InvalidTimings, Tenure, Timings, Verdict, Vigils};
use crate::lease::object::{self, Claim};
use crate::lease::{self, WallClock};

/// Refused locks whose holders are watched at once: one for each node of a large cluster.
const VIGILS_MAX: usize = 16_384;

#[derive(Clone, Debug)]
pub struct Options {
    /// Where the Leases are.
    pub namespace: String,
    /// Who takes the locks; no two processes have the same name.
    pub holder: String,
    /// Labels of the Leases, so that they can be told from others.
    pub labels: BTreeMap<String, String>,
    pub timings: Timings,
    pub clock: WallClock,
}

/// The locks of one namespace. Clones share what they know of other holders.
#[derive(Clone)]
pub struct Locks {
    inner: Arc<Inner>,
}

/// What came of asking for a lock.
#[derive(Debug)]
pub enum Attempt {
    Held(Lock),
    Refused(Refusal),
}

/// Somebody else has the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Unknown if the lock changed hands, or was given back, during the attempt.
    pub holder: Option<String>,
    /// When the holder will have been silent for too long, if it stays so.
    pub lapses_at: Option<Instant>,
}

/// A lock that is held. Dropped without [`release`](Lock::release), it lapses after its duration.
#[must_use = "a lock that is not released keeps others waiting"]
pub struct Lock {
    inner: Arc<Inner>,
    lease: Box<Lease>,
    tenure: Tenure,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot take the lock `{name}`")]
    Acquire {
        name: String,
        #[source]
        source: lease::Error,
    },
    #[error("cannot renew the lock `{name}`")]
    Renew {
        name: String,
        #[source]
        source: lease::Error,
    },
    #[error("the lock `{name}` is no longer ours")]
    Lost { name: String },
    #[error("cannot release the lock `{name}`; it lapses by itself")]
    Release {
        name: String,
        #[source]
        source: lease::Error,
    },
}

struct Inner {
    leases: Leases,
    claim: Claim,
    timings: Timings,
    clock: WallClock,
    vigils: Mutex<Vigils>,
}

// === impl Error ===

impl Error {
    /// The request that did not succeed; nothing if the lock was simply lost.
    #[must_use]
    pub fn request(&self) -> Option<&lease::Error> {
        match self {
            Self::Acquire { source, .. }
            | Self::Renew { source, .. }
            | Self::Release { source, .. } => Some(source),
            Self::Lost { .. } => None,
        }
    }
}

// === impl Locks ===

impl Locks {
    /// The client must not repeat requests: [`Repeats::Never`](crate::client::Repeats::Never).
    pub fn new(client: Client, options: Options) -> Result<Self, InvalidTimings> {
        let Options { namespace, holder, labels, timings, clock } = options;
        timings.validate()?;
        let inner = Inner {
            leases: Leases::new(client, &namespace, timings.request_timeout),
            claim: Claim { holder, duration: timings.duration, labels },
            timings,
            clock,
            vigils: Mutex::new(Vigils::new(timings.duration, VIGILS_MAX)),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Asks once. A holder that was found unchanged for a whole duration, by attempts of this
    /// process, is replaced. After an error the lock may be ours without our knowing: then it is
    /// refused, even to us, until it lapses.
    pub async fn acquire(&self, name: &str) -> Result<Attempt, Error> {
        let attempt = self.inner.clone().acquire(name).await;
        attempt.map_err(|source| Error::Acquire { name: name.to_owned(), source })
    }
}

// === impl Inner ===

impl Inner {
    async fn acquire(self: Arc<Self>, name: &str) -> Result<Attempt, lease::Error> {
        let sent = Instant::now();
        let wanted = self.claim.create(name, (self.clock)());
        if let Some(lease) = self.leases.create(&wanted).await? {
            return Ok(self.held(lease, sent));
        }
        let Some(found) = self.leases.read(name).await? else {
            self.vigils.lock().forget(name);
            return Ok(Attempt::Refused(Refusal::unknown()));
        };
        let seen = object::sighting(&found);
        let holder = seen.holder.clone();
        let verdict = self.vigils.lock().on_seen(name, seen, Instant::now().into_std());
        match verdict {
            Verdict::TakeOver => self.take_over(found).await,
            Verdict::Wait { until } => {
                Ok(Attempt::Refused(Refusal { holder, lapses_at: Some(until.into()) }))
            }
        }
    }

    async fn take_over(self: Arc<Self>, found: Lease) -> Result<Attempt, lease::Error> {
        let sent = Instant::now();
        let wanted = self.claim.take_over(found, (self.clock)());
        match self.leases.replace(&wanted).await? {
            Some(lease) => Ok(self.held(lease, sent)),
            None => Ok(Attempt::Refused(Refusal::unknown())),
        }
    }

    fn held(self: Arc<Self>, lease: Lease, sent: Instant) -> Attempt {
        let tenure = Tenure::begin(self.timings, sent.into_std());
        let lock = Lock { inner: self, lease: Box::new(lease), tenure };
        lock.inner.vigils.lock().forget(lock.name());
        Attempt::Held(lock)
    }
}

// === impl Refusal ===

impl Refusal {
    fn unknown() -> Self {
        Self { holder: None, lapses_at: None }
    }
}

// === impl Lock ===

impl Lock {
    #[must_use]
    pub fn name(&self) -> &str {
        self.lease.metadata.name.as_deref().expect("the server names every Lease")
    }

    /// Whether a write may be started now.
    #[must_use]
    pub fn may_write(&self) -> bool {
        self.tenure.may_write(Instant::now().into_std())
    }

    /// The moment from which no write may be started, unless the lock is renewed before.
    #[must_use]
    pub fn may_write_until(&self) -> Instant {
        self.tenure.may_write_until().into()
    }

    /// Renews the lock if that is due; to be called between the steps of long work. After an error
    /// nothing more may be concluded than that the lock lapses.
    pub async fn keep(&mut self) -> Result<(), Error> {
        let sent = Instant::now();
        if !self.tenure.is_renewal_due(sent.into_std()) {
            return Ok(());
        }
        let wanted = object::renew((*self.lease).clone(), (self.inner.clock)());
        let renewed = self.inner.leases.replace(&wanted).await;
        match renewed.map_err(|source| Error::Renew { name: self.name().to_owned(), source })? {
            Some(lease) => {
                *self.lease = lease;
                self.tenure.on_renewed(sent.into_std());
                Ok(())
            }
            None => Err(Error::Lost { name: self.name().to_owned() }),
        }
    }

    /// Gives the lock back. One that somebody took over in the meantime stays theirs.
    pub async fn release(self) -> Result<(), Error> {
        match self.inner.leases.delete(&self.lease).await {
            Ok(is_deleted) => {
                if !is_deleted {
                    tracing::debug!(lock = self.name(), "released a lock already taken over");
                }
                Ok(())
            }
            Err(source) => Err(Error::Release { name: self.name().to_owned(), source }),
        }
    }
}

impl std::fmt::Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lock").field("name", &self.name()).finish_non_exhaustive()
    }
}
