//! A connection that ends before, in and after a commit: nothing is lost, nothing happens twice.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::report::say;
use e2e::scene::is_full;
use e2e::tasks::link::{Link, Target};
use e2e::wait::{Level, wait_for};
use journal::suite::{put, record};
use journal::{AppendError, Batch, BatchId, Epoch, Journal};
use journal_ignite::IgniteJournal;
use mvcc::Revision;
use tokio::time::Instant;

use crate::stage::{Case, Kind, Stage};

/// Appends under which the connection ends, by default and at length.
const APPENDS: (i64, i64) = (12, 400);
/// An append takes some ten milliseconds, so cuts fall before it, into it and behind it.
const CUT_WITHIN_MS: std::ops::Range<u64> = 0..80;
/// How long requests arrive whose answers do not.
const DEAF: Duration = Duration::from_millis(20);
/// However busy the machine is.
const MOMENT_MAX: Duration = Duration::from_secs(60);

pub(crate) fn cases() -> Vec<Case> {
    let name = "single::journal::a_cut_connection_loses_and_doubles_nothing";
    vec![Case::new(name, Kind::Single, a_cut_connection_loses_and_doubles_nothing).at_length()]
}

/// What became of the appends.
#[derive(Debug, Default)]
struct Tally {
    unknown: u32,
    of_these_held: u32,
}

fn a_cut_connection_loses_and_doubles_nothing(stage: &mut Stage) -> Result<()> {
    let mut options = stage.journal();
    journal_ignite::init(&options).context("init")?;
    let target: SocketAddr = stage.ignite.addresses()[0].parse()?;
    let (link, port) = {
        let _entered = stage.runtime.enter();
        Link::near(Target::Outside(target))?
    };
    options.client.addresses = vec![format!("127.0.0.1:{port}")];
    let journal = IgniteJournal::open(options).context("open")?;
    let epoch = journal.claim().context("claim")?;
    let appends = if is_full() { APPENDS.1 } else { APPENDS.0 };
    let mut tally = Tally::default();
    for revision in 2..2 + appends {
        thread::scope(|scope| {
            let appending = scope.spawn(|| append(&journal, epoch, revision, &mut tally));
            stage.runtime.block_on(cut(&link, rand::random()))?;
            appending.join().expect("an append does not panic")
        })?;
    }
    let mut found = Vec::new();
    let mut next = Revision(0);
    loop {
        let records = journal.records(next, usize::MAX).context("records")?;
        let Some(last) = records.last() else { break };
        next = last.revision.next();
        found.extend(records.iter().map(|record| record.revision.0));
    }
    ensure!(found == (2..2 + appends).collect::<Vec<_>>(), "{found:?}");
    journal.verify().context("compare KV with HISTORY")?;
    say(&format!("cuts: {appends} appends, {tally:?}"));
    Ok(())
}

/// Ends every connection some time from now; `is_deaf`: after answers were held back for a while.
async fn cut(link: &Link, is_deaf: bool) -> Result<()> {
    after(Duration::from_millis(rand::random_range(CUT_WITHIN_MS))).await?;
    if is_deaf {
        link.cut_back();
        after(DEAF).await?;
    }
    link.break_connections();
    link.heal();
    Ok(())
}

/// Waits for a moment; when exactly it comes does not matter here.
pub(crate) async fn after(time: Duration) -> Result<()> {
    let began = Instant::now();
    wait_for("the moment of the cut", MOMENT_MAX, async || {
        let elapsed = began.elapsed();
        Ok(if elapsed >= time { Level::Reached(()) } else { Level::Below(format!("{elapsed:?}")) })
    })
    .await
}

/// Appends one revision: where that is left open, the journal is asked, and what it does not hold is
/// appended again.
fn append(journal: &IgniteJournal, epoch: Epoch, revision: i64, tally: &mut Tally) -> Result<()> {
    loop {
        let number = revision.unsigned_abs();
        let records = vec![record(revision, [put(revision, "key", b"value")])];
        let batch = Batch { id: BatchId { epoch, number }, records, meta: Vec::new() };
        match journal.append(epoch, &batch) {
            Ok(()) => return Ok(()),
            Err(AppendError::Unknown { .. }) => {
                tally.unknown += 1;
                if journal.holds(batch.id).context("ask what became of it")? {
                    tally.of_these_held += 1;
                    return Ok(());
                }
            }
            Err(error) => return Err(error).with_context(|| format!("append {revision}")),
        }
    }
}
