//! The tasks of one process: which there are, and in which order they end. What works ends first,
//! while Events and probes still tell about it.

use std::{convert::Infallible, time::Duration};

use kubekit::{
    events, health,
    lifecycle::{Error, Tasks},
};
use tokio_util::sync::CancellationToken;

use crate::{access::Access, processor::Processor, watcher::Watcher};

/// How long what was begun may take to finish: less than the 30 s that Kubernetes gives to a pod.
const WORK_GRACE: Duration = Duration::from_secs(20);

/// How long the last Events and answers may take.
const CARE_GRACE: Duration = Duration::from_secs(5);

/// Why a process stopped without being asked.
pub type StopError = Error<Infallible>;

/// Everything that runs.
pub(crate) struct Parts {
    pub(crate) health: health::Service,
    pub(crate) events: events::Service,
    pub(crate) access: Access,
    pub(crate) watcher: Option<Watcher>,
    pub(crate) processor: Option<Processor>,
}

/// Runs all of it until `shutdown`, or until a part ends that should not.
pub(crate) async fn run(parts: Parts, shutdown: &CancellationToken) -> Result<(), StopError> {
    let stop_work = shutdown.child_token();
    let mut work = Tasks::new(&stop_work);
    if let Some(watcher) = parts.watcher {
        watcher.spawn_into(&mut work);
    }
    if let Some(processor) = parts.processor {
        processor.spawn_into(&mut work);
    }
    let stop_care = CancellationToken::new();
    let care = care(parts.health, parts.events, parts.access, &stop_care);

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

/// What tells about the work.
fn care(
    health: health::Service,
    events: events::Service,
    access: Access,
    stop: &CancellationToken,
) -> Tasks<Infallible> {
    let mut tasks = Tasks::new(stop);
    let shutdown = tasks.shutdown();
    tasks.spawn("health", until_end(health.run(shutdown.clone())));
    tasks.spawn("events", until_end(events.run(shutdown.clone())));
    tasks.spawn("access", until_end(access.run(shutdown)));
    tasks
}

/// Parts that do not fail; their end alone says something.
pub(crate) async fn until_end(part: impl Future<Output = ()>) -> Result<(), Infallible> {
    part.await;
    Ok(())
}
