//! A watch stream of one side: what each watch was told, in the order it was told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use etcd_api::etcdserverpb as pb;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::normal::{self, Names};
use crate::client::Client;

/// Requests on their way to a server that reads one at a time.
const REQUESTS_MAX: usize = 16;

/// How long a server may take to say that a watch was created, or that all have caught up.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// A stream whose watches have not caught up leaves a progress request unanswered; then it is
/// asked again. etcd looks after watches that lag every 100 ms.
const PROGRESS_WAIT: Duration = Duration::from_millis(50);

/// How often it is asked before that is a failure.
const PROGRESS_REQUESTS_MAX: usize = 200;

/// By watch id, what the watch was told, without how it was cut into answers.
pub type Log = BTreeMap<i64, Vec<Value>>;

pub struct Watching {
    requests: mpsc::Sender<pb::WatchRequest>,
    responses: Streaming<pb::WatchResponse>,
    live: BTreeSet<i64>,
    log: Log,
    /// The highest revision that progress was reported for since the last watch was created: what
    /// was said before was not said of that one. Taken for caught up, it would lag behind the next
    /// compaction, be cancelled by it, and keep etcd from ever telling the stream's progress again.
    progress: i64,
    /// The server ended the stream; nothing more will come.
    is_over: bool,
}

// === impl Watching ===

impl Watching {
    /// Opens a stream, with its first watch: some servers answer only once there is a request.
    pub async fn open(client: &Client, first: pb::WatchCreateRequest) -> Result<Self, Status> {
        let (requests, queue) = mpsc::channel(REQUESTS_MAX);
        let sent = requests.try_send(create(first));
        assert!(sent.is_ok(), "an empty queue takes a request");
        let stream = client.request(ReceiverStream::new(queue));
        let responses = client.watch().watch(stream).await?.into_inner();
        Ok(Self {
            requests,
            responses,
            live: BTreeSet::new(),
            log: Log::new(),
            progress: 0,
            is_over: false,
        })
    }

    pub async fn create(&mut self, request: pb::WatchCreateRequest) -> Result<()> {
        self.send(create(request)).await
    }

    pub async fn cancel(&mut self, request: pb::WatchCancelRequest) -> Result<()> {
        let union = pb::watch_request::RequestUnion::CancelRequest(request);
        self.send(pb::WatchRequest { request_union: Some(union) }).await
    }

    async fn send(&mut self, request: pb::WatchRequest) -> Result<()> {
        if self.is_over {
            return Ok(());
        }
        self.requests.send(request).await.context("send on the watch stream")
    }

    /// Reads until a watch is answered for, and returns the answer.
    pub async fn created(&mut self, names: &mut Names) -> Result<Value> {
        loop {
            let Some(response) = self.read(ANSWER_WAIT, names).await? else {
                bail!("no answer to a watch request within {ANSWER_WAIT:?}");
            };
            match response {
                Read::Answer { is_created: true, value, .. } | Read::End(value) => {
                    return Ok(value);
                }
                Read::Answer { .. } => {}
            }
        }
    }

    /// Reads until a watch that begins below the compaction is told so. etcd looks after it within
    /// 100 ms, and tells what is compacted by then.
    pub async fn cancelled(&mut self, id: i64, names: &mut Names) -> Result<()> {
        while self.live.contains(&id) {
            if self.read(ANSWER_WAIT, names).await?.is_none() {
                bail!("watch {id} below the compaction was not cancelled within {ANSWER_WAIT:?}");
            }
        }
        Ok(())
    }

    /// Reads until all watches have caught up with a revision.
    pub async fn settle(&mut self, revision: i64, names: &mut Names) -> Result<()> {
        for _ in 0..PROGRESS_REQUESTS_MAX {
            if self.live.is_empty() || self.is_over || self.progress >= revision {
                return Ok(());
            }
            let progress = pb::WatchProgressRequest {};
            let union = pb::watch_request::RequestUnion::ProgressRequest(progress);
            self.send(pb::WatchRequest { request_union: Some(union) }).await?;
            while let Some(Read::Answer { is_progress: false, .. }) =
                self.read(PROGRESS_WAIT, names).await?
            {}
        }
        bail!("watches did not catch up with revision {revision}; progress: {}", self.progress)
    }

    /// Takes what has arrived by now.
    pub async fn drain(&mut self, names: &mut Names) -> Result<&Log> {
        while !self.is_over && self.read(Duration::ZERO, names).await?.is_some() {}
        Ok(&self.log)
    }

    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }

    async fn read(&mut self, bound: Duration, names: &mut Names) -> Result<Option<Read>> {
        match timeout(bound, self.responses.message()).await {
            Err(_elapsed) => Ok(None),
            Ok(Ok(Some(response))) => self.on_response(response, names).map(Some),
            Ok(Ok(None)) => Ok(Some(self.on_end(json!("end of stream")))),
            Ok(Err(status)) => Ok(Some(self.on_end(normal::error(&status)))),
        }
    }

    fn on_end(&mut self, value: Value) -> Read {
        self.is_over = true;
        self.live.clear();
        self.log.entry(i64::MAX).or_default().push(value.clone());
        Read::End(value)
    }

    fn on_response(&mut self, response: pb::WatchResponse, names: &mut Names) -> Result<Read> {
        let header = response.header.context("a watch answer has a header")?;
        let is_plain = !response.created && !response.canceled && response.events.is_empty();
        if is_plain {
            self.progress = self.progress.max(header.revision);
            return Ok(Read::Answer { is_created: false, is_progress: true, value: Value::Null });
        }
        let newest = response.events.iter().map(|event| event.kv().mod_revision()).max();
        if newest.is_some_and(|newest| newest > header.revision) {
            bail!("an event at {newest:?} under a header at {}", header.revision);
        }
        if response.created && !response.canceled {
            self.live.insert(response.watch_id);
            self.progress = 0;
        }
        if response.canceled {
            self.live.remove(&response.watch_id);
        }
        let log = self.log.entry(response.watch_id).or_default();
        let is_created = response.created;
        let value = if response.created || response.canceled {
            let value = names.answer(&response);
            log.push(value.clone());
            value
        } else {
            log.extend(response.events.iter().map(|event| names.answer(event)));
            Value::Null
        };
        Ok(Read::Answer { is_created, is_progress: false, value })
    }
}

/// What came on the stream.
enum Read {
    Answer { is_created: bool, is_progress: bool, value: Value },
    End(Value),
}

fn create(request: pb::WatchCreateRequest) -> pb::WatchRequest {
    let union = pb::watch_request::RequestUnion::CreateRequest(request);
    pb::WatchRequest { request_union: Some(union) }
}
