//! `etcdserverpb.KV`.

use std::sync::Arc;

use etcd_api::{
    ApiError,
    etcdserverpb::{
        CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse, PutRequest,
        PutResponse, RangeRequest, RangeResponse, TxnRequest, TxnResponse, kv_server::Kv,
    },
};
use mvcc::{Leases, Revision, View, check};
use prost::Message;
use tonic::{Request, Response, Status};

use super::range_stream::{self, RangeStream};
use crate::{
    Error,
    auth::{self, Access, Caller},
    context::Context,
    quota,
};

/// Serves clients, and the services that are made of keys and act for their callers.
#[derive(Clone)]
pub(crate) struct KvService {
    context: Arc<Context>,
}

// === impl KvService ===

impl KvService {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }

    /// Who asks, if that can be told. What makes no sense is refused first, whoever asks, as in etcd.
    pub(super) fn caller<T>(&self, request: &Request<T>) -> Result<Caller, Error> {
        self.context.check_healthy()?;
        self.context.caller(request.metadata().as_ref(), request.extensions())
    }

    fn check_size(&self, request: &impl Message) -> Result<(), Error> {
        if request.encoded_len() > self.context.options.limits.request_bytes_max {
            return Err(ApiError::RequestTooLarge.into());
        }
        Ok(())
    }

    /// Reads in the newest durable state, which is at least as new as any write that was answered.
    fn read<R>(
        &self,
        caller: &Caller,
        permit: impl FnOnce(Access<'_>) -> Result<(), auth::Error>,
        read: impl FnOnce(&View) -> Result<R, mvcc::Error>,
    ) -> Result<R, Error> {
        let auth = self.context.gate.state();
        permit(auth.access(caller)).map_err(Error::Auth)?;
        let answer = read(&self.context.state().view).map_err(Error::Keyspace)?;
        let auth = self.context.gate.state();
        auth.access(caller).unchanged().map_err(Error::Auth)?;
        Ok(answer)
    }

    pub(super) fn range(
        &self,
        request: &RangeRequest,
        caller: Result<Caller, Error>,
    ) -> Result<RangeResponse, Error> {
        check::range(request).map_err(Error::Request)?;
        let mut response = self.read(
            &caller?,
            |access| access.range(&request.key, &request.range_end),
            |view| view.range(request, &*self.context.kept),
        )?;
        self.context.metrics.on_range();
        self.context.complete(&mut response.header);
        Ok(response)
    }

    async fn put(
        &self,
        request: PutRequest,
        caller: Result<Caller, Error>,
    ) -> Result<PutResponse, Error> {
        check::put(&request).map_err(Error::Request)?;
        let caller = caller?;
        self.check_size(&request)?;
        self.context.check_room(quota::put_cost(&request)).await?;
        let mut response = self.context.sequencer.put(request, caller).await?;
        self.context.metrics.on_put();
        self.context.complete(&mut response.header);
        Ok(response)
    }

    pub(super) async fn delete_range(
        &self,
        request: DeleteRangeRequest,
        caller: Result<Caller, Error>,
    ) -> Result<DeleteRangeResponse, Error> {
        check::delete_range(&request).map_err(Error::Request)?;
        let caller = caller?;
        self.check_size(&request)?;
        let mut response = self.context.sequencer.delete_range(request, caller).await?;
        self.context.metrics.on_delete();
        self.context.complete(&mut response.header);
        Ok(response)
    }

    pub(super) async fn txn(
        &self,
        request: TxnRequest,
        caller: Result<Caller, Error>,
    ) -> Result<TxnResponse, Error> {
        check::txn(&request, self.context.options.limits.txn_ops_max).map_err(Error::Request)?;
        let caller = caller?;
        let mut response = if mvcc::is_read_only(&request) {
            self.context.confirm().await?;
            self.read(
                &caller,
                |access| access.txn(&request, &Leases::default()),
                |view| view.txn(&request, &*self.context.kept),
            )?
        } else {
            self.check_size(&request)?;
            let cost = quota::txn_cost(&request);
            if cost > 0 {
                self.context.check_room(cost).await?;
            }
            self.context.sequencer.txn(request, caller).await?
        };
        self.context.metrics.on_txn(&response);
        self.context.complete(&mut response.header);
        Ok(response)
    }

    async fn compact(
        &self,
        request: Request<CompactionRequest>,
    ) -> Result<CompactionResponse, Error> {
        let caller = self.caller(&request)?;
        self.context.gate.state().access(&caller).admin().map_err(Error::Auth)?;
        let request = request.into_inner();
        let to = Revision(request.revision);
        let compacted = self.context.sequencer.compact(to, request.physical).await?;
        Ok(CompactionResponse { header: Some(self.context.header(compacted.revision)) })
    }

    fn range_stream(&self, request: Request<RangeRequest>) -> Result<RangeStream, Error> {
        range_stream::check(request.get_ref())?;
        let caller = self.caller(&request)?;
        let request = request.into_inner();
        let auth = self.context.gate.state();
        auth.access(&caller).range(&request.key, &request.range_end).map_err(Error::Auth)?;
        Ok(range_stream::stream(self.context.clone(), request))
    }
}

#[tonic::async_trait]
impl Kv for KvService {
    type RangeStreamStream = RangeStream;

    async fn range(
        &self,
        request: Request<RangeRequest>,
    ) -> Result<Response<RangeResponse>, Status> {
        let caller = self.caller(&request);
        if !request.get_ref().serializable {
            self.context.confirm().await?;
        }
        Ok(Response::new(self.range(request.get_ref(), caller)?))
    }

    async fn range_stream(
        &self,
        request: Request<RangeRequest>,
    ) -> Result<Response<RangeStream>, Status> {
        if !request.get_ref().serializable {
            self.context.confirm().await?;
        }
        Ok(Response::new(self.range_stream(request)?))
    }

    async fn put(&self, request: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        let caller = self.caller(&request);
        Ok(Response::new(self.put(request.into_inner(), caller).await?))
    }

    async fn delete_range(
        &self,
        request: Request<DeleteRangeRequest>,
    ) -> Result<Response<DeleteRangeResponse>, Status> {
        let caller = self.caller(&request);
        Ok(Response::new(self.delete_range(request.into_inner(), caller).await?))
    }

    async fn txn(&self, request: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        let caller = self.caller(&request);
        Ok(Response::new(self.txn(request.into_inner(), caller).await?))
    }

    async fn compact(
        &self,
        request: Request<CompactionRequest>,
    ) -> Result<Response<CompactionResponse>, Status> {
        Ok(Response::new(self.compact(request).await?))
    }
}
