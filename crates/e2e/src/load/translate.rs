//! From the wire to histories, and the store's own account of all events.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use etcd_api::etcdserverpb as pb;
use etcd_api::mvccpb::{self, EventType};
use tokio_stream::StreamExt;
use tonic::Code;

use crate::check::history::{Event, Interval, Pair, Truth};
use crate::client::Client;

pub(super) fn pair(kv: &mvccpb::KeyValue) -> Pair {
    Pair {
        key: text(kv.key()),
        value: text(kv.value()),
        create_revision: kv.create_revision(),
        mod_revision: kv.mod_revision(),
        version: kv.version(),
    }
}

pub(super) fn event(event: &mvccpb::Event) -> Event {
    let kv = event.kv();
    Event {
        revision: kv.mod_revision(),
        key: text(kv.key()),
        put: (event.kind() == EventType::Put).then(|| pair(&kv)),
        previous: event.prev_kv().as_ref().map(pair),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Key and range end of an interval, as the API wants them.
pub(super) fn bounds(interval: &Interval) -> (Bytes, Bytes) {
    let end = interval.end.clone().unwrap_or_default();
    (Bytes::from(interval.start.clone()), Bytes::from(end))
}

/// Whether an error leaves open if the call took effect. Any other error is the test's failure.
pub(super) fn is_unknown(code: Code) -> bool {
    matches!(code, Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal)
}

/// All events from revision 1 to the present. Nothing may have been compacted.
pub async fn read_truth(client: &Client) -> Result<Truth> {
    Ok(Truth::new(read_events(client).await?.iter().map(event)))
}

/// The same as the store tells them, by a watch of everything.
pub async fn read_events(client: &Client) -> Result<Vec<mvccpb::Event>> {
    let everything = Bytes::from_static(b"\0");
    let last = current_revision(client).await?;
    let create = pb::WatchCreateRequest {
        key: everything.clone(),
        range_end: everything,
        start_revision: 1,
        prev_kv: true,
        ..Default::default()
    };
    let union = pb::watch_request::RequestUnion::CreateRequest(create);
    let request = pb::WatchRequest { request_union: Some(union) };
    let requests = tokio_stream::once(request).chain(tokio_stream::pending());
    let mut stream = client.watch().watch(requests).await.context("watch everything")?.into_inner();
    let mut events: Vec<mvccpb::Event> = Vec::new();
    while events.last().map_or(1, |event| event.kv().mod_revision()) < last {
        let response = stream.message().await.context("read all events")?;
        let response = response.context("the watch ended early")?;
        if response.canceled {
            bail!("the watch of everything was cancelled: {response:?}");
        }
        events.extend(response.events);
    }
    Ok(events)
}

pub(super) async fn current_revision(client: &Client) -> Result<i64> {
    let key = Bytes::from_static(b"\0");
    let request = pb::RangeRequest { key, count_only: true, ..Default::default() };
    let response = client.kv().range(request).await.context("ask for the revision")?;
    Ok(response.into_inner().header.context("an answer has a header")?.revision)
}
