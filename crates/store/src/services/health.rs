//! `grpc.health.v1.Health`.
//!
//! The one service it knows is the store as a whole, by the empty name. It is serving from the
//! first connection until the writer has ended, or the store begins to stop.

use std::{pin::Pin, sync::Arc};

use etcd_api::{
    ApiError,
    health::{
        HealthCheckRequest, HealthCheckResponse, HealthListRequest, HealthListResponse,
        health_check_response::ServingStatus, health_server::Health,
    },
};
use futures::{Stream, StreamExt, stream};
use tonic::{Request, Response, Status};

use super::status;
use crate::context::Context;

/// The name that stands for the whole store.
const WHOLE: &str = "";

pub(crate) struct HealthService {
    context: Arc<Context>,
}

// === impl HealthService ===

impl HealthService {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }

    /// A watch that went on would hold up the end of the store until it is cut off.
    fn stopping(&self) -> impl Future<Output = ()> + Send + use<> {
        self.context.stopping.clone().cancelled_owned()
    }

    fn current(&self) -> ServingStatus {
        if self.context.stopping.is_cancelled() || self.context.sequencer.has_stopped() {
            ServingStatus::NotServing
        } else {
            ServingStatus::Serving
        }
    }
}

type States = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

#[tonic::async_trait]
impl Health for HealthService {
    type WatchStream = States;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        if request.get_ref().service != WHOLE {
            return Err(status::of_api(ApiError::HealthServiceUnknown));
        }
        Ok(Response::new(response(self.current())))
    }

    async fn list(
        &self,
        _request: Request<HealthListRequest>,
    ) -> Result<Response<HealthListResponse>, Status> {
        let statuses = [(WHOLE.to_owned(), response(self.current()))];
        Ok(Response::new(HealthListResponse { statuses: statuses.into() }))
    }

    /// An unknown service may become known one day, so its stream stays open too.
    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<States>, Status> {
        if request.get_ref().service != WHOLE {
            let unknown = stream::once(async { Ok(response(ServingStatus::ServiceUnknown)) });
            let rest = stream::pending().take_until(self.stopping());
            return Ok(Response::new(Box::pin(unknown.chain(rest))));
        }
        let first = stream::iter([Ok(response(self.current()))]);
        let (sequencer, stopping) = (self.context.sequencer.clone(), self.stopping());
        let last = stream::once(async move {
            tokio::select! {
                () = sequencer.stopped() => {}
                () = stopping => {}
            }
            Ok(response(ServingStatus::NotServing))
        });
        let rest = stream::pending().take_until(self.stopping());
        Ok(Response::new(Box::pin(first.chain(last).chain(rest))))
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}
