//! `etcdserverpb.Watch`.

use std::{pin::Pin, sync::Arc};

use etcd_api::{
    ApiError,
    etcdserverpb::{WatchCreateRequest, WatchRequest, WatchResponse, watch_server::Watch},
};
use futures::Stream;
use http::{Extensions, HeaderMap};
use mvcc::Revision;
use tonic::{Request, Response, Status, Streaming};

use super::status;
use crate::{auth, context::Context, watch::Session};

pub(crate) struct WatchService {
    context: Arc<Context>,
}

/// A session with the two ends of its stream.
struct Connected {
    context: Arc<Context>,
    /// Absent once the client has said all it wants; its watches go on.
    requests: Option<Streaming<WatchRequest>>,
    headers: HeaderMap,
    extensions: Extensions,
    session: Session,
}

// === impl WatchService ===

impl WatchService {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

#[tonic::async_trait]
impl Watch for WatchService {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchResponse, Status>> + Send>>;

    async fn watch(
        &self,
        request: Request<Streaming<WatchRequest>>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let (metadata, extensions, requests) = request.into_parts();
        let connected = Connected {
            context: self.context.clone(),
            requests: Some(requests),
            headers: metadata.into_headers(),
            extensions,
            session: Session::new(self.context.watch.clone()),
        };
        let responses = futures::stream::unfold(connected, |mut connected| async move {
            let response = connected.next().await?;
            Some((response, connected))
        });
        Ok(Response::new(Box::pin(responses)))
    }
}

// === impl Connected ===

impl Connected {
    /// The next response; `None` ends the stream.
    async fn next(&mut self) -> Option<Result<WatchResponse, Status>> {
        loop {
            if let Some(response) = self.session.pop() {
                return Some(Ok(self.complete(response)));
            }
            match self.step().await {
                Ok(true) => {}
                Ok(false) => return Some(Err(status::of_api(ApiError::Stopped))),
                Err(status) => return Some(Err(status)),
            }
        }
    }

    /// Takes in whatever comes next; returns whether the store goes on.
    async fn step(&mut self) -> Result<bool, Status> {
        let is_behind = self.session.is_behind();
        tokio::select! {
            biased;
            request = next_request(&mut self.requests) => self.on_request(request?),
            () = self.context.stopping.cancelled() => return Ok(false),
            // History is read as fast as the client takes it, and what the hub delivers is taken in
            // between; requests still come first.
            () = std::future::ready(()), if is_behind => self.session.advance().await?,
            goes_on = self.session.turn(), if !is_behind => return Ok(goes_on),
        }
        Ok(true)
    }

    fn on_request(&mut self, request: Option<WatchRequest>) {
        let Some(request) = request else {
            self.requests = None;
            return;
        };
        let Self { context, headers, extensions, .. } = self;
        self.session.on_request(request, |create| permitted(context, headers, extensions, create));
    }

    fn complete(&self, mut response: WatchResponse) -> WatchResponse {
        let revision = response.header.as_ref().map_or(0, |header| header.revision);
        response.header = Some(self.context.header(Revision(revision)));
        response
    }
}

/// Waits for ever once the client is done.
async fn next_request(
    requests: &mut Option<Streaming<WatchRequest>>,
) -> Result<Option<WatchRequest>, Status> {
    match requests {
        Some(requests) => requests.message().await,
        None => std::future::pending().await,
    }
}

/// Whether the caller may read what the watch would show. Looked up for each watch anew: a stream
/// lives long.
fn permitted(
    context: &Context,
    headers: &HeaderMap,
    extensions: &Extensions,
    create: &WatchCreateRequest,
) -> Result<(), auth::Error> {
    let caller = context.gate.caller(headers, extensions, context.now())?;
    let key: &[u8] = if create.key.is_empty() { &[0] } else { &create.key };
    context.gate.state().access(&caller).range(key, &create.range_end)
}
