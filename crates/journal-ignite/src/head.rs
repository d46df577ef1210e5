//! The one row that every write compares and sets. Whoever changes it has ordered something; whoever
//! finds it changed has lost the role.

use ignite_client::{Row, Value};
use journal::{BatchId, Epoch};
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
}

// === impl Head ===

impl Head {
    /// Of a journal that nobody claimed yet.
    pub(crate) const EMPTY: Self =
        Self { epoch: Epoch(0), revision: Revision::INITIAL, batch: None, earlier: None };

    pub(crate) fn claimed(self) -> Self {
        Self { epoch: Epoch(self.epoch.0 + 1), ..self }
    }

    /// After a batch that ends at `revision`.
    pub(crate) fn appended(self, id: BatchId, revision: Revision) -> Self {
        let is_first_of_epoch = self.batch.is_some_and(|last| last.epoch != id.epoch);
        let earlier = if is_first_of_epoch { self.batch } else { self.earlier };
        Self { revision, batch: Some(id), earlier, ..self }
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
        layout.head.row([
            HEAD_ID.into(),
            FORMAT.into(),
            number(self.epoch.0),
            self.revision.0.into(),
            batch_epoch,
            batch_number,
            earlier_epoch,
            earlier_number,
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

    fn id(epoch: u64, number: u64) -> BatchId {
        BatchId { epoch: Epoch(epoch), number }
    }

    #[test]
    fn a_head_is_the_same_after_the_row() {
        let layout = Layout::new();
        let appended = Head::EMPTY.claimed().appended(id(1, 1), Revision(7));
        for head in [Head::EMPTY, appended, appended.claimed().appended(id(2, 1), Revision(9))] {
            assert_eq!(Head::from_row(&head.to_row(&layout)).unwrap(), head);
        }
    }

    #[test]
    fn the_last_batches_of_two_epochs_are_held() {
        let first =
            Head::EMPTY.claimed().appended(id(1, 1), Revision(2)).appended(id(1, 2), Revision(3));
        assert!(first.holds(id(1, 1)) && first.holds(id(1, 2)));
        assert!(!first.holds(id(1, 3)) && !first.holds(id(2, 1)));
        let second = first.claimed().appended(id(2, 1), Revision(4));
        assert!(second.holds(id(1, 2)) && second.holds(id(2, 1)));
        assert!(!second.holds(id(1, 3)));
    }
}
