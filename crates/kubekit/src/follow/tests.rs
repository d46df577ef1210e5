//! When watches begin anew, on a paused clock.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::stream;
use parking_lot::Mutex;

use super::*;

/// What tokio's timer may add to a wait.
const TIMER_MS: u128 = 5;

/// What becomes of one watch.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// It cannot be begun.
    Fails(Retry),
    /// It brings something, and breaks.
    Breaks,
    /// It brings something after so many seconds, and ends.
    Ends { after_s: u64 },
    /// It brings nothing and ends after so many seconds.
    EndsEmpty { after_s: u64 },
    /// It says nothing, ever.
    FallsSilent,
}

#[derive(Debug, thiserror::Error)]
#[error("as told")]
struct Told(Retry);

struct Script {
    fates: VecDeque<Fate>,
    began: Arc<Mutex<Vec<Instant>>>,
    ends: Arc<Mutex<Vec<End>>>,
    over: CancellationToken,
}

// === impl Script ===

impl Source for Script {
    type Item = Result<(), Told>;
    type Error = Told;

    fn name(&self) -> &'static str {
        "script"
    }

    async fn begin(&mut self) -> Result<BoxStream<'static, Self::Item>, Told> {
        self.began.lock().push(Instant::now());
        let Some(fate) = self.fates.pop_front() else {
            self.over.cancel();
            return Ok(stream::pending().boxed());
        };
        let pause = |after_s| tokio::time::sleep(Duration::from_secs(after_s));
        Ok(match fate {
            Fate::Fails(retry) => return Err(Told(retry)),
            Fate::Breaks => stream::iter([Ok(()), Err(Told(Retry::Later))]).boxed(),
            Fate::Ends { after_s } => {
                stream::once(async move { pause(after_s).await }).map(Ok).boxed()
            }
            Fate::EndsEmpty { after_s } => stream::once(async move { pause(after_s).await })
                .filter_map(async |()| None)
                .boxed(),
            Fate::FallsSilent => stream::pending().boxed(),
        })
    }

    async fn on_item(&mut self, item: Self::Item) -> Result<(), Told> {
        item
    }

    fn on_end(&mut self, end: End) {
        self.ends.lock().push(end);
    }

    fn on_failure(&mut self, error: &Told) -> Retry {
        error.0
    }
}

/// The times between the beginnings of watches, with what chance may add to or take from a wait
/// rounded away; and how those ended that did not fail.
async fn check(fates: &[Fate], expected_ms: &[u128], expected_ends: &[End]) {
    tokio::time::pause();
    let (began, ends) = <(Arc<Mutex<Vec<Instant>>>, Arc<Mutex<Vec<End>>>)>::default();
    let over = CancellationToken::new();
    let script = Script {
        fates: fates.iter().copied().collect(),
        began: began.clone(),
        ends: ends.clone(),
        over: over.clone(),
    };
    follow(script, over).await;
    let gaps: Vec<u128> =
        began.lock().windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
    assert_eq!(gaps.len(), expected_ms.len(), "{gaps:?}");
    for (gap, expected) in gaps.iter().zip(expected_ms) {
        // A wait is between half and all of what is due, and timers round up.
        let due = expected / 2..=expected + TIMER_MS;
        assert!(due.contains(gap), "{gaps:?} for {expected_ms:?}");
    }
    assert_eq!(*ends.lock(), expected_ends);
}

#[tokio::test]
async fn a_watch_that_lasted_is_begun_anew_at_once() {
    let fates = [Fate::EndsEmpty { after_s: 70 }, Fate::FallsSilent, Fate::Ends { after_s: 60 }];
    check(&fates, &[70_000, 90_000, 60_000], &[End::Ended, End::Silent, End::Ended]).await;
}

#[tokio::test]
async fn waits_grow_while_nothing_comes() {
    let fates = [Fate::Fails(Retry::Later), Fate::EndsEmpty { after_s: 0 }];
    let fates = [fates, fates, fates].concat();
    check(&fates, &[500, 1000, 2000, 4000, 8000, 16_000], &[End::Ended; 3]).await;
}

#[tokio::test]
async fn whatever_came_ends_a_row_of_failures() {
    let failure = Fate::Fails(Retry::Later);
    check(&[failure, failure, Fate::Breaks, failure], &[500, 1000, 500, 1000], &[]).await;
}

#[tokio::test]
async fn what_the_source_can_mend_does_not_wait_for_what_it_could_not() {
    let failure = Fate::Fails(Retry::Later);
    let fates = [failure, failure, failure, Fate::Fails(Retry::Soon), failure];
    check(&fates, &[500, 1000, 2000, 500, 1000], &[]).await;
}
