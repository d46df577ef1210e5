//! The Watch service of a ceiling: every watch gets every event, encoded once.

use std::{collections::VecDeque, pin::Pin, sync::Arc};

use etcd_api::etcdserverpb::{
    WatchRequest, WatchResponse, watch_request::RequestUnion, watch_server,
};
use etcd_api::mvccpb::Event;
use futures::{Stream, stream};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tonic::{Request, Response, Status, Streaming};

use super::{State, kv::unimplemented};

/// Events that share one response if they are there anyway.
const BATCH_EVENTS_MAX: usize = 64;

pub(super) struct Watch(pub(super) Arc<State>);

/// One stream of watches.
struct Watches {
    state: Arc<State>,
    requests: Streaming<WatchRequest>,
    has_requests: bool,
    events: Receiver<Event>,
    ids: Vec<i64>,
    ready: VecDeque<WatchResponse>,
}

type Responses = Pin<Box<dyn Stream<Item = Result<WatchResponse, Status>> + Send>>;

#[tonic::async_trait]
impl watch_server::Watch for Watch {
    type WatchStream = Responses;

    async fn watch(
        &self,
        request: Request<Streaming<WatchRequest>>,
    ) -> Result<Response<Responses>, Status> {
        let watches = Watches {
            state: Arc::clone(&self.0),
            requests: request.into_inner(),
            has_requests: true,
            events: self.0.events.subscribe(),
            ids: Vec::new(),
            ready: VecDeque::new(),
        };
        let responses = stream::try_unfold(watches, |mut watches| async move {
            let response = watches.next().await?;
            Ok(Some((response, watches)))
        });
        Ok(Response::new(Box::pin(responses)))
    }
}

// === impl Watches ===

impl Watches {
    async fn next(&mut self) -> Result<WatchResponse, Status> {
        loop {
            if let Some(response) = self.ready.pop_front() {
                return Ok(response);
            }
            tokio::select! {
                request = self.requests.message(), if self.has_requests => match request? {
                    Some(request) => self.on_request(request)?,
                    None => self.has_requests = false,
                },
                event = self.events.recv() => self.on_event(event)?,
            }
        }
    }

    fn on_request(&mut self, request: WatchRequest) -> Result<(), Status> {
        let Some(RequestUnion::CreateRequest(_)) = request.request_union else {
            return Err(unimplemented());
        };
        let watch_id = i64::try_from(self.ids.len()).unwrap_or(i64::MAX);
        self.ids.push(watch_id);
        self.ready.push_back(WatchResponse {
            header: self.state.header(),
            watch_id,
            created: true,
            ..WatchResponse::default()
        });
        Ok(())
    }

    fn on_event(&mut self, first: Result<Event, RecvError>) -> Result<(), Status> {
        let mut events = vec![first.map_err(|_lagged| Status::data_loss("the watch lagged"))?];
        while events.len() < BATCH_EVENTS_MAX
            && let Ok(event) = self.events.try_recv()
        {
            events.push(event);
        }
        let header = self.state.header();
        self.ready.extend(self.ids.iter().map(|&watch_id| WatchResponse {
            header,
            watch_id,
            events: events.clone(),
            ..WatchResponse::default()
        }));
        Ok(())
    }
}
