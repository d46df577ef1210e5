//! The tasks of one process: which there are, and in which order they end. The rings end first, while
//! the lead is still ours and Events and probes still tell about them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use kubekit::follow::follow;
use kubekit::health::Check;
use kubekit::lifecycle::{Error, Tasks};
use kubekit::{election, events, health};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Context;
use super::feed::Feed;
use super::feeds::{NamespaceFeed, RingFeed};
use super::supervisor::{NEWS_MAX, Supervisor};

/// How long what is under way may take to end: longer than any write.
const WORK_GRACE: Duration = Duration::from_secs(10);

/// How long giving the lead back and the last Events may take.
const CARE_GRACE: Duration = Duration::from_secs(5);

/// Why a process stopped without being asked.
pub type StopError = Error<Infallible>;

/// Everything that runs.
pub(crate) struct Parts {
    pub(crate) health: health::Service,
    pub(crate) events: events::Service,
    pub(crate) election: (election::Service, election::Handle),
    pub(crate) live: Check,
    pub(crate) context: Arc<Context>,
}

/// Runs all of it until `shutdown`, or until a part ends that should not.
pub(crate) async fn run(parts: Parts, shutdown: &CancellationToken) -> Result<(), StopError> {
    let Parts { health, events, election: (election, standing), live, context } = parts;
    let (stop_work, stop_care) = (shutdown.child_token(), CancellationToken::new());
    let mut work = Tasks::new(&stop_work);
    let stopped = work.shutdown();
    let (news_in, news) = mpsc::channel(NEWS_MAX);
    let rings = Feed::new(context.clone(), RingFeed::new(&context, news_in.clone()));
    work.spawn("rings-watch", until_end(follow(rings, stopped.clone())));
    let namespaces = Feed::new(context.clone(), NamespaceFeed::new(&context, news_in));
    work.spawn("namespaces-watch", until_end(follow(namespaces, stopped.clone())));
    let supervisor = Supervisor::new(context, standing, live);
    work.spawn("rings", until_end(supervisor.run(news, stopped)));

    let mut care = Tasks::new(&stop_care);
    let stopped = care.shutdown();
    care.spawn("health", until_end(health.run(stopped.clone())));
    care.spawn("events", until_end(events.run(stopped.clone())));
    care.spawn("election", until_end(election.run(stopped)));

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
