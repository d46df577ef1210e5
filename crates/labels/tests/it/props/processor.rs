//! A processor in steps: it reads, decides, and carries out one command at a time, while the world
//! goes on. No lock keeps two of them apart; guards and tables have to.

use std::collections::{BTreeMap, VecDeque};

use labels::core::{
    command::{Command, Decision, Row},
    decide::{decide, poisoned},
    keys::QUARANTINED,
    names::TransactionName,
    object::{Document, Uid},
    policy::Policy,
    reading::Reading,
    record::{Record, Stored},
    rv::ResourceVersion,
    settle::{Cause, settle},
    transaction::{Kind, Transaction},
};

use super::{
    Violation,
    cluster::{Cluster, Conflict},
};

/// Mistakes that the properties have to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Drops what is not above the highest version it has worked off.
    DedupeByHighestRv,
    /// Stores the labels of D3 as they come.
    NoAmend,
    /// Patches the node whatever has become of it.
    UnguardedPatch,
    /// Believes that there is no node or no record because there was none.
    CachedAbsence,
    /// Reads the record before the node, which may meanwhile have been given a newer one.
    RecordReadFirst,
    /// Deletes each transaction when it begins the next.
    EarlyDelete,
    /// Watchers post without order.
    UnorderedPosting,
}

/// What it remembers beyond one batch is only there for faults.
#[derive(Default)]
pub(crate) struct Processor {
    fault: Option<Fault>,
    work: Option<Work>,
    highest: Option<ResourceVersion>,
    has_seen_no_node: bool,
    has_seen_no_record: bool,
}

/// A batch that is being worked off.
struct Work {
    batch: VecDeque<Document>,
    reading: Reading,
    commands: VecDeque<Command>,
    row: Row,
    /// Done but for their deletion.
    held: VecDeque<Document>,
    /// One of node and record is read, the other comes next.
    is_half_read: bool,
    /// The record was stored since the node was read.
    is_node_stale: bool,
    stage: Stage,
}

/// Where a batch stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Its transactions are worked off one by one; after the last, everything is read anew if the
    /// record was stored.
    Batch,
    /// What was read is settled.
    Settle,
    /// The transactions go. None goes earlier: whoever stores a record and dies before it is
    /// settled must leave behind what brings the next one here, even if all others are gone.
    Done,
}

/// What all processors have done to the world.
#[derive(Default)]
pub(crate) struct Deeds {
    pub(crate) restores: BTreeMap<Uid, usize>,
    /// The last restore, until someone looks.
    pub(crate) restored: Option<Uid>,
}

// === impl Processor ===

impl Processor {
    pub(crate) fn new(fault: Option<Fault>) -> Self {
        Self { fault, ..Self::default() }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.work.is_none()
    }

    /// Forgets everything it was doing.
    pub(crate) fn crash(&mut self) {
        *self = Self::new(self.fault);
    }

    /// Whether nothing is left of its batch but to delete it.
    pub(crate) fn is_finishing(&self) -> bool {
        let is_done = |work: &Work| work.stage == Stage::Done && work.commands.is_empty();
        self.work.as_ref().is_some_and(is_done)
    }

    /// Whether it is at the last transaction of its batch.
    pub(crate) fn is_at_last(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.batch.is_empty())
    }

    /// One read, or one command.
    pub(crate) fn step(
        &mut self,
        cluster: &mut Cluster,
        deeds: &mut Deeds,
    ) -> Result<(), Violation> {
        let Some(mut work) = self.work.take() else {
            self.work = self.begin(cluster);
            return Ok(());
        };
        if work.is_half_read {
            self.read_second(&mut work, cluster);
            self.work = Some(work);
        } else if let Some(command) = work.commands.pop_front() {
            if self.carry_out(&command, &mut work, cluster, deeds)?.is_ok() {
                self.work = Some(work);
            }
        } else if let Some(document) = work.batch.pop_front() {
            if self.fault == Some(Fault::EarlyDelete) {
                work.held.pop_front().map_or(Ok(()), |held| finish(&held, cluster))?;
            }
            self.take_up(document, &mut work, cluster);
            self.work = Some(work);
        } else if work.stage == Stage::Batch {
            work.stage = Stage::Settle;
            if work.is_node_stale {
                self.read_first(&mut work, cluster);
            }
            self.work = Some(work);
        } else if work.stage == Stage::Settle {
            work.stage = Stage::Done;
            work.plan(settle(&work.reading, Cause::Queue, &Policy::default(), cluster.now()));
            self.work = Some(work);
        } else if let Some(held) = work.held.pop_front() {
            finish(&held, cluster)?;
            self.work = Some(work);
        }
        Ok(())
    }

    /// The queue first, then the node: it is then as new as the transactions.
    fn begin(&mut self, cluster: &Cluster) -> Option<Work> {
        let waiting =
            cluster.queue.iter().filter(|(_, document)| !document.labels.contains_key(QUARANTINED));
        let batch: VecDeque<Document> = waiting.map(|(_, document)| document.clone()).collect();
        if batch.is_empty() {
            return None;
        }
        let mut work = Work {
            batch,
            reading: Reading { stored: Stored::Absent, live: None },
            commands: VecDeque::new(),
            row: Row::S1,
            held: VecDeque::new(),
            is_half_read: false,
            is_node_stale: false,
            stage: Stage::Batch,
        };
        self.read_first(&mut work, cluster);
        Some(work)
    }

    fn read_first(&mut self, work: &mut Work, cluster: &Cluster) {
        work.is_half_read = true;
        match self.fault {
            Some(Fault::RecordReadFirst) => self.read_record(work, cluster),
            _ => self.read_node(work, cluster),
        }
    }

    fn read_second(&mut self, work: &mut Work, cluster: &Cluster) {
        work.is_half_read = false;
        match self.fault {
            Some(Fault::RecordReadFirst) => self.read_node(work, cluster),
            _ => self.read_record(work, cluster),
        }
    }

    fn read_node(&mut self, work: &mut Work, cluster: &Cluster) {
        work.reading.live = cluster.live();
        self.has_seen_no_node |= work.reading.live.is_none();
        if self.fault == Some(Fault::CachedAbsence) && self.has_seen_no_node {
            work.reading.live = None;
        }
    }

    fn read_record(&mut self, work: &mut Work, cluster: &Cluster) {
        work.reading.stored = Stored::read(cluster.record.as_ref());
        self.has_seen_no_record |= matches!(work.reading.stored, Stored::Absent);
        if self.fault == Some(Fault::CachedAbsence) && self.has_seen_no_record {
            work.reading.stored = Stored::Absent;
        }
    }

    fn take_up(&mut self, document: Document, work: &mut Work, cluster: &Cluster) {
        let name: TransactionName = document.name.parse().expect("only transactions are queued");
        let transaction = match Transaction::decode(&name, &document) {
            Ok(transaction) => transaction,
            Err(poison) => return work.plan(poisoned(&name, &poison)),
        };
        let is_low = self.highest.as_ref().is_some_and(|highest| name.rv() <= highest);
        if !(self.fault == Some(Fault::DedupeByHighestRv) && is_low) {
            let decision = decide(&work.reading, &transaction, &Policy::default(), cluster.now());
            work.plan(self.spoiled(decision, &transaction));
        }
        self.highest = self.highest.take().max(Some(name.rv().clone()));
        if !work.quarantines(&name) {
            work.held.push_back(document);
        }
    }

    /// Puts the labels of a D3 back to what the transaction brought.
    fn spoiled(&self, mut decision: Decision, transaction: &Transaction) -> Decision {
        let Kind::Deleted(snapshot) = &transaction.kind else { return decision };
        if self.fault == Some(Fault::NoAmend) && decision.row == Row::D3 {
            for command in &mut decision.commands {
                if let Command::StoreRecord(document) = command {
                    let mut record = Record::decode(document).expect("just encoded");
                    record.snapshot = snapshot.clone();
                    *document = record.encode();
                }
            }
        }
        decision
    }

    fn carry_out(
        &mut self,
        command: &Command,
        work: &mut Work,
        cluster: &mut Cluster,
        deeds: &mut Deeds,
    ) -> Result<Result<(), Conflict>, Violation> {
        match command {
            Command::StoreRecord(document) | Command::MarkRestored(document) => {
                let Ok(written) = cluster.put_record(document) else { return Ok(Err(Conflict)) };
                self.has_seen_no_record = false;
                work.reading.stored = Stored::read(Some(&written));
                work.is_node_stale |= matches!(command, Command::StoreRecord(_));
            }
            Command::PatchNode(patch) => {
                Violation::unless(cluster.record.is_some(), || {
                    "I4: a node without record is written".to_owned()
                })?;
                let is_guarded = self.fault != Some(Fault::UnguardedPatch);
                if cluster.patch_node(patch, is_guarded).is_err() {
                    return Ok(Err(Conflict));
                }
                work.reading.live = cluster.live();
                work.is_node_stale = false;
                if work.row == Row::S6 {
                    deeds.on_restored(&patch.uid)?;
                }
            }
            Command::Quarantine { transaction, reason } => {
                if let Some(document) = cluster.queue.get_mut(transaction) {
                    document.labels.insert(QUARANTINED.to_owned(), reason.to_string());
                }
            }
            Command::DeleteTransaction(_) | Command::Event(_) => {}
        }
        Ok(Ok(()))
    }
}

// === impl Work ===

impl Work {
    fn plan(&mut self, decision: Decision) {
        self.row = decision.then.unwrap_or(decision.row);
        self.commands = decision.commands.into();
    }

    fn quarantines(&self, name: &TransactionName) -> bool {
        let is_it = |command: &Command| matches!(command, Command::Quarantine { transaction, .. } if transaction == name);
        self.commands.iter().any(is_it)
    }
}

fn finish(held: &Document, cluster: &mut Cluster) -> Result<(), Violation> {
    if !cluster.delete_transaction(held) {
        return Ok(());
    }
    let name = held.name.parse().expect("only transactions are queued");
    let transaction = Transaction::decode(&name, held).expect("poison is not deleted");
    Violation::unless(is_kept(&cluster.read(), &transaction), || {
        format!("I1: {} is gone and its labels are nowhere", transaction.rv())
    })
}

/// Whether the labels of a deletion are in the record or its past, unless they were never restored.
fn is_kept(reading: &Reading, transaction: &Transaction) -> bool {
    let Kind::Deleted(snapshot) = &transaction.kind else { return true };
    if reading.live.as_ref().map(|live| &live.uid) == transaction.uid.as_ref() {
        return true;
    }
    let Some(record) = reading.record() else { return false };
    let is_full = record.past.iter().count() == labels::core::past::PAST_LEN_MAX;
    is_full
        || snapshot.marker.is_none()
        || record.snapshots().any(|kept| {
            kept.labels == snapshot.labels
                || (kept.uid == transaction.uid && kept.rv >= *transaction.rv())
        })
}

// === impl Deeds ===

impl Deeds {
    fn on_restored(&mut self, uid: &Uid) -> Result<(), Violation> {
        let times = self.restores.entry(uid.clone()).or_default();
        *times += 1;
        self.restored = Some(uid.clone());
        Violation::unless(*times == 1, || format!("I2: {uid} is restored twice"))
    }
}
