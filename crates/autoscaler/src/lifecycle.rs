//! The tasks of one process: which there are, and in which order they end. The loop ends first, while
//! the lead is still ours and Events and probes still tell about it.

use std::convert::Infallible;
use std::time::Duration;

use kubekit::lifecycle::{Error, Tasks};
use kubekit::{election, events, health};
use tokio_util::sync::CancellationToken;

use crate::driver::Driver;
use crate::kubernetes::Kubernetes;
use crate::provider::Provider;

/// How long a call under way may take to end, so that all is over within ten seconds.
const WORK_GRACE: Duration = Duration::from_secs(7);

/// How long giving the lead back and the last Events may take.
const CARE_GRACE: Duration = Duration::from_secs(3);

/// Why a process stopped without being asked.
pub type StopError = Error<Infallible>;

/// Everything that runs.
pub(crate) struct Parts<P> {
    pub(crate) health: health::Service,
    pub(crate) events: events::Service,
    pub(crate) election: Option<election::Service>,
    pub(crate) driver: Driver<P, Kubernetes>,
}

/// Runs all of it until `shutdown`, or until a part ends that should not.
pub(crate) async fn run<P: Provider + 'static>(
    parts: Parts<P>,
    shutdown: &CancellationToken,
) -> Result<(), StopError> {
    let Parts { health, events, election, driver } = parts;
    let (stop_work, stop_care) = (shutdown.child_token(), CancellationToken::new());
    let mut work = Tasks::new(&stop_work);
    let stopped = work.shutdown();
    for (name, watch) in driver.cluster.caches().watches(&stopped) {
        work.spawn(name, until_end(watch));
    }
    work.spawn("loop", until_end(driver.run(stopped)));

    let mut care = Tasks::new(&stop_care);
    let stopped = care.shutdown();
    care.spawn("health", until_end(health.run(stopped.clone())));
    care.spawn("events", until_end(events.run(stopped.clone())));
    if let Some(election) = election {
        care.spawn("election", until_end(election.run(stopped)));
    }

    let mut work = std::pin::pin!(work.join(WORK_GRACE));
    let mut care = std::pin::pin!(care.join(CARE_GRACE));
    tokio::select! {
        worked = &mut work => {
            stop_care.cancel();
            worked.and(care.await)
        }
        cared = &mut care => {
            stop_work.cancel();
            cared.and(work.await)
        }
    }
}

/// Parts that do not fail; their end alone says something.
async fn until_end(part: impl Future<Output = ()>) -> Result<(), Infallible> {
    part.await;
    Ok(())
}
