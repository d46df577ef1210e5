//! Following what happens to objects, for as long as the process lives: a watch that ends, falls
//! silent or fails is begun anew. Owns when that is; what is watched, from where, and what is done
//! with it is the [`Source`]'s.
//!
//! | a watch | begins anew |
//! |---|---|
//! | ends or falls silent after a good while | at once: the server ends every watch after some minutes |
//! | ends or falls silent sooner, or fails | after a wait that grows from one time to the next |
//! | fails, and [the source can mend it](Retry::Soon) | after the shortest wait |

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::error;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;

/// The server sends a bookmark about every minute; a watch that says nothing for so long is dead.
pub const SILENCE_MAX: Duration = Duration::from_secs(90);

/// The first wait after a failure, and the longest.
const RETRY_FIRST: Duration = Duration::from_millis(500);
const RETRY_MAX: Duration = Duration::from_secs(30);

/// What is followed.
pub trait Source: Send {
    /// What the watch brings: a change, or what broke it.
    type Item: Send;
    type Error: error::Error + Send + 'static;

    /// What logs call it.
    fn name(&self) -> &str;

    /// Begins a watch where the last one ended, after a list where that cannot be.
    fn begin(
        &mut self,
    ) -> impl Future<Output = Result<BoxStream<'static, Self::Item>, Self::Error>> + Send;

    /// Takes in what the watch brought. The next watch begins behind it, or, after an error, in
    /// front of it.
    fn on_item(&mut self, item: Self::Item)
    -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// The watch is over, as happens to every one; nothing is wrong yet.
    fn on_end(&mut self, end: End);

    /// Something failed.
    fn on_failure(&mut self, error: &Self::Error) -> Retry;
}

/// How a watch ends without having failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum End {
    #[error("the API server ended the watch")]
    Ended,
    #[error("the watch has fallen silent")]
    Silent,
}

/// When to begin anew after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The server is well and what failed will not fail again, as when the next watch begins with a
    /// list. However long the waits have grown meanwhile, this one is short.
    Soon,
    /// After a wait that grows with every failure in a row.
    Later,
}

/// A source, and how it went so far.
struct Follower<S> {
    source: S,
    /// When the present watch began.
    began: Option<Instant>,
    backoff: Backoff,
}

/// Why a watch has to be begun anew.
#[derive(Debug)]
enum Interruption<E> {
    Over(End),
    Failed(E),
}

/// Follows `source` until `shutdown`.
pub async fn follow(source: impl Source, shutdown: CancellationToken) {
    let mut follower = Follower::new(source);
    tokio::select! {
        () = shutdown.cancelled() => {}
        never = follower.run() => match never {},
    }
}

// === impl Follower ===

impl<S: Source> Follower<S> {
    fn new(source: S) -> Self {
        Self { source, began: None, backoff: Backoff::new(RETRY_FIRST, RETRY_MAX) }
    }

    async fn run(&mut self) -> Infallible {
        loop {
            let Err(interruption) = self.watch().await;
            let wait = match interruption {
                Interruption::Over(end) => self.on_end(end),
                Interruption::Failed(error) => self.on_failure(&error),
            };
            tokio::time::sleep(wait).await;
        }
    }

    async fn watch(&mut self) -> Result<Infallible, Interruption<S::Error>> {
        self.began = None;
        let mut items = self.source.begin().await?;
        self.began = Some(Instant::now());
        loop {
            let item = timeout(SILENCE_MAX, items.next()).await;
            let item = item.map_err(|_elapsed| Interruption::Over(End::Silent))?;
            let item = item.ok_or(Interruption::Over(End::Ended))?;
            self.source.on_item(item).await?;
            self.backoff.on_success();
        }
    }

    /// How long to wait before the next watch.
    fn on_end(&mut self, end: End) -> Duration {
        self.source.on_end(end);
        let watch = self.source.name();
        if self.began.is_some_and(|began| began.elapsed() > RETRY_MAX) {
            self.backoff.on_success();
            tracing::debug!(watch, %end, "watching anew");
            return Duration::ZERO;
        }
        let wait = self.backoff.on_failure(rand::random());
        tracing::warn!(watch, %end, ?wait, "a watch was short; watching anew");
        wait
    }

    /// How long to wait before the next watch.
    fn on_failure(&mut self, error: &S::Error) -> Duration {
        if self.source.on_failure(error) == Retry::Soon {
            self.backoff.on_success();
        }
        let wait = self.backoff.on_failure(rand::random());
        let error = error as &dyn error::Error;
        tracing::warn!(watch = self.source.name(), error, ?wait, "watching anew");
        wait
    }
}

// === impl Interruption ===

impl<E> From<E> for Interruption<E> {
    fn from(error: E) -> Self {
        Self::Failed(error)
    }
}
