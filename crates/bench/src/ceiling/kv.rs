//! The KV service of a ceiling: decodes, answers, and logs writes if there is a log.

use std::{pin::Pin, sync::Arc};

use etcd_api::etcdserverpb::{
    CompactionRequest, CompactionResponse, DeleteRangeRequest, DeleteRangeResponse, PutRequest,
    PutResponse, RangeRequest, RangeResponse, RangeStreamResponse, RequestOp, ResponseOp,
    TxnRequest, TxnResponse, kv_server, request_op, response_op,
};
use etcd_api::mvccpb::{Event, EventType, KeyValue, KeyValueParts};
use futures::{Stream, StreamExt, stream};
use tonic::{Request, Response, Status};

use super::{State, header};

/// Objects in one chunk of a streamed range.
const CHUNK_OBJECTS: usize = 500;

pub(super) struct Kv(pub(super) Arc<State>);

// === impl Kv ===

impl Kv {
    async fn write(&self, put: PutRequest) -> Result<i64, Status> {
        let revision = self.0.next_revision();
        if self.0.events.receiver_count() > 0 {
            self.publish(&put, revision);
        }
        if let Some(log) = &self.0.log {
            log.append(put).await?;
        }
        Ok(revision)
    }

    fn publish(&self, put: &PutRequest, revision: i64) {
        let kv = KeyValue::new(&KeyValueParts {
            key: &put.key,
            create_revision: revision,
            mod_revision: revision,
            version: 1,
            value: &put.value,
            lease: put.lease,
        });
        // The last watcher may have gone since it was counted.
        drop(self.0.events.send(Event::new(EventType::Put, &kv, None)));
    }

    fn answer_range(&self, request: &RangeRequest) -> RangeResponse {
        let found = self.0.objects.range(&request.key, &request.range_end);
        let count = found.len();
        let shown = match usize::try_from(request.limit) {
            _ if request.count_only => 0,
            Ok(limit @ 1..) => limit.min(count),
            _ => count,
        };
        RangeResponse {
            header: self.0.header(),
            kvs: found[..shown].to_vec(),
            more: !request.count_only && shown < count,
            count: i64::try_from(count).unwrap_or(i64::MAX),
        }
    }

    async fn run(&self, operation: RequestOp) -> Result<response_op::Response, Status> {
        use request_op::Request as Op;
        use response_op::Response as Answer;
        Ok(match operation.request {
            Some(Op::RequestPut(put)) => {
                let header = Some(header(self.write(put).await?));
                Answer::ResponsePut(PutResponse { header, prev_kv: None })
            }
            Some(Op::RequestRange(range)) => Answer::ResponseRange(self.answer_range(&range)),
            Some(Op::RequestDeleteRange(_)) => {
                let header = Some(header(self.0.next_revision()));
                let deleted = DeleteRangeResponse { header, deleted: 1, prev_kvs: vec![] };
                Answer::ResponseDeleteRange(deleted)
            }
            Some(Op::RequestTxn(_)) | None => return Err(unimplemented()),
        })
    }
}

type Chunks = Pin<Box<dyn Stream<Item = Result<RangeStreamResponse, Status>> + Send>>;

#[tonic::async_trait]
impl kv_server::Kv for Kv {
    type RangeStreamStream = Chunks;

    async fn range(
        &self,
        request: Request<RangeRequest>,
    ) -> Result<Response<RangeResponse>, Status> {
        Ok(Response::new(self.answer_range(request.get_ref())))
    }

    async fn range_stream(
        &self,
        request: Request<RangeRequest>,
    ) -> Result<Response<Chunks>, Status> {
        let RangeResponse { header, kvs, more, count } = self.answer_range(request.get_ref());
        let mut chunks: Vec<RangeResponse> = kvs
            .chunks(CHUNK_OBJECTS)
            .map(|kvs| RangeResponse { kvs: kvs.to_vec(), ..RangeResponse::default() })
            .collect();
        chunks.push(RangeResponse { header, kvs: vec![], more, count });
        let wrap = |range| Ok(RangeStreamResponse { range_response: Some(range) });
        Ok(Response::new(stream::iter(chunks).map(wrap).boxed()))
    }

    async fn put(&self, request: Request<PutRequest>) -> Result<Response<PutResponse>, Status> {
        let header = Some(header(self.write(request.into_inner()).await?));
        Ok(Response::new(PutResponse { header, prev_kv: None }))
    }

    async fn delete_range(
        &self,
        _request: Request<DeleteRangeRequest>,
    ) -> Result<Response<DeleteRangeResponse>, Status> {
        let header = Some(header(self.0.next_revision()));
        Ok(Response::new(DeleteRangeResponse { header, deleted: 0, prev_kvs: vec![] }))
    }

    async fn txn(&self, request: Request<TxnRequest>) -> Result<Response<TxnResponse>, Status> {
        let mut responses = Vec::new();
        for operation in request.into_inner().success {
            responses.push(ResponseOp { response: Some(self.run(operation).await?) });
        }
        Ok(Response::new(TxnResponse { header: self.0.header(), succeeded: true, responses }))
    }

    async fn compact(
        &self,
        _request: Request<CompactionRequest>,
    ) -> Result<Response<CompactionResponse>, Status> {
        Err(unimplemented())
    }
}

pub(super) fn unimplemented() -> Status {
    Status::unimplemented("a ceiling only answers what is measured")
}
