//! Reading a snapshot: checking it, and loading it into an empty journal.

use std::io::{self, Read};

use bytes::Bytes;
use journal::{Epoch, Image, Journal, MetaChange};
use mvcc::Revision;
use prost::Message;
use sha2::{Digest, Sha256};

use super::{BLOCK_BYTES, MAGIC, PIECE_BYTES_MAX, piece::Piece};
use crate::meta;

/// What a snapshot holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub revision: i64,
    /// Absent if history was never compacted.
    pub compacted: Option<i64>,
    /// Changes of keys, history included.
    pub changes: u64,
    pub leases: u64,
    pub bytes: u64,
}

/// Why a file is not a good snapshot.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the snapshot could not be read at byte {offset}")]
    Io {
        offset: u64,
        #[source]
        source: io::Error,
    },
    #[error("this is not a snapshot of windlass")]
    NotASnapshot,
    #[error("the snapshot has format {found}, this program reads {supported}")]
    Format { found: u8, supported: u8 },
    #[error("the snapshot ends early, at byte {offset}")]
    Truncated { offset: u64 },
    #[error("the snapshot is damaged before byte {offset}")]
    Malformed {
        offset: u64,
        #[source]
        source: prost::DecodeError,
    },
    #[error("the snapshot is damaged before byte {offset}: revision {revision} cannot stand there")]
    OutOfOrder { offset: u64, revision: Revision },
    #[error("a piece of {length} bytes at byte {offset} cannot be right")]
    PieceTooLarge { offset: u64, length: u32 },
    #[error("the snapshot's SHA-256 does not match its content")]
    Digest,
    #[error("the snapshot's meta table is not this program's")]
    Meta {
        #[source]
        source: meta::Error,
    },
    #[error("the snapshot could not be loaded into the journal")]
    Load {
        #[source]
        source: journal::AppendError,
    },
}

/// Checks every byte of a snapshot and tells what it holds.
pub fn verify(snapshot: impl Read) -> Result<Summary, ReadError> {
    read(snapshot, &mut |_| Ok(()))
}

/// Loads a snapshot into an empty journal. The store gets an identity of its own: its clients must
/// not take it for the one the snapshot was made of.
///
/// The digest stands at the end, so verify the snapshot before: what fails half-way leaves half a
/// journal behind. Such a journal says so of itself and is not served.
pub fn restore(
    snapshot: impl Read,
    journal: &dyn Journal,
    epoch: Epoch,
) -> Result<Summary, ReadError> {
    let ingest =
        |image: &Image| journal.ingest(epoch, image).map_err(|source| ReadError::Load { source });
    ingest(&mark(Revision::INITIAL, meta::restore_begun()))?;
    let summary = read(snapshot, &mut |image| {
        image.meta.retain(|change| !meta::is_identity(&change.key));
        ingest(image)
    })?;
    // A snapshot without pieces tells no revision.
    let last = Revision(summary.revision).max(Revision::INITIAL);
    ingest(&mark(last, meta::restore_ended()))?;
    Ok(summary)
}

/// An image of nothing but what a journal says of itself.
fn mark(last: Revision, change: MetaChange) -> Image {
    Image { last, records: Vec::new(), meta: vec![change] }
}

fn read(
    snapshot: impl Read,
    on_image: &mut dyn FnMut(&mut Image) -> Result<(), ReadError>,
) -> Result<Summary, ReadError> {
    let mut reader = Reader { inner: snapshot, digest: Sha256::new(), offset: 0 };
    reader.magic()?;
    let mut summary = Summary::default();
    let mut last = Revision::INITIAL;
    while let Some(piece) = reader.piece()? {
        let offset = reader.offset;
        let image = piece.into_image();
        let mut image = image.map_err(|source| ReadError::Malformed { offset, source })?;
        if let Some(revision) = misplaced(last, &image) {
            return Err(ReadError::OutOfOrder { offset, revision });
        }
        last = image.last;
        summary.add(&image)?;
        on_image(&mut image)?;
    }
    reader.end()?;
    summary.bytes = reader.offset;
    Ok(summary)
}

/// The first revision of a piece that does not follow those before it, or whose changes are out of
/// order or carry another one. A journal refuses such a piece, so no snapshot that holds one is good.
fn misplaced(before: Revision, image: &Image) -> Option<Revision> {
    let mut before = before;
    for record in &image.records {
        let is_ordered = record.changes.is_sorted_by(|one, next| one.sub < next.sub);
        let is_own = record.changes.iter().all(|it| it.kv.mod_revision() == record.revision.0);
        if record.revision <= before || !is_ordered || !is_own {
            return Some(record.revision);
        }
        before = record.revision;
    }
    (image.last < before).then_some(image.last)
}

struct Reader<R> {
    inner: R,
    digest: Sha256,
    offset: u64,
}

// === impl Reader ===

impl<R: Read> Reader<R> {
    fn magic(&mut self) -> Result<(), ReadError> {
        let found = self.take(MAGIC.len()).map_err(|error| match error {
            ReadError::Truncated { .. } => ReadError::NotASnapshot,
            other => other,
        })?;
        let (format, name) = found.split_last().expect("the magic is not empty");
        let (supported, expected) = MAGIC.split_last().expect("the magic is not empty");
        if name != expected {
            return Err(ReadError::NotASnapshot);
        }
        if format != supported {
            return Err(ReadError::Format { found: *format, supported: *supported });
        }
        Ok(())
    }

    /// The next piece, or `None` at the end of them.
    fn piece(&mut self) -> Result<Option<Piece>, ReadError> {
        let offset = self.offset;
        let length = self.take(4)?;
        let length = u32::from_be_bytes(length.as_ref().try_into().expect("four bytes were read"));
        if length == 0 {
            return Ok(None);
        }
        if length > PIECE_BYTES_MAX {
            return Err(ReadError::PieceTooLarge { offset, length });
        }
        let bytes = self.take(length as usize)?;
        let piece = Piece::decode(bytes);
        piece.map(Some).map_err(|source| ReadError::Malformed { offset: self.offset, source })
    }

    fn end(&mut self) -> Result<(), ReadError> {
        let padding = self.offset.next_multiple_of(BLOCK_BYTES) - self.offset;
        self.take(usize::try_from(padding).expect("padding is shorter than a block"))?;
        let expected = self.digest.clone().finalize();
        let found = self.take(expected.len())?;
        if *found != *expected {
            return Err(ReadError::Digest);
        }
        Ok(())
    }

    /// Reads in steps, so that a wrong length costs no more memory than there are bytes.
    fn take(&mut self, length: usize) -> Result<Bytes, ReadError> {
        let mut bytes = Vec::new();
        let read = self.inner.by_ref().take(length as u64).read_to_end(&mut bytes);
        let read = read.map_err(|source| ReadError::Io { offset: self.offset, source })?;
        self.offset += read as u64;
        if read < length {
            return Err(ReadError::Truncated { offset: self.offset });
        }
        self.digest.update(&bytes);
        Ok(bytes.into())
    }
}

// === impl Summary ===

impl Summary {
    fn add(&mut self, image: &Image) -> Result<(), ReadError> {
        self.revision = image.last.0;
        self.changes += image.records.iter().map(|record| record.changes.len() as u64).sum::<u64>();
        if !image.meta.is_empty() {
            let entries = image
                .meta
                .iter()
                .filter_map(|change| Some((change.key.clone(), change.value.clone()?)));
            let meta = meta::Meta::parse(entries.collect());
            let meta = meta.map_err(|source| ReadError::Meta { source })?;
            self.compacted = meta.compacted.map(|Revision(revision)| revision);
            self.leases = meta.leases.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use etcd_api::mvccpb::KeyValue;
    use journal::EmbeddedJournal;
    use mvcc::{Change, Record};

    use super::*;
    use crate::load;

    /// A whole snapshot of one piece, its digest right, with a change of `key` per revision given.
    fn snapshot(last: i64, changes: &[(i64, u32, &str)]) -> Vec<u8> {
        let records = changes.iter().map(|(revision, sub, key)| {
            let kv = KeyValue::tombstone(key.as_bytes(), *revision);
            Record { revision: Revision(*revision), changes: vec![Change { sub: *sub, kv }] }
        });
        let image = Image { last: Revision(last), records: records.collect(), meta: Vec::new() };
        let piece = Piece::new(image).encode_to_vec();
        let length = u32::try_from(piece.len()).unwrap().to_be_bytes();
        sealed(&[&length, &piece[..]].concat())
    }

    /// These pieces between a right beginning and a right end.
    fn sealed(pieces: &[u8]) -> Vec<u8> {
        let mut bytes = [&MAGIC[..], pieces, &[0; 4]].concat();
        bytes.resize(bytes.len().next_multiple_of(BLOCK_BYTES as usize), 0);
        let digest = Sha256::digest(&bytes);
        [&bytes[..], &digest].concat()
    }

    /// A restore that was killed used to leave a folder that was served as if it were whole.
    #[test]
    fn a_journal_is_served_once_all_of_a_snapshot_is_in_it_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let whole = snapshot(9, &[(3, 0, "a"), (7, 0, "b")]);
        let restore_into = |name: &str, bytes: &[u8]| {
            let journal = EmbeddedJournal::open(&folder.path().join(name), Default::default());
            let journal: Arc<dyn Journal> = Arc::new(journal.unwrap());
            let restored = restore(bytes, &*journal, journal.claim().unwrap());
            (restored, load::open(&journal).map(|opened| opened.state.keyspace.revision()))
        };
        let (restored, opened) = restore_into("half", &whole[..whole.len() - 1]);
        assert!(matches!(restored, Err(ReadError::Truncated { .. })), "{restored:?}");
        assert!(matches!(opened, Err(load::LoadError::Meta { source: meta::Error::Restoring })));
        let (restored, opened) = restore_into("whole", &whole);
        assert_eq!((restored.unwrap().revision, opened.unwrap()), (9, Revision(9)));
        let (restored, opened) = restore_into("empty", &sealed(&[]));
        assert_eq!((restored.unwrap().revision, opened.unwrap()), (0, Revision::INITIAL));
    }

    #[test]
    fn gaps_are_what_compaction_leaves() {
        let summary = verify(&*snapshot(9, &[(3, 0, "a"), (7, 0, "b")])).unwrap();
        assert_eq!((summary.revision, summary.changes), (9, 2));
    }

    /// `verify` used to look at the digest alone; an assertion of the journal then ended `restore`
    /// half-way.
    #[test]
    fn a_right_digest_does_not_excuse_a_wrong_order() {
        let check = |last, changes: &[(i64, u32, &str)], revision| {
            let verified = verify(&*snapshot(last, changes));
            let Err(ReadError::OutOfOrder { revision: found, .. }) = verified else {
                panic!("{changes:?} up to {last}: {verified:?}");
            };
            assert_eq!(found, Revision(revision));
        };
        check(9, &[(7, 0, "a"), (3, 0, "b")], 3);
        check(9, &[(7, 1, "a"), (7, 0, "b")], 7);
        check(9, &[(1, 0, "a")], 1);
        check(6, &[(7, 0, "a")], 6);
    }
}
