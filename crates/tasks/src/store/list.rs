//! Lists at one revision, page by page.

use bytes::{BufMut, Bytes, BytesMut};
use etcd_api::etcdserverpb::RangeRequest;
use etcd_api::mvccpb::KeyValue;

use super::{Error, Store, error};
use crate::core::id::{Revision, TaskId};
use crate::core::keys::{Key, KeyRange};
use crate::core::record::{Record, RecordError};
use crate::core::txn::AnswerError;

/// Keys asked for at once, so that no answer is too large.
const PAGE_KEYS: usize = 500;
/// What one page of [`Store::page`] may have.
pub const PAGE_MAX: usize = 1000;

/// All of a range.
#[derive(Clone, Debug)]
pub struct Listed {
    pub kvs: Vec<KeyValue>,
    pub revision: Revision,
}

/// Some tasks, in order of their ids.
#[derive(Clone, Debug)]
pub struct Page {
    pub tasks: Vec<Result<Record, RecordError>>,
    /// All pages after this one are to be read at it.
    pub revision: Revision,
    /// The last task of the page; `None` if no further page follows.
    pub next_after: Option<TaskId>,
}

/// What to list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) range: KeyRange,
    /// `None`: as it is now.
    pub(super) at: Option<Revision>,
    pub(super) is_keys_only: bool,
}

// === impl Store ===

impl Store {
    /// Everything in a range, at one revision.
    pub async fn list(&self, range: KeyRange) -> Result<Listed, Error> {
        self.list_all(Wanted { range, at: None, is_keys_only: false }).await
    }

    /// The tasks after `after`, at most `limit` of them and [`PAGE_MAX`]. The first page is read as
    /// things are; the others at its revision, so that all of them show one moment.
    /// [`Error::Compacted`]: the store has forgotten it.
    pub async fn page(
        &self,
        after: Option<TaskId>,
        at: Option<Revision>,
        limit: usize,
    ) -> Result<Page, Error> {
        let wanted = Wanted { range: KeyRange::TASKS, at, is_keys_only: false };
        let start = match after {
            Some(id) => successor(&Key::Task(id).to_bytes()),
            None => Bytes::from_static(KeyRange::TASKS.start),
        };
        let piece = self.piece(wanted, start, limit.clamp(1, PAGE_MAX)).await?;
        let last = piece.kvs.last().and_then(|kv| match Key::parse(kv.key()) {
            Ok(Key::Task(id)) => Some(id),
            _ => None,
        });
        Ok(Page {
            tasks: piece.kvs.iter().map(Record::decode).collect(),
            revision: piece.revision,
            next_after: last.filter(|_| piece.has_more),
        })
    }

    pub(super) async fn list_all(&self, wanted: Wanted) -> Result<Listed, Error> {
        let start = Bytes::from_static(wanted.range.start);
        let mut piece = self.piece(wanted, start, PAGE_KEYS).await?;
        let revision = piece.revision;
        let mut kvs = std::mem::take(&mut piece.kvs);
        while piece.has_more {
            let start = kvs.last().map_or_else(Bytes::new, |kv| successor(kv.key()));
            let wanted = Wanted { at: Some(revision), ..wanted };
            piece = self.piece(wanted, start, PAGE_KEYS).await?;
            kvs.append(&mut piece.kvs);
        }
        Ok(Listed { kvs, revision })
    }

    async fn piece(&self, wanted: Wanted, start: Bytes, limit: usize) -> Result<Piece, Error> {
        let request = RangeRequest {
            key: start,
            range_end: Bytes::from_static(wanted.range.end),
            limit: i64::try_from(limit).expect("pages are small"),
            revision: wanted.at.map_or(0, |at| at.0),
            keys_only: wanted.is_keys_only,
            ..Default::default()
        };
        let response = error::answered(self.kv.clone().range(request)).await?;
        let header = response.header.ok_or(Error::Answer(AnswerError::NoHeader))?;
        let revision = wanted.at.unwrap_or(Revision(header.revision));
        Ok(Piece { kvs: response.kvs, revision, has_more: response.more })
    }
}

/// One answer's worth of a list.
struct Piece {
    kvs: Vec<KeyValue>,
    revision: Revision,
    has_more: bool,
}

/// The smallest key after `key`.
fn successor(key: &[u8]) -> Bytes {
    let mut next = BytesMut::with_capacity(key.len() + 1);
    next.put_slice(key);
    next.put_u8(0);
    next.freeze()
}
