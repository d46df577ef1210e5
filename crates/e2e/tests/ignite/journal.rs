//! The journal's conformance suite on real nodes, and what a dead node means to a writer.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use journal::suite::{Subject, put, record, tombstone};
use journal::{Batch, BatchId, Journal};
use journal_ignite::{Error, IgniteJournal, Verified};
use mvcc::Revision;

use crate::stage::{Case, Kind, Stage};

/// Obligations that take many commits each, up to a minute and more on a busy machine.
const LONG: [&str; 5] = [
    "maintenance_changes_nothing_that_is_kept",
    "what_is_forgotten_during_maintenance_stays_forgotten",
    "a_condensed_journal_takes_little_more_than_it_keeps",
    "readers_see_only_whole_batches",
    "histories_agree_with_the_model",
];

/// Journals in one set of tables.
struct OnIgnite {
    options: journal_ignite::Options,
}

// === impl OnIgnite ===

impl OnIgnite {
    fn new(stage: &mut Stage) -> Result<Self> {
        let options = stage.journal();
        journal_ignite::init(&options).context("init")?;
        Ok(Self { options })
    }
}

impl Subject for OnIgnite {
    type Journal = IgniteJournal;

    fn open(&mut self) -> IgniteJournal {
        IgniteJournal::open(self.options.clone()).expect("open")
    }

    fn kill(&mut self, journal: IgniteJournal) {
        // Its connection closes, and nothing else happens.
        drop(journal);
    }
}

pub(crate) fn cases() -> Vec<Case> {
    let suite = [("single", Kind::Single), ("three", Kind::Three)].map(|(lane, kind)| {
        journal::conformance!(cases of OnIgnite).map(|(name, check)| Case {
            name: format!("{lane}::journal::{name}"),
            kind,
            play: Arc::new(move |stage| {
                check(&mut OnIgnite::new(stage)?);
                Ok(())
            }),
            is_long: kind == Kind::Three || LONG.contains(&name),
        })
    });
    let dead = Case::new(
        "three::journal::a_dead_node_costs_no_acknowledged_write",
        Kind::Three,
        a_dead_node_costs_no_acknowledged_write,
    );
    let mut cases = suite.concat();
    cases.extend([
        dead.at_length(),
        Case::new("single::journal::sql_shows_what_is_kept", Kind::Single, sql_shows_what_is_kept),
        Case::new(
            "single::journal::a_row_that_differs_is_found",
            Kind::Single,
            a_row_that_differs_is_found,
        ),
    ]);
    cases
}

fn write(journal: &IgniteJournal, id: BatchId, at: i64) -> Result<()> {
    let records = vec![record(at, [put(at, "key", at.to_string().as_bytes())])];
    let batch = Batch { id, records, meta: Vec::new() };
    journal.append(id.epoch, &batch).with_context(|| format!("append {at}"))
}

/// Each node is killed in turn, the one that the client talks to and the primary among them, while a
/// writer goes on. The writer waits and loses nothing.
fn a_dead_node_costs_no_acknowledged_write(stage: &mut Stage) -> Result<()> {
    let mut subject = OnIgnite::new(stage)?;
    let journal = subject.open();
    let epoch = journal.claim().context("claim")?;
    let mut at = 1;
    let mut append = |journal: &IgniteJournal| {
        at += 1;
        let number = u64::try_from(at).context("revisions are positive")?;
        write(journal, BatchId { epoch, number }, at)
    };
    for node in 0..3 {
        append(&journal)?;
        stage.ignite.kill(node)?;
        append(&journal)?;
        let restarted = stage.ignite.restart(node);
        stage.runtime.block_on(restarted)?;
    }
    let journal = subject.reopen(journal);
    let records = journal.records(Revision(0), usize::MAX).context("records")?;
    let found: Vec<i64> = records.iter().map(|record| record.revision.0).collect();
    ensure!(found == [2, 3, 4, 5, 6, 7], "{found:?}");
    Ok(())
}

/// What people ask of the tables while a journal is open.
fn sql_shows_what_is_kept(stage: &mut Stage) -> Result<()> {
    let mut subject = OnIgnite::new(stage)?;
    let schema = subject.options.schema.clone();
    let journal = subject.open();
    let epoch = journal.claim().context("claim")?;
    for at in 2..5_i64 {
        write(&journal, BatchId { epoch, number: at.unsigned_abs() }, at)?;
    }
    let asked = async {
        let client = ignite_client::Client::connect(stage.client()).await?;
        let mut values = Vec::new();
        for statement in [
            format!("SELECT MOD_REV FROM {schema}.KV WHERE K = x'6B6579'"),
            format!("SELECT COUNT(*) FROM {schema}.HISTORY WHERE REV >= 3 AND REV < 5"),
            format!("SELECT REV FROM {schema}.HEAD"),
        ] {
            let row = client.execute(None, &statement, &[]).await?.next().await?;
            values.push(row.and_then(|row| row.values()[0].as_i64()));
        }
        Ok::<_, ignite_client::Error>(values)
    };
    let values = stage.runtime.block_on(asked)?;
    ensure!(values == [Some(4), Some(2), Some(4)], "{values:?}");
    Ok(())
}

/// Whatever somebody does to KV, comparing it with HISTORY names the key.
fn a_row_that_differs_is_found(stage: &mut Stage) -> Result<()> {
    let mut subject = OnIgnite::new(stage)?;
    let schema = subject.options.schema.clone();
    let journal = subject.open();
    let epoch = journal.claim().context("claim")?;
    write(&journal, BatchId { epoch, number: 1 }, 2)?;
    write(&journal, BatchId { epoch, number: 2 }, 3)?;
    let deleted = vec![record(4, [put(4, "other", b"1"), tombstone(4, "key")])];
    let batch = Batch { id: BatchId { epoch, number: 3 }, records: deleted, meta: Vec::new() };
    journal.append(epoch, &batch).context("append")?;
    let verified = journal.verify().context("verify")?;
    let expected = Verified { revision: Revision(4), keys: 1, changes: 4 };
    ensure!(verified == expected, "{verified:?}");
    for (statement, key) in [
        ("UPDATE KV SET V = x'32' WHERE K = x'6F74686572'", "other"),
        ("UPDATE KV SET V = x'31', LEASE = 7 WHERE K = x'6F74686572'", "other"),
        ("DELETE FROM KV", "other"),
        (
            "INSERT INTO KV (K, V, CREATE_REV, MOD_REV, VERSION, LEASE) VALUES (x'6B6579', x'31', 2, 3, 2, 0)",
            "key",
        ),
    ] {
        let statement = statement.replace("KV", &format!("{schema}.KV"));
        let changed = async {
            let client = ignite_client::Client::connect(stage.client()).await?;
            client.execute(None, &statement, &[]).await.map(drop)
        };
        stage.runtime.block_on(changed).with_context(|| statement.clone())?;
        let found = journal.verify();
        let is_named = matches!(&found, Err(Error::Disagree { key: named, .. }) if named == key);
        ensure!(is_named, "{statement}: {found:?}");
    }
    Ok(())
}
