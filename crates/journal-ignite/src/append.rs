//! Writing: one transaction that compares and sets the head and changes the rows beside it.

use ignite_client::Mode;
use journal::{AppendError, Batch, Epoch, Image};
use mvcc::{Record, Revision};

use crate::{
    Error,
    grid::{Attempts, Grid, GridError, Writer},
    head::Head,
    rows::Changes,
};

/// Far above what the store gathers, and below what one message may take.
const BATCH_BYTES_MAX: usize = 64 << 20;
/// The rest is for what is gathered beside a record.
pub(crate) const RECORD_BYTES_MAX: usize = BATCH_BYTES_MAX / 4 * 3;
const STEP: &str = "append to the journal";

/// What a transaction came to.
enum Outcome {
    Done,
    /// The head was not what this process left; nothing was written.
    HeadChanged,
}

// === impl Grid ===

impl Grid {
    pub(crate) async fn append(&self, epoch: Epoch, batch: &Batch) -> Result<(), AppendError> {
        check_size(&batch.records)?;
        let changes = Changes::of(&self.layout, &batch.records, &batch.meta);
        let next = |head: Head| {
            check_follows(head.revision, &batch.records)?;
            Ok(head.appended(batch))
        };
        self.write(epoch, &changes, next).await
    }

    pub(crate) async fn ingest(&self, epoch: Epoch, image: &Image) -> Result<(), AppendError> {
        check_size(&image.records)?;
        let changes = Changes::of(&self.layout, &image.records, &image.meta);
        let next = |head: Head| {
            if head.batch.is_some() {
                return Err(AppendError::NotEmpty { durable: head.revision });
            }
            check_piece(head.revision, image)?;
            Ok(head.filled(image.last))
        };
        self.write(epoch, &changes, next).await
    }

    /// Changes the head to what `next` makes of it, and the rows with it, or nothing at all.
    pub(crate) async fn write(
        &self,
        epoch: Epoch,
        changes: &Changes,
        next: impl Fn(Head) -> Result<Head, AppendError>,
    ) -> Result<(), AppendError> {
        let mut writer = self.writer.lock().await;
        let mut attempts = Attempts::default();
        loop {
            let head = self.held(&mut writer, epoch).await?;
            let new = next(head)?;
            // Doubt until the end says otherwise: a caller may go away in the middle.
            writer.head = None;
            match self.try_write(head, new, changes).await {
                Ok(Outcome::Done) => {
                    writer.head = Some(new);
                    return Ok(());
                }
                Ok(Outcome::HeadChanged) => {}
                Err(GridError::Client(source @ ignite_client::Error::Unknown(_))) => {
                    let source = Error::Grid { step: STEP, source };
                    return Err(AppendError::Unknown { source: source.into() });
                }
                Err(error) => {
                    let went_on = attempts.go_on(error, STEP).await;
                    went_on.map_err(|source| writer.fail(source))?;
                }
            }
        }
    }

    /// The head, if this epoch still holds the role.
    pub(crate) async fn held(
        &self,
        writer: &mut Writer,
        epoch: Epoch,
    ) -> Result<Head, AppendError> {
        if writer.is_stopped {
            return Err(AppendError::Failed { source: Error::Stopped.into() });
        }
        let head = match writer.head {
            Some(head) if head.epoch == epoch => head,
            _ => self.head_settled().await.map_err(|source| writer.fail(source))?,
        };
        if head.epoch != epoch {
            return Err(AppendError::Fenced { held: epoch, current: head.epoch });
        }
        writer.head = Some(head);
        Ok(head)
    }

    async fn try_write(
        &self,
        old: Head,
        new: Head,
        changes: &Changes,
    ) -> Result<Outcome, GridError> {
        let tx = self.client.begin(Mode::ReadWrite).await?;
        let (old, new) = (old.to_row(&self.layout), new.to_row(&self.layout));
        let within = Some(&tx);
        // All at once: the commit alone waits for all, and what the head forbids is rolled back.
        let (is_same, ..) = futures::try_join!(
            self.head.replace_exact(within, &old, &new),
            self.history.upsert_all(within, &changes.history),
            self.history.delete_all(within, &changes.history_unset),
            self.kv.upsert_all(within, &changes.kv_set),
            self.kv.delete_all(within, &changes.kv_unset),
            self.meta.upsert_all(within, &changes.meta_set),
            self.meta.delete_all(within, &changes.meta_unset),
        )?;
        if is_same {
            tx.commit().await?;
            return Ok(Outcome::Done);
        }
        tx.rollback().await?;
        Ok(Outcome::HeadChanged)
    }
}

// === impl Writer ===

impl Writer {
    /// Ends writing here for ever: nobody knows how much a failed write left behind.
    pub(crate) fn fail(&mut self, source: Error) -> AppendError {
        self.is_stopped = true;
        AppendError::Failed { source: source.into() }
    }
}

fn check_size(records: &[Record]) -> Result<(), AppendError> {
    let bytes = records.iter().map(Record::encoded_len).sum();
    if bytes > BATCH_BYTES_MAX {
        return Err(AppendError::TooLarge { bytes, bytes_max: BATCH_BYTES_MAX });
    }
    Ok(())
}

/// Each record is one more than the one before it.
fn check_follows(durable: Revision, records: &[Record]) -> Result<(), AppendError> {
    let mut last = durable;
    for record in records {
        if record.revision != last.next() {
            return Err(AppendError::OutOfOrder { durable: last, found: record.revision });
        }
        last = record.revision;
    }
    Ok(())
}

/// Records of an image rise, with gaps, between the piece before it and its end.
fn check_piece(durable: Revision, image: &Image) -> Result<(), AppendError> {
    let mut last = durable;
    for record in &image.records {
        if record.revision <= last {
            return Err(AppendError::OutOfOrder { durable: last, found: record.revision });
        }
        last = record.revision;
    }
    if image.last < last {
        return Err(AppendError::OutOfOrder { durable: last, found: image.last });
    }
    Ok(())
}
