//! The client of the API: speaks with one node, which answers for all. Every call may be repeated
//! without harm (a submit always has an idempotency key), so a call that was not answered is.
//!
//! Draws idempotency keys; never decides what a refusal means to its user.

mod connect;
mod logs;
mod retry;

use std::time::Duration;

use tonic::Streaming;
use tonic::transport::Channel;
use uuid::Uuid;

use crate::core::id::TaskId;
use crate::service::refusal::{Kind, Refusal};
use crate::store::ConnectError;
use crate::wire::submit_batch_response::result::Result as Item;
use crate::wire::tasks_client::TasksClient;
use crate::wire::{self, TaskView};

pub use connect::Options;
pub use logs::Logs;

/// Shorter ones would soon mean several tasks.
pub const PREFIX_CHARACTERS_MIN: usize = 8;
/// As many as one answer of a list has room for.
const PAGE_TASKS_MAX: usize = 1000;
/// What a node sends at once.
const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// A connection to one node. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    tasks: TasksClient<Channel>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{address}` is not an address of a node")]
    Address {
        address: String,
        #[source]
        source: tonic::transport::Error,
    },
    #[error("the certificates cannot be read")]
    Certificates(#[source] ConnectError),
    #[error("the certificates cannot be used")]
    Tls(#[source] tonic::transport::Error),
    #[error("cannot connect to {address}")]
    Connect {
        address: String,
        #[source]
        source: tonic::transport::Error,
    },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the node answered without {what}")]
    Incomplete { what: &'static str },
    #[error(
        "`{prefix}` is no task id, and has fewer than {PREFIX_CHARACTERS_MIN} characters of one"
    )]
    ShortPrefix { prefix: String },
    #[error("there is no task `{prefix}`")]
    NoTask { prefix: String },
    #[error("`{prefix}` begins the ids of {} tasks", ids.len())]
    Ambiguous { prefix: String, ids: Vec<String> },
}

/// The tasks a list finds, all at one revision.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    pub tasks: Vec<TaskView>,
    pub revision: i64,
    /// Whether there are more than were asked for.
    pub has_more: bool,
}

// === impl Client ===

impl Client {
    pub async fn connect(options: &Options) -> Result<Self, Error> {
        Ok(Self::new(connect::channel(options).await?))
    }

    /// Speaks over a connection that somebody else made.
    #[must_use]
    pub fn new(channel: Channel) -> Self {
        let tasks = TasksClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX);
        Self { tasks }
    }

    /// Submits a task. Without a key of its own it is given one, so that it is submitted once however
    /// often it has to be sent.
    pub async fn submit(&self, spec: wire::TaskSpec) -> Result<wire::SubmitResponse, Error> {
        let spec = Some(with_key(spec));
        self.ask(async |mut tasks| tasks.submit(wire::SubmitRequest { spec: spec.clone() }).await)
            .await
    }

    /// Submits many at once; each has its own result, in their order.
    pub async fn submit_batch(
        &self,
        specs: Vec<wire::TaskSpec>,
    ) -> Result<Vec<Result<wire::SubmitResponse, Refusal>>, Error> {
        let specs: Vec<_> = specs.into_iter().map(with_key).collect();
        let batch = || wire::SubmitBatchRequest { specs: specs.clone() };
        let answer = self.ask(async |mut tasks| tasks.submit_batch(batch()).await).await?;
        let item = |result: wire::submit_batch_response::Result| match result.result {
            Some(Item::Submitted(submitted)) => Ok(Ok(submitted)),
            Some(Item::Refused(refused)) => {
                Ok(Err(Refusal::new(Kind::of_number(refused.code), refused.message)))
            }
            None => Err(Error::Incomplete { what: "the result of a task" }),
        };
        answer.results.into_iter().map(item).collect()
    }

    pub async fn status(&self, id: TaskId) -> Result<TaskView, Error> {
        let request = wire::StatusRequest { id: id.to_string() };
        let answer = self.ask(async |mut tasks| tasks.status(request.clone()).await).await?;
        answer.task.ok_or(Error::Incomplete { what: "the task" })
    }

    pub async fn explain(&self, id: TaskId) -> Result<wire::ExplainResponse, Error> {
        let request = wire::ExplainRequest { id: id.to_string() };
        self.ask(async |mut tasks| tasks.explain(request.clone()).await).await
    }

    /// All tasks that pass the filter, at most `max`.
    pub async fn list(&self, filter: wire::Filter, max: usize) -> Result<Listing, Error> {
        let mut listing = Listing::default();
        let mut token = String::new();
        loop {
            let missing = max.saturating_sub(listing.tasks.len()).clamp(1, PAGE_TASKS_MAX);
            let limit = u32::try_from(missing).expect("a page is small");
            let request = wire::ListRequest { filter: Some(filter.clone()), limit, token };
            let page = self.ask(async |mut tasks| tasks.list(request.clone()).await).await?;
            listing.tasks.extend(page.tasks);
            listing.revision = page.revision;
            token = page.next_token;
            if token.is_empty() || listing.tasks.len() >= max {
                listing.has_more = !token.is_empty();
                return Ok(listing);
            }
        }
    }

    /// The task that is meant by an id, or by the beginning of one.
    pub async fn find(&self, text: &str) -> Result<TaskId, Error> {
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        let prefix = text.to_owned();
        if prefix.len() < PREFIX_CHARACTERS_MIN {
            return Err(Error::ShortPrefix { prefix });
        }
        let filter = wire::Filter { id_prefix: prefix.clone(), ..Default::default() };
        let found = self.list(filter, PAGE_TASKS_MAX).await?;
        let mut ids = found.tasks.into_iter().filter_map(|view| Some(view.task?.id));
        match (ids.next(), ids.next()) {
            (None, _) => Err(Error::NoTask { prefix }),
            (Some(id), None) => id.parse().or(Err(Error::Incomplete { what: "the id of a task" })),
            (Some(first), Some(second)) => {
                let ids = [first, second].into_iter().chain(ids).collect();
                Err(Error::Ambiguous { prefix, ids })
            }
        }
    }

    /// Waits until all have ended, at most `timeout`.
    pub async fn wait(
        &self,
        ids: &[TaskId],
        timeout: Duration,
    ) -> Result<wire::WaitResponse, Error> {
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let request = wire::WaitRequest { ids, timeout_ms };
        self.ask(async |mut tasks| tasks.wait(request.clone()).await).await
    }

    /// Changes from now on. Whoever is too slow is cut off, and lists again.
    pub async fn watch(
        &self,
        filter: wire::Filter,
    ) -> Result<Streaming<wire::WatchResponse>, Error> {
        let request = wire::WatchRequest { filter: Some(filter) };
        self.ask(async |mut tasks| tasks.watch(request.clone()).await).await
    }

    pub async fn cancel(&self, id: TaskId) -> Result<TaskView, Error> {
        let request = wire::CancelRequest { id: id.to_string() };
        let answer = self.ask(async |mut tasks| tasks.cancel(request.clone()).await).await?;
        answer.task.ok_or(Error::Incomplete { what: "the task" })
    }

    /// What a task wrote. A broken stream is resumed where it broke.
    #[must_use]
    pub fn logs(&self, request: wire::LogsRequest) -> Logs {
        Logs::new(self.clone(), request)
    }

    pub async fn nodes(&self) -> Result<Vec<wire::Node>, Error> {
        let answer = self.ask(async |mut tasks| tasks.nodes(wire::NodesRequest {}).await).await?;
        Ok(answer.nodes)
    }

    pub async fn drain(&self, node: &str) -> Result<(), Error> {
        let request = wire::DrainRequest { node: node.to_owned(), proxied: false };
        self.ask(async |mut tasks| tasks.drain(request.clone()).await).await.map(drop)
    }

    pub async fn fsck(&self, repair: bool) -> Result<wire::FsckResponse, Error> {
        let request = wire::FsckRequest { repair };
        self.ask(async |mut tasks| tasks.fsck(request).await).await
    }

    /// Removes tasks that ended before `before_ms`, and tells how many.
    pub async fn gc(&self, before_ms: i64) -> Result<u64, Error> {
        let request = wire::GcRequest { before_ms };
        let answer = self.ask(async |mut tasks| tasks.gc(request).await).await?;
        Ok(answer.deleted)
    }

    /// For a node that passes a call on; what the other node says is passed on as it is.
    pub(crate) async fn pass_drain(&self, node: &str) -> Result<(), Refusal> {
        let request = wire::DrainRequest { node: node.to_owned(), proxied: true };
        self.tasks.clone().drain(request).await.map(drop).map_err(Refusal::from)
    }

    pub(crate) async fn pass_logs(
        &self,
        request: wire::LogsRequest,
    ) -> Result<Streaming<wire::LogsResponse>, Refusal> {
        Ok(self.tasks.clone().logs(request).await?.into_inner())
    }

    async fn ask<T, E: Into<Refusal>>(
        &self,
        call: impl AsyncFn(TasksClient<Channel>) -> Result<tonic::Response<T>, E>,
    ) -> Result<T, Error> {
        retry::until_answered(async || {
            let answer = call(self.tasks.clone()).await.map_err(Into::into)?;
            Ok(answer.into_inner())
        })
        .await
        .map_err(Error::Refused)
    }
}

fn with_key(spec: wire::TaskSpec) -> wire::TaskSpec {
    if spec.idempotency_key.is_empty() {
        wire::TaskSpec { idempotency_key: Uuid::new_v4().to_string(), ..spec }
    } else {
        spec
    }
}
