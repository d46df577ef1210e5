//! Answers, as a story shows them: all that a client can tell apart and that is the same on every
//! store. Ids of servers and the time that a lease has left are not shown.

use std::fmt;

use etcd_api::{
    etcdserverpb::{
        CompactionResponse, DeleteRangeResponse, HashKvResponse, LeaseGrantResponse,
        LeaseRevokeResponse, LeaseTimeToLiveResponse, PutResponse, RangeResponse, ResponseHeader,
        TxnResponse, response_op::Response,
    },
    mvccpb::{Event, EventType, KeyValue},
};

use super::word::Spelled;

/// What a command was answered. `Display` is the text of the story.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Put(PutResponse),
    Range(RangeResponse),
    DeleteRange(DeleteRangeResponse),
    Txn(TxnResponse),
    Compact(CompactionResponse),
    Grant(LeaseGrantResponse),
    Revoke(LeaseRevokeResponse),
    TimeToLive(LeaseTimeToLiveResponse),
    HashKv(HashKvResponse),
    Watch(Vec<Event>),
    /// An error, by its message.
    Refused(String),
}

// === impl Answer ===

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = match self {
            Self::Put(response) => put(response),
            Self::Range(response) => range(response),
            Self::DeleteRange(response) => delete_range(response),
            Self::Txn(response) => txn(response),
            Self::Compact(response) => vec![revision(response.header.as_ref())],
            Self::Grant(response) => grant(response),
            Self::Revoke(response) => vec![revision(response.header.as_ref())],
            Self::TimeToLive(response) => time_to_live(response),
            Self::HashKv(response) => hash_kv(response),
            Self::Watch(events) => events.iter().flat_map(event).collect(),
            Self::Refused(message) => vec![format!("error: {message}")],
        };
        lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

fn revision(header: Option<&ResponseHeader>) -> String {
    match header {
        Some(header) => format!("revision {}", header.revision),
        None => "no header".to_owned(),
    }
}

fn put(response: &PutResponse) -> Vec<String> {
    let was = response.prev_kv.iter().map(|kv| format!("  was {}", key_value(kv)));
    std::iter::once(revision(response.header.as_ref())).chain(was).collect()
}

fn range(response: &RangeResponse) -> Vec<String> {
    let more = if response.more { ", more" } else { "" };
    let head = format!("count {}{more}, {}", response.count, revision(response.header.as_ref()));
    let kvs = response.kvs.iter().map(|kv| format!("  {}", key_value(kv)));
    std::iter::once(head).chain(kvs).collect()
}

fn delete_range(response: &DeleteRangeResponse) -> Vec<String> {
    let head = format!("deleted {}, {}", response.deleted, revision(response.header.as_ref()));
    let was = response.prev_kvs.iter().map(|kv| format!("  was {}", key_value(kv)));
    std::iter::once(head).chain(was).collect()
}

fn txn(response: &TxnResponse) -> Vec<String> {
    let outcome = if response.succeeded { "succeeded" } else { "failed" };
    let head = format!("{outcome}, {}", revision(response.header.as_ref()));
    let inner = response.responses.iter().flat_map(|op| {
        let (name, lines) = operation(op.response.as_ref());
        let mut lines = lines.into_iter();
        let first = format!("  {name}: {}", lines.next().unwrap_or_default());
        std::iter::once(first).chain(lines.map(|line| format!("  {line}")))
    });
    std::iter::once(head).chain(inner).collect()
}

fn operation(response: Option<&Response>) -> (&'static str, Vec<String>) {
    match response {
        Some(Response::ResponsePut(response)) => ("put", put(response)),
        Some(Response::ResponseRange(response)) => ("get", range(response)),
        Some(Response::ResponseDeleteRange(response)) => ("del", delete_range(response)),
        Some(Response::ResponseTxn(response)) => ("txn", txn(response)),
        None => ("nothing", Vec::new()),
    }
}

fn grant(response: &LeaseGrantResponse) -> Vec<String> {
    let LeaseGrantResponse { header, id, ttl, .. } = response;
    vec![format!("lease {id} for {ttl} s, {}", revision(header.as_ref()))]
}

/// etcd answers a lease that does not exist with a TTL of −1.
fn time_to_live(response: &LeaseTimeToLiveResponse) -> Vec<String> {
    let head = match response.ttl {
        -1 => format!("no lease {}", response.id),
        _ => format!("lease {} for {} s", response.id, response.granted_ttl),
    };
    let head = format!("{head}, {}", revision(response.header.as_ref()));
    let keys = response.keys.iter().map(|key| format!("  {}", Spelled(key)));
    std::iter::once(head).chain(keys).collect()
}

fn hash_kv(response: &HashKvResponse) -> Vec<String> {
    let HashKvResponse { header, hash, compact_revision, hash_revision } = response;
    let header = revision(header.as_ref());
    vec![format!("{hash:08x} at {hash_revision}, compacted {compact_revision}, {header}")]
}

fn event(event: &Event) -> Vec<String> {
    let kind = match event.kind() {
        EventType::Put => "put",
        EventType::Delete => "delete",
    };
    let head = format!("{kind} {}", key_value(&event.kv()));
    let was = event.prev_kv().map(|kv| format!("  was {}", key_value(&kv)));
    std::iter::once(head).chain(was).collect()
}

/// `KEY: VALUE (FIELDS)`, with the fields that are set.
fn key_value(kv: &KeyValue) -> String {
    let parts = kv.parts();
    let fields = [
        ("create", parts.create_revision),
        ("mod", parts.mod_revision),
        ("version", parts.version),
        ("lease", parts.lease),
    ];
    let set = fields.iter().filter(|(_, number)| *number != 0);
    let fields: Vec<String> = set.map(|(name, number)| format!("{name} {number}")).collect();
    format!("{}: {} ({})", Spelled(parts.key), Spelled(parts.value), fields.join(", "))
}
