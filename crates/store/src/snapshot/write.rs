//! Writing a snapshot, piece by piece, no faster than its reader takes it and writers bear it.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use futures::Stream;
use journal::{Epoch, Image, Journal, MetaChange};
use mvcc::{Position, Record, Revision};
use prost::Message;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep_until};

use super::{BLOCK_BYTES, MAGIC, pace::Pace, piece::Piece};
use crate::{Error, published::State, sequencer::SnapshotPoint, wholeness};

/// Bytes of key-values in a piece, about.
const PIECE_BYTES: usize = 2 * 1024 * 1024;

struct Writer {
    journal: Arc<dyn Journal>,
    /// Held to the end, so that nothing it shows is given up while the client reads on.
    state: Arc<State>,
    /// The term under which this member wrote when it took the state.
    held: Option<Epoch>,
    digest: Sha256,
    written: u64,
    next: Next,
    pace: Pace,
}

/// What comes next.
enum Next {
    Start { meta: Vec<MetaChange> },
    Records { from: Revision },
    End,
    Nothing,
}

/// The bytes of a snapshot of `point`, which was taken under the term `held`.
pub(crate) fn stream(
    journal: Arc<dyn Journal>,
    held: Option<Epoch>,
    point: SnapshotPoint,
) -> impl Stream<Item = Result<Bytes, Error>> + Send {
    let meta = point.meta.into_iter();
    let meta = meta.map(|(key, value)| MetaChange { key, value: Some(value) }).collect();
    let writer = Writer {
        journal,
        pace: Pace::new(point.state.view.revision(), Instant::now()),
        state: point.state,
        held,
        digest: Sha256::new(),
        written: 0,
        next: Next::Start { meta },
    };
    futures::stream::try_unfold(writer, |mut writer| async move {
        sleep_until(writer.pace.not_before).await;
        let work = tokio::task::spawn_blocking(move || {
            let bytes = writer.next();
            (bytes, writer)
        });
        let (bytes, writer) = work.await.expect("writing a snapshot does not panic");
        Ok(bytes?.map(|bytes| (bytes, writer)))
    })
}

// === impl Writer ===

impl Writer {
    /// The next bytes, or `None` at the end. Blocks.
    fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let began = Instant::now();
        let bytes = self.make()?;
        let durable = self.journal.durable().map_err(Error::Journal)?;
        self.pace = self.pace.on_piece(began, Instant::now(), durable);
        Ok(bytes)
    }

    fn make(&mut self) -> Result<Option<Bytes>, Error> {
        let last = self.state.view.revision();
        let bytes = match std::mem::replace(&mut self.next, Next::Nothing) {
            Next::Start { meta } => {
                self.next = Next::Records { from: Revision::INITIAL };
                let first = Image { last: Revision::INITIAL, records: Vec::new(), meta };
                let mut bytes = BytesMut::from(&MAGIC[..]);
                put_piece(&mut bytes, first);
                bytes
            }
            Next::Records { from } => {
                let image = self.read(from, last)?;
                self.next = match image.last {
                    end if end < last => Next::Records { from: end.next() },
                    _ => Next::End,
                };
                let mut bytes = BytesMut::new();
                put_piece(&mut bytes, image);
                bytes
            }
            Next::End => {
                // Without the end, what was sent is no snapshot.
                wholeness::check(&*self.journal, self.held, self.state.view.compacted())?;
                return Ok(Some(self.end()));
            }
            Next::Nothing => return Ok(None),
        };
        self.digest.update(&bytes);
        self.written += bytes.len() as u64;
        Ok(Some(bytes.freeze()))
    }

    fn read(&self, from: Revision, last: Revision) -> Result<Image, Error> {
        let mut records = self.journal.records(from, PIECE_BYTES).map_err(Error::Journal)?;
        self.state.go_on().map_err(Error::Keyspace)?;
        let end = records.last().map_or(last, |record| record.revision.min(last));
        records.retain(|record| record.revision <= last);
        for record in &mut records {
            let revision = record.revision;
            record.changes.retain(|change| {
                self.is_kept(Position::new(revision, change.sub), change.kv.key())
            });
        }
        records.retain(|record: &Record| !record.changes.is_empty());
        Ok(Image { last: end, records, meta: Vec::new() })
    }

    /// The journal may still have what compaction dropped; a snapshot need not.
    fn is_kept(&self, position: Position, key: &[u8]) -> bool {
        let compacted = self.state.view.compacted();
        position.revision >= compacted || self.state.view.is_seen_at(key, position, compacted)
    }

    fn end(&mut self) -> Bytes {
        let mut bytes = BytesMut::new();
        bytes.put_u32(0);
        let written = self.written + bytes.len() as u64;
        let padding = written.next_multiple_of(BLOCK_BYTES) - written;
        bytes.put_bytes(0, usize::try_from(padding).expect("padding is shorter than a block"));
        self.digest.update(&bytes);
        bytes.extend_from_slice(&self.digest.finalize_reset());
        bytes.freeze()
    }
}

fn put_piece(bytes: &mut BytesMut, image: Image) {
    let piece = Piece::new(image);
    let length = u32::try_from(piece.encoded_len()).expect("a piece is far below 4 GiB");
    bytes.reserve(size_of::<u32>() + length as usize);
    bytes.put_u32(length);
    piece.encode(bytes).expect("a growing buffer has room");
}
