//! `etcdserverpb.KV`.

use std::sync::Arc;

use etcd_api::{
    ApiError,
    etcdserverpb::{
        CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse, PutRequest,
        PutResponse, RangeRequest, RangeResponse, TxnRequest, TxnResponse, kv_server::Kv,
        request_op::Request as Op,
    },
};
use mvcc::{Leases, Revision, View, check};
use prost::Message;
use tokio::{sync::Semaphore, task::JoinError};
use tonic::{Request, Response, Status};

use super::range_stream::{self, RangeStream};
use crate::{
    Error,
    auth::{self, Access, Caller},
    context::Context,
    quota,
};

/// A read of more keys than this is done on a thread of its own. On few processors a handful of such
/// reads would otherwise leave no thread of the runtime to answer writes. Above the pages of 500 that
/// Kubernetes asks for, which are done sooner than another thread is woken.
const LONG_READ_KEYS: usize = 1000;

/// Long reads at once: threads, and answers that are gathered in memory. More wait for their turn.
const LONG_READS_MAX: usize = 16;

/// Serves clients, and the services that are made of keys and act for their callers.
#[derive(Clone)]
pub(crate) struct KvService {
    context: Arc<Context>,
    long_reads: Arc<Semaphore>,
}

// === impl KvService ===

impl KvService {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context, long_reads: Arc::new(Semaphore::new(LONG_READS_MAX)) }
    }

    /// Who asks, if that can be told. What makes no sense is refused first, whoever asks, as in etcd.
    pub(super) fn caller<T>(&self, request: &Request<T>) -> Result<Caller, Error> {
        self.context.caller(request.metadata().as_ref(), request.extensions())
    }

    /// Whether a write may be tried at all.
    fn check_write(&self, request: &impl Message) -> Result<(), Error> {
        if request.encoded_len() > self.context.options.limits.request_bytes_max {
            return Err(ApiError::RequestTooLarge.into());
        }
        self.context.check_sound()
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

    fn is_long_range(&self, request: &RangeRequest) -> bool {
        // One key is told from many without loading the state.
        !request.range_end.is_empty()
            && self.context.state().view.keys_read(request) > LONG_READ_KEYS
    }

    fn is_long_txn(&self, request: &TxnRequest) -> bool {
        keys_read(&self.context.state().view, request) > LONG_READ_KEYS
    }

    /// Does a long read where it holds up nobody else.
    async fn aside<R: Send + 'static>(
        &self,
        read: impl FnOnce(&Self) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Error> {
        let turn = Arc::clone(&self.long_reads).acquire_owned().await;
        let turn = turn.expect("nobody closes the semaphore");
        let this = self.clone();
        let work = tokio::task::spawn_blocking(move || {
            let answer = read(&this);
            drop(turn);
            answer
        });
        match work.await.map_err(JoinError::try_into_panic) {
            Ok(answer) => answer,
            // As if the read had been done here.
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            Err(Err(_cancelled)) => Err(Error::Stopped),
        }
    }

    fn read_txn(&self, request: &TxnRequest, caller: &Caller) -> Result<TxnResponse, Error> {
        self.read(
            caller,
            |access| access.txn(request, &Leases::default()),
            |view| view.txn(request, &*self.context.kept),
        )
    }

    async fn put(
        &self,
        request: PutRequest,
        caller: Result<Caller, Error>,
    ) -> Result<PutResponse, Error> {
        check::put(&request).map_err(Error::Request)?;
        let caller = caller?;
        self.check_write(&request)?;
        let room = self.context.promise_room(quota::put_cost(&request)).await?;
        let mut response = self.context.sequencer.put(request, caller, room).await?;
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
        self.check_write(&request)?;
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
            if self.is_long_txn(&request) {
                self.aside(move |kv| kv.read_txn(&request, &caller)).await?
            } else {
                self.read_txn(&request, &caller)?
            }
        } else {
            self.check_write(&request)?;
            let room = match quota::txn_cost(&request) {
                0 => None,
                cost => Some(self.context.promise_room(cost).await?),
            };
            self.context.sequencer.txn(request, caller, room).await?
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
        self.context.check_sound()?;
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

/// The most keys that a transaction's reads look at, whichever branch is taken.
fn keys_read(view: &View, request: &TxnRequest) -> usize {
    let ops = request.success.iter().chain(&request.failure);
    ops.map(|op| match &op.request {
        Some(Op::RequestRange(range)) => view.keys_read(range),
        Some(Op::RequestTxn(nested)) => keys_read(view, nested),
        Some(Op::RequestPut(_) | Op::RequestDeleteRange(_)) | None => 0,
    })
    .sum()
}

#[tonic::async_trait]
impl Kv for KvService {
    type RangeStreamStream = RangeStream;

    async fn range(
        &self,
        request: Request<RangeRequest>,
    ) -> Result<Response<RangeResponse>, Status> {
        if !request.get_ref().serializable {
            self.context.confirm().await?;
        }
        // Known by the newest users and roles, which the look before may have brought.
        let caller = self.caller(&request);
        let request = request.into_inner();
        Ok(Response::new(if self.is_long_range(&request) {
            self.aside(move |kv| kv.range(&request, caller)).await?
        } else {
            self.range(&request, caller)?
        }))
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
