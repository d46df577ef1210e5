//! The API of a node: `windlass.task.v1.Tasks`, answered for all nodes. Checks what is asked, holds
//! the bounds, and leaves deciding to the core and writing to the store's client.
//!
//! The only place that knows gRPC's codes; see [`refusal`].

mod admit;
mod cancel;
pub mod edge;
mod error;
mod filter;
mod inspect;
mod list;
mod logs;
mod options;
mod page;
pub mod refusal;
mod submit;
mod upkeep;
mod view;
mod wait;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use self::error::Error;
use crate::core::id::TaskId;
use crate::node::Handle;
use crate::wire;
use crate::wire::tasks_server::Tasks;

pub use self::options::{Bounds, BoundsError, Options};

/// A write whose outcome is not known by then is said to be unknown.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// What answers. A cheap clone.
#[derive(Clone, Debug)]
pub struct Service {
    shared: Arc<Shared>,
    /// Whether callers are known by their certificates, and nobody else is answered.
    needs_certificate: bool,
}

#[derive(Debug)]
struct Shared {
    node: Handle,
    options: Options,
    waiters: Arc<Semaphore>,
    watchers: Arc<Semaphore>,
    followers: Arc<Semaphore>,
}

// === impl Service ===

impl Service {
    #[must_use]
    pub fn new(node: Handle, options: Options) -> Self {
        let Bounds { waiters_max, watchers_max, followers_max, .. } = options.bounds;
        let shared = Shared {
            node,
            options,
            waiters: Arc::new(Semaphore::new(waiters_max)),
            watchers: Arc::new(Semaphore::new(watchers_max)),
            followers: Arc::new(Semaphore::new(followers_max)),
        };
        Self { shared: Arc::new(shared), needs_certificate: false }
    }

    /// The same, for callers who show a certificate.
    #[must_use]
    fn certified(&self) -> Self {
        Self { needs_certificate: true, ..self.clone() }
    }

    fn node(&self) -> &Handle {
        &self.shared.node
    }

    fn bounds(&self) -> &Bounds {
        &self.shared.options.bounds
    }
}

fn task_id(field: &'static str, text: &str) -> Result<TaskId, Error> {
    text.parse().map_err(|source| Error::id(field, source))
}

fn deadline() -> Instant {
    Instant::now() + ANSWER_WITHIN
}

type Answer<T> = Result<Response<T>, Status>;

fn answer<T>(outcome: Result<T, Error>) -> Answer<T> {
    outcome.map(Response::new).map_err(Status::from)
}

#[tonic::async_trait]
impl Tasks for Service {
    type WatchStream = BoxStream<'static, Result<wire::WatchResponse, Status>>;
    type LogsStream = BoxStream<'static, Result<wire::LogsResponse, Status>>;

    async fn submit(&self, request: Request<wire::SubmitRequest>) -> Answer<wire::SubmitResponse> {
        let caller = self.admit(&request)?;
        answer(self.submit_one(request.into_inner(), &caller).await)
    }

    async fn submit_batch(
        &self,
        request: Request<wire::SubmitBatchRequest>,
    ) -> Answer<wire::SubmitBatchResponse> {
        let caller = self.admit(&request)?;
        answer(self.submit_many(request.into_inner(), &caller).await)
    }

    async fn status(&self, request: Request<wire::StatusRequest>) -> Answer<wire::StatusResponse> {
        self.admit(&request)?;
        answer(self.show(&request.into_inner().id).await)
    }

    async fn explain(
        &self,
        request: Request<wire::ExplainRequest>,
    ) -> Answer<wire::ExplainResponse> {
        self.admit(&request)?;
        answer(self.explain_one(&request.into_inner().id).await)
    }

    async fn list(&self, request: Request<wire::ListRequest>) -> Answer<wire::ListResponse> {
        self.admit(&request)?;
        answer(self.list_page(request.into_inner()).await)
    }

    async fn wait(&self, request: Request<wire::WaitRequest>) -> Answer<wire::WaitResponse> {
        self.admit(&request)?;
        answer(self.wait_for(request.into_inner()).await)
    }

    async fn watch(&self, request: Request<wire::WatchRequest>) -> Answer<Self::WatchStream> {
        self.admit(&request)?;
        answer(self.watch_tasks(request.into_inner()).await)
    }

    async fn cancel(&self, request: Request<wire::CancelRequest>) -> Answer<wire::CancelResponse> {
        let caller = self.admit(&request)?;
        answer(self.cancel_one(&request.into_inner().id, &caller).await)
    }

    async fn logs(&self, request: Request<wire::LogsRequest>) -> Answer<Self::LogsStream> {
        self.admit(&request)?;
        answer(self.stream_log(request.into_inner()).await)
    }

    async fn nodes(&self, request: Request<wire::NodesRequest>) -> Answer<wire::NodesResponse> {
        self.admit(&request)?;
        answer(self.list_nodes().await)
    }

    async fn drain(&self, request: Request<wire::DrainRequest>) -> Answer<wire::DrainResponse> {
        self.admit(&request)?;
        answer(self.drain_node(request.into_inner()).await)
    }

    async fn fsck(&self, request: Request<wire::FsckRequest>) -> Answer<wire::FsckResponse> {
        self.admit(&request)?;
        answer(self.check_store(request.into_inner().repair).await)
    }

    async fn gc(&self, request: Request<wire::GcRequest>) -> Answer<wire::GcResponse> {
        self.admit(&request)?;
        answer(self.collect(request.into_inner().before_ms).await)
    }
}
