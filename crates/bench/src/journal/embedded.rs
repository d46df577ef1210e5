//! The embedded journal as a subject, kept up by a thread as the store keeps it.

use std::{
    path::Path,
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use etcd_api::mvccpb::KeyValue;
use journal::{Batch, BatchId, EmbeddedJournal, Epoch, Journal, embedded};
use mvcc::{Position, Record, Revision};

use super::Subject;

/// How often the thread looks whether there is something to keep up.
const UPKEEP_INTERVAL: Duration = Duration::from_millis(10);

/// What one step of a scan reads.
const SCAN_BYTES: usize = 1024 * 1024;

pub struct Embedded {
    journal: Arc<EmbeddedJournal>,
    epoch: Epoch,
    batches: u64,
    upkeep: Option<Upkeep>,
}

struct Upkeep {
    /// Closing it ends the thread.
    stop: mpsc::Sender<()>,
    thread: JoinHandle<Result<(), journal::Error>>,
}

// === impl Embedded ===

impl Embedded {
    pub fn open(folder: &Path) -> Result<Self> {
        let journal = Arc::new(EmbeddedJournal::open(folder, embedded::Options::default())?);
        let epoch = journal.claim()?;
        let (stop, stopped) = mpsc::channel();
        let kept = Arc::clone(&journal);
        let thread = thread::Builder::new()
            .name("journal-upkeep".to_owned())
            .spawn(move || keep_up(&kept, &stopped))
            .context("cannot start the thread that keeps the journal up")?;
        Ok(Self { journal, epoch, batches: 0, upkeep: Some(Upkeep { stop, thread }) })
    }
}

fn keep_up(journal: &EmbeddedJournal, stopped: &mpsc::Receiver<()>) -> Result<(), journal::Error> {
    let mut wait = UPKEEP_INTERVAL;
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait) {
        let has_more = journal.maintain()?;
        wait = if has_more { Duration::ZERO } else { UPKEEP_INTERVAL };
    }
    Ok(())
}

impl Subject for Embedded {
    fn append(&mut self, records: Vec<Record>) -> Result<()> {
        if self.upkeep.as_ref().is_some_and(|upkeep| upkeep.thread.is_finished()) {
            return Err(anyhow!("the journal is no longer kept up"));
        }
        self.batches += 1;
        let id = BatchId { epoch: self.epoch, number: self.batches };
        Ok(self.journal.append(self.epoch, &Batch { id, records, meta: vec![] })?)
    }

    fn read(&self, revision: Revision) -> Result<Option<KeyValue>> {
        Ok(self.journal.read(Position::first_of(revision))?)
    }

    fn scan(&self, visit: &mut dyn FnMut(Record)) -> Result<()> {
        let mut from = Revision::INITIAL.next();
        loop {
            let records = self.journal.records(from, SCAN_BYTES)?;
            let Some(last) = records.last() else { return Ok(()) };
            from = last.revision.next();
            records.into_iter().for_each(&mut *visit);
        }
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if let Some(Upkeep { stop, thread }) = self.upkeep.take() {
            drop(stop);
            // What went wrong in it was seen by the append that followed.
            let _ended = thread.join();
        }
    }
}
