//! The trait, each call as a future that is waited for.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use etcd_api::mvccpb::KeyValue;
use ignite_client::Client;
use journal::{
    AppendError, Batch, BatchId, Epoch, Error as JournalError, Head, Image, Journal, Member,
    Shared, Size, Tip,
};
use mvcc::{Position, Record, Revision};
use parking_lot::Mutex;
use rand::seq::SliceRandom;
use tokio::{sync::watch, time::Instant};

use crate::{
    Error, Options,
    append::RECORD_BYTES_MAX,
    error::Step,
    grid::Grid,
    lifecycle::Engine,
    settings::{self, Checked},
    verify::Verified,
};

/// Ignite does not tell how much room a zone has; its own limits end a write with an error.
const AVAILABLE_BYTES: u64 = u64::MAX >> 1;
/// How old a size may be: learning it reads every row's length.
const SIZE_AGE_MAX: Duration = Duration::from_secs(60);
/// A node that is silent for these two together is given up for another. Well within the time that
/// a request of the store may take, so that it can still be served.
const HEARTBEAT_EVERY: Duration = Duration::from_secs(1);
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(3);

/// A journal in tables of an Ignite grid.
#[derive(Debug)]
pub struct IgniteJournal {
    // Dropped first, so that no future outlives the threads it runs on.
    grid: Arc<Grid>,
    engine: Engine,
    /// What is kept, as far as it is known, and when that was asked for. Asked for anew after
    /// something was deleted, and now and then, because others write too.
    bytes: Mutex<Option<(u64, Instant)>>,
    checked: Checked,
    /// Whether nothing is waited for any more.
    is_hurried: watch::Sender<bool>,
}

// === impl IgniteJournal ===

impl IgniteJournal {
    /// Opens a journal that [`init`](crate::init) created. Blocks.
    ///
    /// # Errors
    ///
    /// If the grid cannot be reached or used, holds no journal, or has settings that could lose
    /// acknowledged writes.
    pub fn open(options: Options) -> Result<Self, Error> {
        let mut options = options.with_certificates()?;
        // So that not all processes hang on the node that happens to be named first.
        options.client.addresses.shuffle(&mut rand::rng());
        options.client.heartbeat_every = HEARTBEAT_EVERY;
        options.client.heartbeat_timeout = HEARTBEAT_TIMEOUT;
        let engine = Engine::start()?;
        let (grid, checked) = engine.wait(async move {
            let client = Client::connect(options.client.clone()).await;
            let client = client.step("connect to the grid")?;
            let grid = Grid::open(client, &options).await?;
            let checked = settings::check(&grid.client, &options).await?;
            Ok::<_, Error>((grid, checked))
        })?;
        let (grid, is_hurried) = (Arc::new(grid), watch::Sender::new(false));
        Ok(Self { grid, engine, bytes: Mutex::new(None), checked, is_hurried })
    }

    /// Settings of the grid that could lose acknowledged writes, and were allowed all the same.
    #[must_use]
    pub fn allowed(&self) -> &[String] {
        &self.checked.allowed
    }

    /// Nodes of the grid whose settings are not known, because they did not answer.
    #[must_use]
    pub fn unknown(&self) -> &[String] {
        &self.checked.unknown
    }

    /// Reads all there is, and compares the newest values with the history they come from. Blocks.
    ///
    /// # Errors
    ///
    /// If they differ, or a revision is missing, or the grid cannot be read.
    pub fn verify(&self) -> Result<Verified, Error> {
        self.wait(|grid| async move { grid.verify().await })
    }

    fn wait<T, E, F>(&self, work: impl FnOnce(Arc<Grid>) -> F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<Error> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.engine.wait(unless(self.is_hurried.subscribe(), work(Arc::clone(&self.grid))))
    }

    fn on_written(&self, records: &[Record]) {
        let changes = records.iter().flat_map(Record::positions);
        let added: usize = changes.map(|(_, kv)| kv.key().len() + kv.value().len()).sum();
        if let Some((bytes, _)) = &mut *self.bytes.lock() {
            *bytes += added as u64;
        }
    }
}

impl Journal for IgniteJournal {
    fn claim(&self) -> Result<Epoch, JournalError> {
        Ok(self.wait(|grid| async move { grid.claim().await })?)
    }

    fn record_bytes_max(&self) -> usize {
        RECORD_BYTES_MAX
    }

    fn append(&self, epoch: Epoch, batch: &Batch) -> Result<(), AppendError> {
        let owned = batch.clone();
        self.wait(|grid| async move { grid.append(epoch, &owned).await })?;
        self.on_written(&batch.records);
        Ok(())
    }

    /// Waits for a transaction whose end is not known, so that its batch cannot appear later.
    fn holds(&self, id: BatchId) -> Result<bool, JournalError> {
        let head = self.wait(|grid| async move { grid.head_settled().await })?;
        Ok(head.holds(id))
    }

    fn durable(&self) -> Result<Revision, JournalError> {
        Ok(self.wait(|grid| async move { grid.head_now().await })?.revision)
    }

    fn meta(&self) -> Result<Vec<(Bytes, Bytes)>, JournalError> {
        Ok(self.wait(|grid| async move { grid.all_meta().await })?)
    }

    fn heads(&self, visit: &mut dyn FnMut(Head)) -> Result<(), JournalError> {
        let mut cursor = self.wait(|grid| async move { grid.all_heads().await })?;
        loop {
            let (heads, rest) = self.engine.wait(async move {
                let heads = cursor.heads().await;
                (heads, cursor)
            });
            cursor = rest;
            let heads = heads?;
            if heads.is_empty() {
                return Ok(());
            }
            heads.into_iter().for_each(&mut *visit);
        }
    }

    fn records(&self, from: Revision, bytes_max: usize) -> Result<Vec<Record>, JournalError> {
        Ok(self.wait(|grid| async move { grid.records(from, bytes_max).await })?)
    }

    fn read(&self, at: Position) -> Result<Option<KeyValue>, JournalError> {
        Ok(self.wait(|grid| async move { grid.one(at).await })?)
    }

    fn forget(&self, epoch: Epoch, positions: &[Position]) -> Result<(), AppendError> {
        let owned = positions.to_vec();
        self.wait(|grid| async move { grid.forget(epoch, &owned).await })?;
        if !positions.is_empty() {
            *self.bytes.lock() = None;
        }
        Ok(())
    }

    fn ingest(&self, epoch: Epoch, image: &Image) -> Result<(), AppendError> {
        let owned = image.clone();
        self.wait(|grid| async move { grid.ingest(epoch, &owned).await })?;
        self.on_written(&image.records);
        Ok(())
    }

    /// Ignite collects what was deleted by itself.
    fn maintain(&self) -> Result<bool, JournalError> {
        Ok(false)
    }

    fn condense(&self, epoch: Epoch) -> Result<(), AppendError> {
        self.wait(|grid| async move { grid.check_held(epoch).await })
    }

    /// What is kept; what Ignite takes for it on its disks it does not tell.
    fn size(&self) -> Result<Size, JournalError> {
        let known = *self.bytes.lock();
        let bytes = match known {
            Some((bytes, asked)) if asked.elapsed() < SIZE_AGE_MAX => bytes,
            _ => {
                let bytes = self.wait(|grid| async move { grid.bytes().await })?;
                *self.bytes.lock() = Some((bytes, Instant::now()));
                bytes
            }
        };
        Ok(Size {
            total_bytes: bytes,
            in_use_bytes: bytes,
            available_bytes: AVAILABLE_BYTES,
            upkeep_bytes: 0,
        })
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(self)
    }
}

impl Shared for IgniteJournal {
    fn tip(&self) -> Result<Tip, JournalError> {
        Ok(self.wait(|grid| async move { grid.tip().await })?)
    }

    fn tail(&self, from: Revision, to: Revision) -> Result<Vec<Record>, JournalError> {
        Ok(self.wait(|grid| async move { grid.tail(from, to).await })?)
    }

    fn announce(&self, member: &Member) -> Result<(), JournalError> {
        let owned = member.clone();
        Ok(self.wait(|grid| async move { grid.announce(&owned).await })?)
    }

    fn withdraw(&self, id: u64) -> Result<(), JournalError> {
        Ok(self.wait(|grid| async move { grid.withdraw(id).await })?)
    }

    fn members(&self) -> Result<Vec<Member>, JournalError> {
        Ok(self.wait(|grid| async move { grid.all_members().await })?)
    }

    fn hurry(&self) {
        self.is_hurried.send_replace(true);
    }
}

/// The work, unless it would have to be waited for after the process was told not to.
async fn unless<T, E: From<Error>>(
    mut is_hurried: watch::Receiver<bool>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    tokio::select! {
        biased;
        done = work => done,
        Ok(_) = is_hurried.wait_for(|is_hurried| *is_hurried) => Err(Error::Hurried.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A write to a grid without a majority is tried again for half an hour, and for as long a store
    /// that was told to stop did not end.
    #[tokio::test]
    async fn who_ends_does_not_wait_for_a_grid_that_is_lost() {
        let is_hurried = watch::Sender::new(false);
        let lost = || std::future::pending::<Result<(), AppendError>>();
        let waiting = unless(is_hurried.subscribe(), lost());
        let (ended, _) = tokio::join!(waiting, async { is_hurried.send_replace(true) });
        assert!(matches!(ended, Err(AppendError::Failed { .. })), "{ended:?}");
        let later = unless(is_hurried.subscribe(), lost()).await;
        assert!(matches!(later, Err(AppendError::Failed { .. })), "{later:?}");
        unless(is_hurried.subscribe(), async { Ok::<_, Error>(()) }).await.unwrap();
    }
}
