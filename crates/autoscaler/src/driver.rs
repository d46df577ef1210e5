//! The loop: looks, lets the core decide, and acts, again and again, while it leads.
//!
//! | module | owns |
//! |---|---|
//! | `term` | one leadership: registry, memory, their state, iterations |
//! | `look` | reading Kubernetes and the provider |
//! | `act` | carrying out one action |
//! | `call` | one call to the provider: intent first, outcome after |
//! | `drains` | removals under way, between iterations |
//! | `estimate` | how long the estimate of one group has taken |
//! | `stepped` | the loop without a process around it |
//! | `tell` | Events, metrics and logs of what was noticed |

mod act;
mod call;
mod drains;
mod estimate;
mod look;
mod stepped;
mod tell;
mod term;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kubekit::election;
use kubekit::health::Check;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster::Cluster;
use crate::metrics::{End, Function, Metrics};
use crate::options::{Mode, Options};
use crate::provider::{Provider, Reader};
use crate::record::Recorder;
use crate::view::{Shown, Standing};
use crate::world::Preferences;

pub use self::stepped::{Parts, Stepped};
use self::term::Term;
pub use self::term::TermError;

/// Iterations do not follow each other faster than this, however much there is to do.
const GAP_MIN: Duration = Duration::from_secs(1);

/// How often the probes are told how a replica is that only stands by.
const STANDBY_PULSE: Duration = Duration::from_secs(2);

/// After a term that could not begin.
const TERM_PAUSE: Duration = Duration::from_secs(1);

/// How often removals under way are looked at.
const DRAIN_TICK: Duration = Duration::from_secs(1);

/// Tells the time.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Tells whether the lead is still ours.
pub type Leads = Arc<dyn Fn() -> bool + Send + Sync>;

/// The loop and everything it needs.
pub(crate) struct Driver<P, C> {
    pub(crate) options: Arc<Options>,
    pub(crate) reader: Reader<P>,
    pub(crate) cluster: Arc<C>,
    pub(crate) clock: Clock,
    /// Nobody else is asked if there is none.
    pub(crate) standing: Option<election::Handle>,
    /// Asked before everything that others would notice.
    pub(crate) leads: Leads,
    pub(crate) wakes: Arc<Notify>,
    pub(crate) metrics: Metrics,
    pub(crate) shown: Shown,
    pub(crate) recorder: Option<Recorder>,
    pub(crate) active: Check,
    pub(crate) succeeding: Check,
    pub(crate) preferences: Preferences,
}

/// When the next iteration begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// There is more to do.
    AtOnce,
    AfterInterval,
}

// === impl Driver ===

impl<P: Provider, C: Cluster> Driver<P, C> {
    /// Leads and iterates until `stop`; then nothing new is begun.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let is_leading = tokio::select! {
                () = stop.cancelled() => false,
                () = self.until_leading() => true,
            };
            if is_leading {
                self.lead(&stop).await;
            }
        }
        if self.options.mode == Mode::Act
            && let Err(error) = self.reader.provider().cleanup().await
        {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(error, "the provider was not told that we end");
        }
    }

    /// Whoever stands by is alive and well.
    async fn until_leading(&mut self) {
        let Self { active, succeeding, standing, shown, options, cluster, .. } = self;
        let Some(standing) = standing else {
            let is_acting = options.mode == Mode::Act;
            let standing = if is_acting { Standing::Leading } else { Standing::Observing };
            return shown.set_standing(standing);
        };
        loop {
            active.pass_for(options.pace.inactivity_max);
            succeeding.pass_for(options.pace.failing_max);
            // Looked at for the probes: whoever stands by is ready once its watches are.
            if let Err(error) = cluster.snapshot() {
                tracing::debug!(%error, "not ready to lead");
            }
            if let election::Standing::Standby { leader } = standing.standing() {
                shown.set_standing(Standing::Standby { leader });
            }
            match tokio::time::timeout(STANDBY_PULSE, standing.elected()).await {
                Ok(Some(_term)) => return shown.set_standing(Standing::Leading),
                // The election has ended, so we are about to; being told so is somebody else's.
                Ok(None) => std::future::pending().await,
                Err(_elapsed) => {}
            }
        }
    }

    /// One term, from reading the state to losing the lead, or certainty about the state.
    async fn lead(&mut self, stop: &CancellationToken) {
        let pause = TERM_PAUSE.min(self.options.pace.scan_interval);
        let begun = tokio::select! {
            () = stop.cancelled() => return,
            begun = Term::begin(self, stop.clone()) => begun,
        };
        let mut term = match begun {
            Ok(term) => term,
            Err(error) => {
                self.on_failure(&error);
                return rest(pause, stop).await;
            }
        };
        while !stop.is_cancelled() && self.is_leading() {
            let started = Instant::now();
            self.active.pass_for(self.options.pace.inactivity_max);
            let iterated = term.iterate(self).await;
            self.metrics.on_activity(Function::Main, (self.clock)(), started.elapsed());
            let next = match iterated {
                Ok(next) => Ok(self.on_success(next)),
                Err(error) if error.ends_term() => Err(error),
                Err(error) => {
                    self.on_failure(&error);
                    Ok(Next::AfterInterval)
                }
            };
            let rested = match next {
                Ok(next) => self.until_next(&mut term, started, next, stop).await,
                Err(error) => Err(error),
            };
            match rested {
                Ok(()) => {}
                Err(TermError::Stopping) => return,
                Err(error) => {
                    self.on_failure(&error);
                    return rest(pause, stop).await;
                }
            }
        }
    }

    fn is_leading(&self) -> bool {
        (self.leads)()
    }

    fn on_success(&self, next: Next) -> Next {
        self.succeeding.pass_for(self.options.pace.failing_max);
        self.metrics.on_iteration(End::Done);
        next
    }

    fn on_failure(&self, error: &TermError) {
        self.metrics.on_iteration(End::Failed);
        let words = chain(error);
        tracing::warn!(error = words, "nothing is done in this iteration");
        self.shown.set_fault(words);
    }

    /// Until the next iteration is due: after the interval, or as soon as there is something to do.
    /// Removals go on meanwhile.
    async fn until_next(
        &self,
        term: &mut Term,
        started: Instant,
        next: Next,
        stop: &CancellationToken,
    ) -> Result<(), TermError> {
        let pace = &self.options.pace;
        let soonest = started + GAP_MIN.min(pace.scan_interval);
        let tick = DRAIN_TICK.min(pace.scan_interval);
        let mut due = match next {
            Next::AtOnce if pace.has_frequent_loops => soonest,
            _ => started + pace.scan_interval,
        };
        loop {
            let has_drains = !term.memory.drains.is_empty();
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = tokio::time::sleep_until(due) => return Ok(()),
                () = self.wakes.notified(), if pace.has_frequent_loops => due = soonest,
                () = tokio::time::sleep(tick), if has_drains => term.step_drains(self).await?,
            }
        }
    }
}

async fn rest(span: Duration, stop: &CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = tokio::time::sleep(span) => {}
    }
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words += &format!(": {error}");
        cause = error.source();
    }
    words
}
