//! The store's table: every row on every server, in turns, and what came out.
//!
//! Servers take turns row by row, each alone on the machine and each on an empty folder; the order
//! rotates with the round, so that no server always follows the same other. A figure is the median
//! over the rounds.

mod answer;
pub(crate) mod figures;
pub(crate) mod load;
mod report;
mod row;
mod server;
mod subject;
mod tables;
mod target;
pub(crate) mod work;

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

pub use figures::{Figures, Metric};
pub use report::{Failure, Measured, Ratio, Report, RowReport};
pub use row::{Disturbance, Listing, Row, Work, all as all_rows};
pub use subject::{Launch, Place, Role, Running, Subject};
pub use target::{Bound, Outcome, Target, Verdict};

use crate::{Machine, table};
use load::Span;
use server::{Server, Site};
use work::Bench;

/// What is measured, on what, and how often.
#[derive(Clone, Debug)]
pub struct Options {
    /// At most one of each role.
    pub subjects: Vec<Subject>,
    pub scale: Scale,
    pub rounds: usize,
    /// Only rows that are called one of these or, where none is, have it in their name; all rows
    /// if there are none.
    pub rows: Vec<String>,
    /// Where servers keep their data; on the filesystem that is meant to be measured.
    pub scratch: PathBuf,
}

/// How large the rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    pub warm_up_ms: u64,
    pub timed_ms: u64,
    /// Objects that are read, listed and counted.
    pub objects: u64,
    /// Updates of each of them that make the history for compaction to forget.
    pub history_updates: u64,
    pub fill_objects: u64,
    pub fill_updates: u64,
}

/// Measures every chosen row on every subject and tells `progress` of each step.
///
/// A row that fails on a server is reported among the failures, and the run goes on. Dropping the
/// future kills the server that is running.
pub async fn run(options: &Options, progress: &mut (dyn FnMut(&str) + Send)) -> Result<Report> {
    options.check()?;
    let rows = options.chosen_rows()?;
    let mut notes = Notes { rows: vec![Vec::new(); rows.len()], failures: Vec::new() };
    for turn in options.turns(&rows) {
        let Turn { round, row, subject, .. } = turn;
        let outcome = measure(options, row, subject).await;
        let shown = outcome.as_ref().map_or_else(|error| format!("failed: {error:#}"), summary);
        let (name, role) = (row.name(), subject.role);
        progress(&format!("round {round}/{}: {name} on {role}: {shown}", options.rounds));
        notes.on_outcome(&turn, outcome);
    }
    notes.into_report(options, &rows)
}

/// One row on one server in one round.
struct Turn<'a> {
    /// From 1.
    round: usize,
    /// The row's place in the table.
    index: usize,
    row: &'a Row,
    subject: &'a Subject,
}

/// What came out so far.
struct Notes {
    /// For each row, the figures of each round by server.
    rows: Vec<Vec<(Role, Vec<Figures>)>>,
    failures: Vec<Failure>,
}

async fn measure(options: &Options, row: &Row, subject: &Subject) -> Result<Figures> {
    let folder = options.scratch.join(format!("{}-{}", row.name(), subject.role.name()));
    remove(&folder)?;
    let objects = usize::try_from(options.scale.objects)?;
    let mut server = Server::start(subject, &Site { folder: &folder, objects }).await?;
    let bench = Bench { server: &mut server, scale: &options.scale, row };
    let figures = work::measure(bench).await?;
    server.stop().await?;
    // Kept after a failure, for the logs in it.
    remove(&folder)?;
    Ok(figures)
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn summary(figures: &Figures) -> String {
    let rate = table::cell(figures.get(Metric::RatePerSecond), table::rate);
    let p50 = table::cell(figures.get(Metric::P50Micros), table::micros);
    let p99 = table::cell(figures.get(Metric::P99Micros), table::micros);
    let cpu = table::cell(figures.get(Metric::ServerCpuMicros), table::micros);
    format!("{rate}, p50 {p50}, p99 {p99}, server CPU {cpu}")
}

// === impl Options ===

impl Options {
    fn check(&self) -> Result<()> {
        ensure!(!self.subjects.is_empty(), "there is no server to measure");
        ensure!(self.rounds > 0, "a figure needs at least one round");
        for (index, subject) in self.subjects.iter().enumerate() {
            let is_repeated = self.subjects[..index].iter().any(|other| other.role == subject.role);
            ensure!(!is_repeated, "there are two servers for {}", subject.role);
        }
        Ok(())
    }

    fn chosen_rows(&self) -> Result<Vec<Row>> {
        let all = row::all();
        let is_name = |word: &String| all.iter().any(|row| row.name() == *word);
        let matches = |row: &Row, word: &String| {
            if is_name(word) { row.name() == *word } else { row.name().contains(word) }
        };
        let is_chosen =
            |row: &Row| self.rows.is_empty() || self.rows.iter().any(|word| matches(row, word));
        let chosen: Vec<Row> = all.iter().filter(|row| is_chosen(row)).cloned().collect();
        if chosen.is_empty() {
            let names: Vec<String> = all.iter().map(Row::name).collect();
            bail!("no row is called like {:?}; there are {}", self.rows, names.join(", "));
        }
        Ok(chosen)
    }

    /// All that is to be measured, in order: the first server of each round is another one.
    fn turns<'a>(&'a self, rows: &'a [Row]) -> Vec<Turn<'a>> {
        let count = self.subjects.len();
        let mut turns = Vec::new();
        for round in 1..=self.rounds {
            for (index, row) in rows.iter().enumerate() {
                let rotated = self.subjects.iter().cycle().skip(round % count).take(count);
                let subjects = rotated.filter(|subject| row.runs_on(subject));
                turns.extend(subjects.map(|subject| Turn { round, index, row, subject }));
            }
        }
        turns
    }
}

// === impl Scale ===

impl Scale {
    /// The table as it is published.
    #[must_use]
    pub fn full() -> Self {
        Self {
            warm_up_ms: 1_000,
            timed_ms: 5_000,
            objects: 10_000,
            history_updates: 10,
            fill_objects: 100_000,
            fill_updates: 10,
        }
    }

    /// Shows that every row works, in a few seconds for each; the figures mean little.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            warm_up_ms: 50,
            timed_ms: 200,
            objects: 1_000,
            history_updates: 1,
            fill_objects: 1_000,
            fill_updates: 2,
        }
    }

    fn span(&self) -> Span {
        Span {
            warm_up: Duration::from_millis(self.warm_up_ms),
            timed: Duration::from_millis(self.timed_ms),
        }
    }
}

// === impl Notes ===

impl Notes {
    fn on_outcome(&mut self, turn: &Turn<'_>, outcome: Result<Figures>) {
        let role = turn.subject.role;
        let figures = match outcome {
            Ok(figures) => figures,
            Err(error) => {
                let (row, error) = (turn.row.name(), format!("{error:#}"));
                self.failures.push(Failure { row, role, round: turn.round, error });
                return;
            }
        };
        let servers = &mut self.rows[turn.index];
        match servers.iter_mut().find(|(known, _)| *known == role) {
            Some((_, rounds)) => rounds.push(figures),
            None => servers.push((role, vec![figures])),
        }
    }

    fn into_report(self, options: &Options, rows: &[Row]) -> Result<Report> {
        let row_report = |(row, mut servers): (&Row, Vec<(Role, Vec<Figures>)>)| {
            servers.sort_by_key(|(role, _)| *role);
            let measured = |(role, rounds)| Measured::new(role, rounds);
            RowReport::new(row, servers.into_iter().map(measured).collect())
        };
        Ok(Report {
            machine: Machine::read()?,
            scale: options.scale,
            rounds: options.rounds,
            rows: rows.iter().zip(self.rows).map(row_report).collect(),
            failures: self.failures,
        })
    }
}
