//! Forgets history without being asked.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use etcd_api::ApiError;
use mvcc::Revision;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::{AutoCompaction, Error, context::Context};

/// How often a store that keeps a number of revisions looks at them.
const REVISION_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// A store that keeps a span of time looks this often within it, but at most hourly.
const LOOKS_PER_PERIOD: u32 = 10;
const PERIOD_MAX: Duration = Duration::from_secs(60 * 60);

/// No store looks more often than this, whatever the span: etcd looks without pause then, and a clock
/// cannot tick in no time at all. What is kept is never less than what was asked for.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// What to forget, decided from the revisions seen at past times.
#[derive(Debug)]
struct Planner {
    mode: AutoCompaction,
    /// When the store was at which revision, oldest first. Bounded by the number of looks that fit
    /// in the time to keep.
    seen: VecDeque<(Instant, Revision)>,
}

/// Works until `shutdown`. An error of the only member is the end of its compactions.
pub(crate) async fn run(context: Arc<Context>, shutdown: CancellationToken) -> Result<(), Error> {
    let mut planner = Planner::new(context.options.auto_compaction);
    let Some(interval) = planner.interval() else {
        shutdown.cancelled().await;
        return Ok(());
    };
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            now = ticks.tick() => {
                let Some(to) = planner.plan(now, context.published.revision()) else { continue };
                if !context.standing.is_holder() {
                    continue;
                }
                let compacted = compact(&context, to).await;
                // Where the role comes and goes, its next holder compacts in its own time.
                if context.standing.is_alone() {
                    compacted?;
                }
            }
            () = shutdown.cancelled() => return Ok(()),
        }
    }
}

async fn compact(context: &Context, to: Revision) -> Result<(), Error> {
    match context.sequencer.compact(to, false).await {
        Ok(_) => tracing::info!(revision = to.0, "forgot history below the revision"),
        // Somebody else compacted further.
        Err(error) if error.api() == ApiError::Compacted => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

// === impl Planner ===

impl Planner {
    fn new(mode: AutoCompaction) -> Self {
        Self { mode, seen: VecDeque::new() }
    }

    fn interval(&self) -> Option<Duration> {
        match self.mode {
            AutoCompaction::Off => None,
            AutoCompaction::Revision(_) => Some(REVISION_INTERVAL),
            AutoCompaction::Periodic(keep) => {
                Some((keep.min(PERIOD_MAX) / LOOKS_PER_PERIOD).max(LOOK_INTERVAL_MIN))
            }
        }
    }

    /// The revision to compact to, if it is time.
    fn plan(&mut self, now: Instant, revision: Revision) -> Option<Revision> {
        match self.mode {
            AutoCompaction::Off => None,
            AutoCompaction::Revision(keep) => {
                let to = Revision(revision.0 - keep);
                (to > Revision::INITIAL).then_some(to)
            }
            AutoCompaction::Periodic(keep) => self.plan_periodic(now, revision, keep),
        }
    }

    fn plan_periodic(
        &mut self,
        now: Instant,
        revision: Revision,
        keep: Duration,
    ) -> Option<Revision> {
        self.seen.push_back((now, revision));
        let mut to = None;
        while let Some((at, seen)) = self.seen.front().copied()
            && now.duration_since(at) >= keep
        {
            self.seen.pop_front();
            to = Some(seen);
        }
        to.filter(|to| *to > Revision::INITIAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_span_of_time_is_kept() {
        let start = Instant::now();
        let hour = Duration::from_secs(3600);
        let mut planner = Planner::new(AutoCompaction::Periodic(hour));
        assert_eq!(planner.interval(), Some(hour / 10));
        for tick in 0..10 {
            let now = start + hour / 10 * tick;
            assert_eq!(planner.plan(now, Revision(100 + i64::from(tick))), None, "{tick}");
        }
        assert_eq!(planner.plan(start + hour, Revision(110)), Some(Revision(100)));
        assert_eq!(planner.plan(start + hour / 10 * 11, Revision(111)), Some(Revision(101)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_number_of_revisions_is_kept() {
        let mut planner = Planner::new(AutoCompaction::Revision(1000));
        assert_eq!(planner.plan(Instant::now(), Revision(500)), None);
        assert_eq!(planner.plan(Instant::now(), Revision(5000)), Some(Revision(4000)));
    }

    /// `--auto-compaction-retention 5ns` made an interval of nothing, which panicked, and the store
    /// stopped.
    #[tokio::test(start_paused = true)]
    async fn a_span_of_next_to_nothing_stopped_the_store() {
        let nanoseconds = Duration::from_nanos(5);
        let mut planner = Planner::new(AutoCompaction::Periodic(nanoseconds));
        let mut ticks = tokio::time::interval(planner.interval().unwrap());
        let first = ticks.tick().await;
        assert_eq!(planner.plan(first, Revision(100)), None);
        let second = ticks.tick().await;
        assert_eq!(second - first, LOOK_INTERVAL_MIN);
        assert_eq!(planner.plan(second, Revision(200)), Some(Revision(100)));
    }
}
