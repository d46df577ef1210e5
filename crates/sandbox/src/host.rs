//! The daemon's side: opens the data directory, starts attempts and hears how they end.
//!
//! It runs no command itself. What must hold when the daemon is gone is the shim's work; what must
//! hold when a shim is gone is done here.

mod attempt;
mod driver;
mod error;
mod options;
mod recover;
mod simulate;
mod sweep;

use std::{fs::File, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::task::spawn_blocking;
use uuid::Uuid;

pub use attempt::{Attempt, Event, Stopper};
pub use error::Error;
pub use options::{Engine, NOTE_BYTES_MAX, Options, Order};

use self::sweep::{Sweep, Unwanted};
use crate::{
    AttemptId, Boottime, Deadline, Ended, Kind, Runtime, Site, fake,
    lifecycle::Drivers,
    log::Log,
    places::{self, Places, unless_missing},
    record,
    shim::nursery::Nursery,
};

/// A data directory in use, and the attempts that run from it. A cheap clone.
#[derive(Clone, Debug)]
pub struct Host {
    inner: Arc<Inner>,
    drivers: Drivers,
}

#[derive(Debug)]
struct Inner {
    places: Places,
    site: Site,
    machinery: Machinery,
    deadline: Deadline,
    unwanted: Mutex<Unwanted>,
    /// Held as long as the host or any of its attempts is.
    _lock: File,
}

/// What attempts run on, ready to be used.
#[derive(Debug)]
enum Machinery {
    Shim { kind: Kind, nursery: Nursery },
    Fake(fake::Machine),
}

/// What an earlier daemon left, all of its processes dead by now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Attempts that ended and were not [forgotten](Host::forget).
    pub ended: Vec<Leftover>,
    /// Attempts that were killed just now, or never began. There is no outcome: nobody knows what the
    /// command would have said.
    pub killed: Vec<AttemptId>,
    /// What was [remembered](Host::remember) last.
    pub remembered: Option<Vec<u8>>,
}

/// The end of an attempt that nobody may have heard of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    pub id: AttemptId,
    /// Of its [`Order`].
    pub note: Vec<u8>,
    pub ended: Ended,
}

// === impl Host ===

impl Host {
    /// Takes the directory, kills what an earlier daemon left there, waits until it is gone, and reads
    /// the results nobody may have heard of.
    ///
    /// # Errors
    ///
    /// If another process has the directory, it cannot be used, or something cannot be killed.
    pub async fn open(options: Options) -> Result<(Self, Leftovers), Error> {
        let opened = spawn_blocking(move || recover::open(&options)).await;
        let (inner, leftovers) = opened.map_err(Error::Aborted)??;
        Ok((Self { inner: Arc::new(inner), drivers: Drivers::default() }, leftovers))
    }

    /// Of the directory, for as long as it exists.
    #[must_use]
    pub fn host_id(&self) -> Uuid {
        self.inner.site.host_id
    }

    /// The moment by which everything must be dead unless it is moved on. It has passed until it is
    /// set for the first time, so nothing starts before.
    #[must_use]
    pub fn deadline(&self) -> &Deadline {
        &self.inner.deadline
    }

    /// Starts an attempt. All that goes wrong is told by its events.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    #[must_use]
    pub fn start(&self, order: Order) -> Attempt {
        let (attempt, line) = Attempt::new(order.id);
        match &self.inner.machinery {
            Machinery::Shim { .. } => {
                self.drivers.spawn(driver::drive(Arc::clone(&self.inner), order, line));
            }
            Machinery::Fake(machine) => {
                let (inner, machine) = (Arc::clone(&self.inner), machine.clone());
                self.drivers.spawn(simulate::drive(inner, machine, order, line));
            }
        }
        attempt
    }

    /// Gives up the result of an attempt that has ended: it is recorded elsewhere. The log stays. An
    /// attempt that is not known, or still runs, stays as it is.
    ///
    /// # Errors
    ///
    /// If the file cannot be removed.
    pub async fn forget(&self, id: AttemptId) -> Result<(), Error> {
        let path = self.inner.places.record(id);
        on_disk(move || {
            let read = unless_missing(record::has_ended(&path));
            let has_ended = read.map_err(|source| Error::Read { path: path.clone(), source })?;
            if has_ended != Some(true) {
                return Ok(());
            }
            std::fs::remove_file(&path).map_err(|source| Error::Remove { path, source })
        })
        .await
    }

    /// The log of an attempt, whether it has begun, runs or has ended.
    #[must_use]
    pub fn logs(&self, id: AttemptId) -> Log {
        Log::new(&self.inner.places, id)
    }

    /// Keeps a few bytes for the [`Leftovers`] of the next start, instead of those kept before. On disk
    /// when this returns.
    ///
    /// # Errors
    ///
    /// If they cannot be written.
    pub async fn remember(&self, bytes: Vec<u8>) -> Result<(), Error> {
        let path = self.inner.places.remembered();
        on_disk(move || {
            places::replace(&path, &bytes).map_err(|source| Error::Write { path, source })
        })
        .await
    }

    /// Removes the directories, logs and all, of attempts whose task is not wanted any more and was not
    /// for `age_min`, as far as this was asked. Returns how many it removed.
    ///
    /// # Errors
    ///
    /// If a directory cannot be read or removed.
    pub async fn sweep(
        &self,
        is_wanted: impl Fn(Uuid) -> bool + Send + 'static,
        age_min: Duration,
    ) -> Result<usize, Error> {
        let inner = Arc::clone(&self.inner);
        on_disk(move || {
            let by = Sweep { is_wanted, age_min, now: Boottime::now() };
            sweep::sweep(&inner.places, &mut inner.unwanted.lock(), by)
        })
        .await
    }

    /// Waits until every attempt has ended. It stops none: do that before, or set the deadline.
    pub async fn close(self) {
        self.drivers.finish().await;
        if let Machinery::Shim { kind, .. } = &self.inner.machinery
            && let Err(error) = kind.retire(&self.inner.site)
        {
            tracing::warn!(error = error.as_ref(), "what the machine keeps for this node stays");
        }
    }
}

// === impl Inner ===

impl Inner {
    /// Something that can clean up after an attempt, whoever ran it.
    fn runtime(&self) -> Box<dyn Runtime> {
        match &self.machinery {
            Machinery::Shim { kind, .. } => kind.open(&self.site),
            Machinery::Fake(machine) => machine.runtime(),
        }
    }
}

async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    spawn_blocking(work).await.map_err(Error::Aborted)?
}
