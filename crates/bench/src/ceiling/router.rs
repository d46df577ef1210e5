//! Finds the service of a request by its path. A general router would cost more than the answer.

use std::{convert::Infallible, pin::Pin, sync::Arc};

use etcd_api::etcdserverpb::{kv_server, lease_server, watch_server};
use http::{Request, Response};
use hyper::body::Incoming;
use tonic::body::Body;
use tower::Service;

use super::{
    State,
    kv::{Kv, unimplemented},
    lease::Lease,
    watch::Watch,
};

#[derive(Clone)]
pub(super) struct Router {
    kv: kv_server::KvServer<Kv>,
    lease: lease_server::LeaseServer<Lease>,
    watch: watch_server::WatchServer<Watch>,
}

// === impl Router ===

impl Router {
    pub(super) fn new(state: &Arc<State>) -> Self {
        Self {
            kv: kv_server::KvServer::new(Kv(Arc::clone(state))),
            lease: lease_server::LeaseServer::new(Lease::new(Arc::clone(state))),
            watch: watch_server::WatchServer::new(Watch(Arc::clone(state))),
        }
    }
}

impl hyper::service::Service<Request<Incoming>> for Router {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let service = request.uri().path().split('/').nth(1);
        match service {
            Some(kv_server::SERVICE_NAME) => self.kv.clone().call(request),
            Some(lease_server::SERVICE_NAME) => self.lease.clone().call(request),
            Some(watch_server::SERVICE_NAME) => self.watch.clone().call(request),
            _ => Box::pin(std::future::ready(Ok(unimplemented().into_http()))),
        }
    }
}
