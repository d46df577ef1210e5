//! What clients of a stream are told, apart from its header's identity.

use etcd_api::{
    CancelReason,
    etcdserverpb::{ResponseHeader, WatchResponse},
};
use mvcc::Revision;
use prost::Message;

use super::{NO_WATCH, WatchId};

/// Tag and length around an event in a response, at most.
const EVENT_FRAMING_BYTES: usize = 6;

pub(super) fn response(id: WatchId, revision: Revision) -> WatchResponse {
    let header = ResponseHeader { revision: revision.0, ..Default::default() };
    WatchResponse { header: Some(header), watch_id: id, ..Default::default() }
}

pub(super) fn created(id: WatchId, revision: Revision) -> WatchResponse {
    WatchResponse { created: true, ..response(id, revision) }
}

pub(super) fn refused(reason: CancelReason, revision: Revision) -> WatchResponse {
    WatchResponse {
        created: true,
        canceled: true,
        cancel_reason: reason.message().to_owned(),
        ..response(NO_WATCH, revision)
    }
}

pub(super) fn canceled(id: WatchId, revision: Revision) -> WatchResponse {
    WatchResponse { canceled: true, ..response(id, revision) }
}

/// What the watch has not seen is forgotten below `compacted`.
pub(super) fn compacted(id: WatchId, compacted: Revision) -> WatchResponse {
    WatchResponse { canceled: true, compact_revision: compacted.0, ..response(id, Revision(0)) }
}

/// Cuts a response so that each piece stays below `bytes_max`, unless one event alone is larger.
/// All pieces but the last are marked.
pub(super) fn fragments(whole: WatchResponse, bytes_max: usize) -> Vec<WatchResponse> {
    let frame = WatchResponse { events: Vec::new(), fragment: true, ..whole.clone() };
    let mut pieces = vec![frame.clone()];
    let mut bytes = frame.encoded_len();
    for event in whole.events {
        let event_bytes = event.encoded_len() + EVENT_FRAMING_BYTES;
        let piece = pieces.last().expect("there is always a piece");
        if !piece.events.is_empty() && bytes + event_bytes >= bytes_max {
            pieces.push(frame.clone());
            bytes = frame.encoded_len();
        }
        bytes += event_bytes;
        pieces.last_mut().expect("there is always a piece").events.push(event);
    }
    pieces.last_mut().expect("there is always a piece").fragment = false;
    pieces
}
