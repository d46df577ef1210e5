//! A watch stream for one test: what it asks, and what it is told, as text.
//!
//! ```text
//! watch 0 at 1 created
//! watch 0 at 3: put a=x@3 (was w@2), del b@3
//! ```

use std::fmt::Write as _;

use etcd_api::{
    etcdserverpb::{
        WatchCancelRequest, WatchCreateRequest, WatchProgressRequest, WatchRequest, WatchResponse,
        watch_request::RequestUnion,
    },
    mvccpb::{Event, EventType, KeyValue},
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::harness::{Clients, soon};

/// More than any test asks before it listens.
const REQUESTS_MAX: usize = 16;

pub(crate) struct Watching {
    requests: mpsc::Sender<WatchRequest>,
    answers: Streaming<WatchResponse>,
}

/// The client's half of a stream whose requests have ended.
pub(crate) struct HalfClosed(Streaming<WatchResponse>);

// === impl Watching ===

impl Watching {
    pub(crate) async fn open(clients: &mut Clients) -> Self {
        let (requests, queue) = mpsc::channel(REQUESTS_MAX);
        let answers = clients.watch.watch(ReceiverStream::new(queue)).await.expect("may watch");
        Self { requests, answers: answers.into_inner() }
    }

    /// A stream with one watch, which was created.
    pub(crate) async fn of(clients: &mut Clients, create: WatchCreateRequest) -> Self {
        let mut watching = Self::open(clients).await;
        watching.create(create).await;
        let created = watching.answer().await;
        assert!(created.created && !created.canceled, "{}", told(&created));
        watching
    }

    pub(crate) async fn create(&self, create: WatchCreateRequest) {
        self.ask(RequestUnion::CreateRequest(create)).await;
    }

    pub(crate) async fn cancel(&self, watch_id: i64) {
        self.ask(RequestUnion::CancelRequest(WatchCancelRequest { watch_id })).await;
    }

    pub(crate) async fn ask_progress(&self) {
        self.ask(RequestUnion::ProgressRequest(WatchProgressRequest {})).await;
    }

    /// The next answer as it came.
    pub(crate) async fn answer(&mut self) -> WatchResponse {
        next(&mut self.answers).await
    }

    /// The next answer as text.
    pub(crate) async fn told(&mut self) -> String {
        told(&self.answer().await)
    }

    /// The next so many events, however they come.
    pub(crate) async fn events(&mut self, number: usize) -> Vec<Event> {
        let mut events = Vec::new();
        while events.len() < number {
            events.extend(self.answer().await.events);
        }
        events
    }

    /// The next so many events as text, each after the id of its watch. Which of them share an answer
    /// is the store's choice.
    pub(crate) async fn heard(&mut self, number: usize) -> Vec<String> {
        let mut heard = Vec::new();
        while heard.len() < number {
            let answer = self.answer().await;
            let id = answer.watch_id;
            heard.extend(answer.events.iter().map(|change| format!("{id}: {}", event(change))));
        }
        heard
    }

    /// Says that nothing more will be asked.
    pub(crate) fn half_close(self) -> HalfClosed {
        HalfClosed(self.answers)
    }

    async fn ask(&self, request: RequestUnion) {
        let request = WatchRequest { request_union: Some(request) };
        self.requests.send(request).await.expect("the stream goes on");
    }
}

// === impl HalfClosed ===

impl HalfClosed {
    pub(crate) async fn told(&mut self) -> String {
        told(&next(&mut self.0).await)
    }
}

/// A watch of `[key, range_end)` from a revision on, 0 for now.
pub(crate) fn range(key: &str, range_end: &str, start_revision: i64) -> WatchCreateRequest {
    WatchCreateRequest {
        key: key.to_owned().into(),
        range_end: range_end.to_owned().into(),
        start_revision,
        ..Default::default()
    }
}

/// A watch of every key from a revision on, 0 for now.
pub(crate) fn everything(start_revision: i64) -> WatchCreateRequest {
    range("\0", "\0", start_revision)
}

async fn next(answers: &mut Streaming<WatchResponse>) -> WatchResponse {
    soon(answers.message()).await.expect("the stream goes on").expect("the stream goes on")
}

fn told(answer: &WatchResponse) -> String {
    let revision = answer.header.as_ref().expect("every answer has a header").revision;
    let mut text = format!("watch {} at {revision}", answer.watch_id);
    for (is_said, word) in
        [(answer.created, " created"), (answer.canceled, " canceled"), (answer.fragment, " part")]
    {
        text += if is_said { word } else { "" };
    }
    if answer.compact_revision != 0 {
        write!(text, " compacted {}", answer.compact_revision).expect("a string has room");
    }
    if !answer.cancel_reason.is_empty() {
        write!(text, " because {}", answer.cancel_reason).expect("a string has room");
    }
    let events: Vec<String> = answer.events.iter().map(event).collect();
    if !events.is_empty() {
        write!(text, ": {}", events.join(", ")).expect("a string has room");
    }
    text
}

fn event(event: &Event) -> String {
    let kv = event.kv();
    let (key, mod_revision) = (kv.key().escape_ascii(), kv.mod_revision());
    let mut text = match event.kind() {
        EventType::Put => format!("put {key}={}", version(&kv)),
        EventType::Delete => format!("del {key}@{mod_revision}"),
    };
    if let Some(before) = event.prev_kv() {
        write!(text, " (was {})", version(&before)).expect("a string has room");
    }
    text
}

fn version(kv: &KeyValue) -> String {
    format!("{}@{}", kv.value().escape_ascii(), kv.mod_revision())
}
