//! A range answered in pieces, all of one state.

use std::{pin::Pin, sync::Arc};

use bytes::Bytes;
use etcd_api::{
    ApiError,
    etcdserverpb::{
        RangeRequest, RangeResponse, RangeStreamResponse,
        range_request::{SortOrder, SortTarget},
    },
};
use futures::Stream;
use mvcc::check;
use prost::Message;
use tonic::Status;

use crate::{Error, context::Context, published::State};

/// Key-values in the first piece; later ones grow until they weigh enough.
const FIRST_PIECE_KEYS: i64 = 16;

/// What a piece should weigh: half of it doubles the number of keys of the next one, twice of it
/// halves it.
const PIECE_BYTES: usize = 1024 * 1024;

pub(super) type RangeStream =
    Pin<Box<dyn Stream<Item = Result<RangeStreamResponse, Status>> + Send>>;

/// What is left to send.
struct Pieces {
    context: Arc<Context>,
    /// Held to the end, so that all pieces are of one revision and none is compacted away while the
    /// client reads on.
    state: Arc<State>,
    /// The range that is left.
    rest: RangeRequest,
    /// How many key-values may still be sent.
    keys_left: i64,
    piece_keys: i64,
    /// The number of keys in the whole range, once it is known.
    count: Option<i64>,
    is_done: bool,
}

/// Refuses what cannot be answered in pieces. A target without an order asks for an ascending one;
/// etcd lets that pass, sorts each piece by itself, and goes on behind a key that is not the last.
pub(super) fn check(request: &RangeRequest) -> Result<(), Error> {
    check::range(request).map_err(Error::Request)?;
    let is_sorted = !matches!(
        (request.sort_target(), request.sort_order()),
        (SortTarget::Key, SortOrder::None | SortOrder::Ascend)
    );
    let is_filtered = request.min_mod_revision != 0
        || request.max_mod_revision != 0
        || request.min_create_revision != 0
        || request.max_create_revision != 0;
    match (is_sorted, is_filtered) {
        (true, _) => Err(ApiError::RangeStreamSorted.into()),
        (false, true) => Err(ApiError::RangeStreamFiltered.into()),
        (false, false) => Ok(()),
    }
}

pub(super) fn stream(context: Arc<Context>, request: RangeRequest) -> RangeStream {
    let pieces = Pieces {
        state: context.state(),
        context,
        keys_left: if request.limit > 0 { request.limit } else { i64::MAX },
        rest: request,
        piece_keys: FIRST_PIECE_KEYS,
        count: None,
        is_done: false,
    };
    Box::pin(futures::stream::unfold(pieces, |mut pieces| async move {
        let piece = pieces.next()?;
        let piece = piece.map(|piece| RangeStreamResponse { range_response: Some(piece) });
        Some((piece.map_err(Status::from), pieces))
    }))
}

// === impl Pieces ===

impl Pieces {
    fn next(&mut self) -> Option<Result<RangeResponse, Error>> {
        if self.is_done {
            return None;
        }
        let piece = self.read();
        self.is_done |= piece.is_err();
        Some(piece)
    }

    fn read(&mut self) -> Result<RangeResponse, Error> {
        let limit = self.piece_keys.min(self.keys_left);
        let request = RangeRequest { limit, ..self.rest.clone() };
        let piece = self.state.view.range(&request, &*self.context.kept);
        self.state.go_on().map_err(Error::Keyspace)?;
        let mut piece = piece.map_err(Error::Keyspace)?;
        let count = *self.count.get_or_insert(piece.count);
        self.keys_left -= i64::try_from(piece.kvs.len()).expect("keys fit in memory");
        self.is_done = !piece.more || self.keys_left == 0;
        if self.is_done {
            // Header, count and more come with the last piece.
            self.context.complete(&mut piece.header);
            piece.count = count;
            return Ok(piece);
        }
        self.advance(&piece);
        Ok(RangeResponse { kvs: piece.kvs, ..Default::default() })
    }

    fn advance(&mut self, piece: &RangeResponse) {
        if let Some(last) = piece.kvs.last() {
            // The smallest key behind the last one that was sent.
            let mut next = last.key().to_vec();
            next.push(0);
            self.rest.key = Bytes::from(next);
        }
        match piece.encoded_len() {
            bytes if bytes < PIECE_BYTES / 2 => self.piece_keys = self.piece_keys.saturating_mul(2),
            bytes if bytes > PIECE_BYTES * 2 => self.piece_keys = (self.piece_keys / 2).max(1),
            _ => {}
        }
    }
}
