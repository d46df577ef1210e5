//! A client that watches, resumes where it stopped when the stream breaks, and records every
//! delivery.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use etcd_api::etcdserverpb as pb;
use pb::watch_request::RequestUnion;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use super::Shared;
use super::translate::{bounds, current_revision, event, is_unknown};
use crate::check::history::Interval;
use crate::check::watch::{Delivery, Subscription};
use crate::client::Client;
use crate::wait::Patience;

/// How long a store may be away.
const BACK_WAIT: Duration = Duration::from_secs(90);

/// How long a watcher waits for an answer before it asks for progress.
const IDLE_WAIT: Duration = Duration::from_millis(100);

/// Requests on their way: one watch, and progress requests of which only one is open at a time.
const REQUESTS_MAX: usize = 4;

/// How long a watcher that is to end may take to hear of the last revision.
const END_REQUESTS_MAX: usize = 600;

#[derive(Clone, Debug)]
pub struct WatcherOptions {
    pub interval: Interval,
    pub wants_previous: bool,
    pub wants_fragments: bool,
}

struct Watcher {
    client: Client,
    options: WatcherOptions,
    /// The first revision not yet seen or promised.
    next: i64,
    deliveries: Vec<Delivery>,
}

/// An open stream.
struct Open {
    requests: mpsc::Sender<pb::WatchRequest>,
    responses: Streaming<pb::WatchResponse>,
}

/// Watches from revision 1 until the run is over and everything up to then was seen.
pub async fn watcher(
    client: Client,
    options: WatcherOptions,
    shared: Shared,
) -> Result<Subscription> {
    let mut watcher = Watcher { client, options, next: 1, deliveries: Vec::new() };
    while !shared.is_over() {
        let mut open = watcher.connect().await?;
        while !shared.is_over() && watcher.hear(&mut open).await? {}
    }
    let mut open = watcher.connect().await?;
    let last = current_revision(&watcher.client).await?;
    for _ in 0..END_REQUESTS_MAX {
        if watcher.next > last {
            break;
        }
        ensure!(watcher.hear(&mut open).await?, "the stream broke after the run");
    }
    Ok(Subscription {
        interval: watcher.options.interval,
        start: 1,
        wants_previous: watcher.options.wants_previous,
        deliveries: watcher.deliveries,
        complete_to: last,
    })
}

// === impl Watcher ===

impl Watcher {
    async fn connect(&mut self) -> Result<Open> {
        if !self.deliveries.is_empty() {
            self.deliveries.push(Delivery::Resumed { from: self.next });
        }
        let mut patience = Patience::new("the store to take a watch", BACK_WAIT);
        loop {
            match self.open().await {
                Ok(open) => return Ok(open),
                Err(status) => patience.wait(&status.to_string()).await?,
            }
        }
    }

    async fn open(&self) -> Result<Open, Status> {
        let (key, range_end) = bounds(&self.options.interval);
        let create = pb::WatchCreateRequest {
            key,
            range_end,
            start_revision: self.next,
            prev_kv: self.options.wants_previous,
            fragment: self.options.wants_fragments,
            ..Default::default()
        };
        let (requests, queue) = mpsc::channel(REQUESTS_MAX);
        let sent = requests.try_send(request(RequestUnion::CreateRequest(create)));
        assert!(sent.is_ok(), "an empty queue takes a request");
        let responses = self.client.watch().watch(ReceiverStream::new(queue)).await?.into_inner();
        Ok(Open { requests, responses })
    }

    /// Takes one answer, or asks for progress if none comes. False: the stream is broken.
    async fn hear(&mut self, open: &mut Open) -> Result<bool> {
        match timeout(IDLE_WAIT, open.responses.message()).await {
            Ok(Ok(Some(response))) => self.on_response(&response).map(|()| true),
            Ok(Ok(None)) => Ok(false),
            Ok(Err(status)) if is_unknown(status.code()) => Ok(false),
            Ok(Err(status)) => bail!("a watch was refused: {status}"),
            Err(_elapsed) => {
                let progress = RequestUnion::ProgressRequest(pb::WatchProgressRequest {});
                // Nobody takes requests from a stream that just broke; the next read says so.
                drop(open.requests.try_send(request(progress)));
                Ok(true)
            }
        }
    }

    fn on_response(&mut self, response: &pb::WatchResponse) -> Result<()> {
        ensure!(!response.canceled, "a watch was cancelled: {response:?}");
        if response.created {
            return Ok(());
        }
        let revision = response.header.as_ref().context("an answer has a header")?.revision;
        if response.events.is_empty() {
            self.deliveries.push(Delivery::Progress { revision });
            self.next = self.next.max(revision + 1);
            return Ok(());
        }
        let events: Vec<_> = response.events.iter().map(event).collect();
        let newest = events.last().map_or(0, |event| event.revision);
        if !response.fragment {
            self.next = self.next.max(newest + 1);
        }
        let is_fragment = response.fragment;
        self.deliveries.push(Delivery::Events { revision, events, is_fragment });
        Ok(())
    }
}

fn request(union: RequestUnion) -> pb::WatchRequest {
    pb::WatchRequest { request_union: Some(union) }
}
