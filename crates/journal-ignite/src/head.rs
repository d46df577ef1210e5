//! The one row that every write compares and sets. Whoever changes it has ordered something; whoever
//! finds it changed has lost the role.

use ignite_client::{Row, Value};
use journal::{Batch, BatchId, Epoch};
use mvcc::Revision;

use crate::{
    Error,
    layout::{FORMAT, HEAD_ID, Layout},
};

/// How things stand.
///
/// For example after the second claim, whose writer has appended nothing yet: epoch 2, the last
/// batch is the last of epoch 1, and nothing is earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) epoch: Epoch,
    pub(crate) revision: Revision,
    /// The last batch, and the last of the epoch before that batch's.
    pub(crate) batch: Option<BatchId>,
    pub(crate) earlier: Option<BatchId>,
    /// The last batch that changed what followers read of META.
    pub(crate) meta: Option<BatchId>,
    /// No change above this revision was ever forgotten: what is missing there is a fault.
    pub(crate) forgotten: Revision,
}

// === impl Head ===

impl Head {
    /// Of a journal that nobody claimed yet.
    pub(crate) const EMPTY: Self = Self {
        epoch: Epoch(0),
        revision: Revision::INITIAL,
        batch: None,
        earlier: None,
        meta: None,
        forgotten: Revision::INITIAL,
    };

    pub(crate) fn claimed(self) -> Self {
        Self { epoch: Epoch(self.epoch.0 + 1), ..self }
    }

    pub(crate) fn appended(self, batch: &Batch) -> Self {
        let id = batch.id;
        let is_first_of_epoch = self.batch.is_some_and(|last| last.epoch != id.epoch);
        Self {
            revision: batch.last().unwrap_or(self.revision),
            batch: Some(id),
            earlier: if is_first_of_epoch { self.batch } else { self.earlier },
            meta: if batch.is_news() { Some(id) } else { self.meta },
            ..self
        }
    }

    /// After a piece of an image, which may leave out whatever it likes.
    pub(crate) fn filled(self, last: Revision) -> Self {
        Self { revision: last, forgotten: last, ..self }
    }

    pub(crate) fn forgot(self, newest: Revision) -> Self {
        Self { forgotten: self.forgotten.max(newest), ..self }
    }

    /// Batches of an epoch are in order, so the last one stands for those before it.
    pub(crate) fn holds(&self, id: BatchId) -> bool {
        [self.batch, self.earlier]
            .into_iter()
            .flatten()
            .any(|last| last.epoch == id.epoch && last.number >= id.number)
    }

    pub(crate) fn to_row(self, layout: &Layout) -> Row {
        let number = |number: u64| Value::I64(number.cast_signed());
        let batch =
            |id: Option<BatchId>| id.map_or([0, 0], |id| [id.epoch.0, id.number]).map(number);
        let [batch_epoch, batch_number] = batch(self.batch);
        let [earlier_epoch, earlier_number] = batch(self.earlier);
        let [meta_epoch, meta_number] = batch(self.meta);
        layout.head.row([
            HEAD_ID.into(),
            FORMAT.into(),
            number(self.epoch.0),
            self.revision.0.into(),
            batch_epoch,
            batch_number,
            earlier_epoch,
            earlier_number,
            meta_epoch,
            meta_number,
            self.forgotten.0.into(),
        ])
    }

    pub(crate) fn from_row(row: &Row) -> Result<Self, Error> {
        let batch = |epoch: &'static str, number: &'static str| {
            let epoch = Epoch(natural(row, epoch)?);
            let id = BatchId { epoch, number: natural(row, number)? };
            Ok::<_, Error>((epoch.0 != 0).then_some(id))
        };
        Ok(Self {
            epoch: Epoch(natural(row, "EPOCH")?),
            revision: Revision(natural(row, "REV")?.cast_signed()),
            batch: batch("BATCH_EPOCH", "BATCH_NUMBER")?,
            earlier: batch("EARLIER_EPOCH", "EARLIER_NUMBER")?,
            meta: batch("META_EPOCH", "META_NUMBER")?,
            forgotten: Revision(natural(row, "FORGOTTEN")?.cast_signed()),
        })
    }
}

/// The format that a row of HEAD says it is of.
pub(crate) fn format(row: &Row) -> Result<i32, Error> {
    let number = row.get("FORMAT").and_then(Value::as_i64);
    number.and_then(|number| i32::try_from(number).ok()).ok_or_else(|| bad(row, "FORMAT"))
}

fn natural(row: &Row, column: &'static str) -> Result<u64, Error> {
    let number = row.get(column).and_then(Value::as_i64);
    number.and_then(|number| u64::try_from(number).ok()).ok_or_else(|| bad(row, column))
}

fn bad(row: &Row, column: &'static str) -> Error {
    Error::BadRow { table: "HEAD", column, found: format!("{:?}", row.get(column)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    use bytes::Bytes;
    use journal::{
        MetaChange,
        suite::{put, record},
    };

    fn id(epoch: u64, number: u64) -> BatchId {
        BatchId { epoch: Epoch(epoch), number }
    }

    /// A batch that ends at this revision.
    fn batch(epoch: u64, number: u64, revision: i64) -> Batch {
        let records = vec![record(revision, [put(revision, "k", b"")])];
        Batch { id: id(epoch, number), records, meta: Vec::new() }
    }

    #[test]
    fn a_head_is_the_same_after_the_row() {
        let layout = Layout::new();
        let appended = Head::EMPTY.claimed().appended(&batch(1, 1, 7));
        for head in [
            Head::EMPTY,
            appended,
            appended.claimed().appended(&batch(2, 1, 9)).forgot(Revision(8)),
            Head::EMPTY.claimed().filled(Revision(12)),
        ] {
            assert_eq!(Head::from_row(&head.to_row(&layout)).unwrap(), head);
        }
    }

    #[test]
    fn the_last_batches_of_two_epochs_are_held() {
        let first = Head::EMPTY.claimed().appended(&batch(1, 1, 2)).appended(&batch(1, 2, 3));
        assert!(first.holds(id(1, 1)) && first.holds(id(1, 2)));
        assert!(!first.holds(id(1, 3)) && !first.holds(id(2, 1)));
        let second = first.claimed().appended(&batch(2, 1, 4));
        assert!(second.holds(id(1, 2)) && second.holds(id(2, 1)));
        assert!(!second.holds(id(1, 3)));
    }

    #[test]
    fn the_last_batch_of_meta_is_remembered() {
        let change = MetaChange { key: Bytes::from_static(b"a"), value: None };
        let of_meta = Batch { id: id(1, 1), records: Vec::new(), meta: vec![change] };
        let head = Head::EMPTY.claimed().appended(&of_meta);
        assert_eq!((head.meta, head.revision), (Some(id(1, 1)), Revision::INITIAL));
        assert_eq!(head.appended(&batch(1, 2, 2)).meta, Some(id(1, 1)));
    }

    #[test]
    fn a_lease_is_no_news_to_followers() {
        let lease = MetaChange { key: Bytes::from_static(b"lease/1"), value: None };
        let granted = Batch { id: id(1, 2), records: Vec::new(), meta: vec![lease.clone()] };
        let head = Head::EMPTY.claimed();
        assert_eq!(head.appended(&granted).meta, None);
        let other = MetaChange { key: Bytes::from_static(b"compacted"), value: None };
        let both = Batch { meta: vec![lease, other], ..granted };
        assert_eq!(head.appended(&both).meta, Some(id(1, 2)));
    }
}
