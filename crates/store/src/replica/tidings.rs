//! Lets followers hear at once that something is durable.
//!
//! A word has no content: whoever hears it looks at the journal, as it does of its own accord when it
//! hears nothing. So nothing has to be believed of a member that may have lost the role, and nothing
//! depends on a word arriving. Nothing queues up either: words that nobody took yet are one.

use std::{convert::Infallible, sync::Arc, task, time::Duration};

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use http::uri::PathAndQuery;
use journal::Member;
use prometheus_client::{metrics::counter::Counter, registry::Registry};
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{
    Request, Response, Status,
    body::Body,
    codegen::{BoxFuture, Service},
    server::{NamedService, ServerStreamingService},
    transport::{self, Channel},
};
use tonic_prost::ProstCodec;

use super::Relay;
use crate::{Error, context::Context};

const NAME: &str = "windlass.replica.Tidings";
const PATH: &str = "/windlass.replica.Tidings/Follow";
/// How often it is looked who writes, and tried again to hear of it.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long a member may take to begin to tell.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(2);

/// One stream of words.
type Words = BoxStream<'static, Result<(), Status>>;

/// Why the member that writes is not heard.
#[derive(Debug, thiserror::Error)]
enum Unheard {
    #[error("it has no address that can be used")]
    Address {
        #[source]
        source: Error,
    },
    #[error("it cannot be connected to")]
    Connect {
        #[source]
        source: transport::Error,
    },
    #[error("it tells nothing")]
    Refused {
        #[source]
        source: Box<Status>,
    },
    #[error("it did not begin to tell in time")]
    Late,
}

/// What a member tells the others. Only one that writes has anything to tell.
#[derive(Clone)]
pub(crate) struct Tidings {
    context: Arc<Context>,
}

/// What a member hears of the one that writes.
pub(crate) struct Hearing {
    context: Arc<Context>,
    relay: Arc<Relay>,
    heard: Counter,
}

// === impl Tidings ===

impl Tidings {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }

    /// One word at once, because what came before is not known to whoever asks, and one after each
    /// batch, or after several.
    fn words(&self) -> Words {
        let noted = self.context.published.noted();
        let later = stream::unfold(noted, |mut noted| async move {
            noted.changed().await.ok()?;
            Some((Ok(()), noted))
        });
        let stopping = self.context.stopping.clone();
        let all = stream::once(async { Ok(()) }).chain(later);
        all.take_until(stopping.cancelled_owned()).boxed()
    }
}

impl NamedService for Tidings {
    const NAME: &'static str = NAME;
}

impl Service<http::Request<Body>> for Tidings {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> task::Poll<Result<(), Infallible>> {
        task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let own = self.clone();
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<(), ()>::default());
            Ok(grpc.server_streaming(own, request).await)
        })
    }
}

impl ServerStreamingService<()> for Tidings {
    type Response = ();
    type ResponseStream = Words;
    type Future = std::future::Ready<Result<Response<Words>, Status>>;

    fn call(&mut self, _: Request<()>) -> Self::Future {
        std::future::ready(Ok(Response::new(self.words())))
    }
}

// === impl Hearing ===

impl Hearing {
    pub(crate) fn new(context: Arc<Context>, relay: Arc<Relay>, registry: &mut Registry) -> Self {
        let heard = Counter::default();
        let help = "Words of new batches that were heard";
        registry.register("windlass_replica_tidings", help, heard.clone());
        Self { context, relay, heard }
    }

    /// Hears whoever writes, until told to stop.
    pub(crate) async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let hearing = async {
            let mut looks = looks();
            loop {
                looks.tick().await;
                if let Some(holder) = self.context.standing.holder()
                    && let Err(error) = self.hear(&holder).await
                {
                    let error: &dyn std::error::Error = &error;
                    tracing::debug!(error, writer = %holder.name, "the writer is not heard");
                }
            }
        };
        shutdown.run_until_cancelled(hearing).await;
        Ok(())
    }

    /// Until the writer is another one, or is heard no more.
    async fn hear(&self, holder: &Member) -> Result<(), Unheard> {
        let channel = self.relay.channel(holder).map_err(|source| Unheard::Address { source })?;
        let mut words = follow(channel).await?;
        let mut looks = looks();
        loop {
            tokio::select! {
                word = words.message() => match word.map_err(refused)? {
                    None => return Ok(()),
                    Some(()) => {
                        self.heard.inc();
                        self.context.confirm.look();
                    }
                },
                _ = looks.tick() => {
                    let now = self.context.standing.holder();
                    if now.is_none_or(|now| now.id != holder.id) {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// A writer is heard for hours between two of them: what was missed meanwhile is not made up for.
fn looks() -> Interval {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    looks
}

async fn follow(channel: Channel) -> Result<tonic::Streaming<()>, Unheard> {
    let mut client = tonic::client::Grpc::new(channel);
    let begin = async {
        client.ready().await.map_err(|source| Unheard::Connect { source })?;
        let path = PathAndQuery::from_static(PATH);
        let codec = ProstCodec::<(), ()>::default();
        let words = client.server_streaming(Request::new(()), path, codec).await;
        words.map(Response::into_inner).map_err(refused)
    };
    timeout(BEGIN_TIMEOUT, begin).await.unwrap_or_else(|_elapsed| Err(Unheard::Late))
}

fn refused(source: Status) -> Unheard {
    Unheard::Refused { source: Box::new(source) }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, advance};

    use super::*;

    /// All looks that would have come while a writer was heard came at its end, one upon the other:
    /// after an hour it was connected to 18,000 times without a pause.
    #[tokio::test(start_paused = true)]
    async fn a_writer_that_was_heard_for_long_is_not_sought_without_pause() {
        let mut looks = looks();
        looks.tick().await;
        advance(Duration::from_secs(3600)).await;
        looks.tick().await;
        let ended = Instant::now();
        for _ in 0..10 {
            looks.tick().await;
        }
        assert_eq!(Instant::now() - ended, LOOK_EVERY * 10);
    }
}
