//! The journal alone: what one thread can append, read and scan, and what that takes.
//!
//! A subject is whatever keeps records by revision: the embedded journal, or a storage engine in the
//! layout revision → record. Memory is that of the whole process, and a reopen after a crash needs a
//! process that ended without closing anything; so each subject is measured in a process of its own,
//! which the caller starts.

mod embedded;
mod tables;

pub use embedded::Embedded;
pub use tables::table;

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use etcd_api::mvccpb::{KeyValue, KeyValueParts};
use mvcc::{Change, Record, Revision};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::{process, shape};

/// Reads beyond this many tell nothing new.
const READS_MAX: u64 = 100_000;

/// Prime, so that reads are scattered over all records.
const STRIDE: u64 = 7_919;

/// What is measured. Records are handed over as the store would, and come back decoded.
pub trait Subject {
    /// Makes the records durable, all or none, before it returns.
    fn append(&mut self, records: Vec<Record>) -> Result<()>;

    /// The first change of a revision.
    fn read(&self, revision: Revision) -> Result<Option<KeyValue>>;

    /// Calls `visit` with every record in order.
    fn scan(&self, visit: &mut dyn FnMut(Record)) -> Result<()>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    pub records: u64,
    pub records_per_commit: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub options: Options,
    pub puts_per_second: f64,
    pub commit_p50_micros: f64,
    pub commit_p99_micros: f64,
    pub cpu_micros_per_put: f64,
    /// Bytes that reached storage for each byte of key-values.
    pub write_amplification: f64,
    pub reads_per_second: f64,
    pub scanned_per_second: f64,
    pub resident_bytes: u64,
    pub disk_bytes: u64,
    /// From opening what a crash left to the first read; filled in by a second process.
    pub reopen_millis: Option<f64>,
}

/// Fills an empty subject that keeps its files in `folder`, and reads it back.
pub fn measure(subject: &mut dyn Subject, folder: &Path, options: Options) -> Result<Figures> {
    let appended = append(subject, options)?;
    let resident_bytes = process::resident_bytes(std::process::id())?;
    let reads_per_second = read(subject, options)?;
    let scanned_per_second = scan(subject, options)?;
    Ok(Figures {
        options,
        puts_per_second: options.records as f64 / appended.elapsed.as_secs_f64(),
        commit_p50_micros: appended.quantile(0.50),
        commit_p99_micros: appended.quantile(0.99),
        cpu_micros_per_put: appended.cpu.as_secs_f64() * 1e6 / options.records as f64,
        write_amplification: appended.written_bytes as f64 / appended.payload_bytes as f64,
        reads_per_second,
        scanned_per_second,
        resident_bytes,
        disk_bytes: process::disk_use(folder)?.allocated_bytes,
        reopen_millis: None,
    })
}

/// Times `open` up to the first read of what it opened.
pub fn measure_reopen<S: Subject>(
    open: impl FnOnce() -> Result<S>,
    options: Options,
) -> Result<f64> {
    let began = Instant::now();
    let subject = open()?;
    let last = Revision(Revision::INITIAL.0 + i64::try_from(options.records)?);
    subject.read(last)?.with_context(|| format!("revision {last} is lost"))?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

struct Appended {
    /// Of each commit, ascending.
    micros: Vec<f64>,
    elapsed: Duration,
    cpu: Duration,
    written_bytes: u64,
    payload_bytes: u64,
}

fn append(subject: &mut dyn Subject, options: Options) -> Result<Appended> {
    let pid = std::process::id();
    let value = shape::value(shape::OBJECT_BYTES);
    let mut next = Revision::INITIAL.next();
    let mut micros = Vec::new();
    let mut payload_bytes = 0;
    let (cpu, written) = (process::cpu_time(pid)?, process::written_bytes(pid)?);
    let mut elapsed = Duration::ZERO;
    for _ in 0..options.records / options.records_per_commit {
        let records: Vec<Record> =
            (0..options.records_per_commit).map(|_| record(&mut next, &value)).collect();
        payload_bytes += records.iter().map(Record::encoded_len).sum::<usize>() as u64;
        let began = Instant::now();
        subject.append(records)?;
        let took = began.elapsed();
        elapsed += took;
        micros.push(took.as_secs_f64() * 1e6);
    }
    ensure!(!micros.is_empty(), "there are fewer records than one commit has");
    micros.sort_by(f64::total_cmp);
    let cpu = process::cpu_time(pid)?.saturating_sub(cpu);
    let written_bytes = process::written_bytes(pid)?.saturating_sub(written);
    Ok(Appended { micros, elapsed, cpu, written_bytes, payload_bytes })
}

fn read(subject: &dyn Subject, options: Options) -> Result<f64> {
    let reads = options.records.min(READS_MAX);
    let began = Instant::now();
    for index in 0..reads {
        let offset = 1 + (index * STRIDE) % options.records;
        let revision = Revision(Revision::INITIAL.0 + i64::try_from(offset)?);
        let found = subject.read(revision)?.with_context(|| format!("{revision} is lost"))?;
        ensure!(found.mod_revision() == revision.0, "{revision} reads as {found:?}");
    }
    Ok(reads as f64 / began.elapsed().as_secs_f64())
}

fn scan(subject: &dyn Subject, options: Options) -> Result<f64> {
    let mut last = Revision::INITIAL;
    let mut is_dense = true;
    let began = Instant::now();
    subject.scan(&mut |record| {
        is_dense &= record.revision == last.next();
        last = record.revision;
    })?;
    let elapsed = began.elapsed();
    let scanned = u64::try_from(last.0 - Revision::INITIAL.0)?;
    ensure!(is_dense && scanned == options.records, "the scan came to {last}, with gaps or short");
    Ok(scanned as f64 / elapsed.as_secs_f64())
}

/// A new object at the next revision.
fn record(next: &mut Revision, value: &[u8]) -> Record {
    let revision = *next;
    *next = revision.next();
    let kv = KeyValue::new(&KeyValueParts {
        key: &shape::object_key(revision.0.unsigned_abs()),
        create_revision: revision.0,
        mod_revision: revision.0,
        version: 1,
        value,
        lease: 0,
    });
    Record { revision, changes: vec![Change { sub: 0, kv }] }
}

// === impl Appended ===

impl Appended {
    fn quantile(&self, share: f64) -> f64 {
        let rank = (self.micros.len() as f64 * share).ceil() as usize;
        self.micros[rank.clamp(1, self.micros.len()) - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_journal_is_measured_and_reopened() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { records: 200, records_per_commit: 10 };
        let mut subject = Embedded::open(folder.path()).unwrap();
        let figures = measure(&mut subject, folder.path(), options).unwrap();
        drop(subject);
        assert!(figures.puts_per_second > 0.0 && figures.reads_per_second > 0.0);
        assert!(figures.disk_bytes > 200 * 2048);
        let reopen = measure_reopen(|| Embedded::open(folder.path()), options).unwrap();
        assert!(reopen > 0.0);
    }
}
