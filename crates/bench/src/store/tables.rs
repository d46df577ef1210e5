//! The report as people read it: the figures, what the fill left behind, and the targets.

use std::fmt::{self, Display, Formatter};

use super::{
    figures::Metric,
    report::{Report, RowReport},
    target::Outcome,
};
use crate::table::{Table, bytes, cell, micros, millis, rate, ratio};

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { machine, rounds, scale, .. } = self;
        writeln!(f, "{machine}; load generator on the same cores")?;
        writeln!(f, "medians of {rounds} rounds, {} ms each\n", scale.timed_ms)?;
        writeln!(f, "{}", figures(&self.rows))?;
        if self.rows.iter().any(has_aftermath) {
            writeln!(f, "{}", aftermath(&self.rows))?;
        }
        let (reached, missed) = (self.count(Outcome::Reached), self.count(Outcome::Missed));
        if reached + missed > 0 {
            let unknown = self.count(Outcome::NotMeasured);
            writeln!(f, "{}", targets(&self.rows))?;
            writeln!(f, "targets: {reached} reached, {missed} missed, {unknown} not measured")?;
        }
        for failure in &self.failures {
            let super::report::Failure { row, role, round, error } = failure;
            writeln!(f, "failed: {row} on {role} in round {round}: {error}")?;
        }
        Ok(())
    }
}

fn figures(rows: &[RowReport]) -> Table {
    let mut table = Table::new(&[
        "work", "server", "rate", "p50", "p99", "CPU", "memory", "disk", "rate ÷", "p50 ÷",
        "p99 ÷", "CPU ÷",
    ]);
    for row in rows {
        for server in &row.servers {
            let of = |metric| server.medians.get(metric);
            let to = |metric| row.ratios_to(server.role).and_then(|ratios| ratios.get(metric));
            table.push(vec![
                row.name.clone(),
                server.role.to_string(),
                cell(of(Metric::RatePerSecond), rate),
                cell(of(Metric::P50Micros), micros),
                cell(of(Metric::P99Micros), micros),
                cell(of(Metric::ServerCpuMicros), |cpu| format!("{}/{}", micros(cpu), row.unit)),
                cell(of(Metric::ResidentBytes), bytes),
                cell(of(Metric::DiskAllocatedBytes), bytes),
                cell(to(Metric::RatePerSecond), ratio),
                cell(to(Metric::P50Micros), ratio),
                cell(to(Metric::P99Micros), ratio),
                cell(to(Metric::ServerCpuMicros), ratio),
            ]);
        }
    }
    table
}

fn has_aftermath(row: &RowReport) -> bool {
    let has = |metric| row.servers.iter().any(|server| server.medians.get(metric).is_some());
    has(Metric::RestartMillis) || has(Metric::RateOfCalm)
}

/// Columns that only the fill and the disturbed puts have.
fn aftermath(rows: &[RowReport]) -> Table {
    let mut table = Table::new(&[
        "work",
        "server",
        "restart",
        "memory then",
        "compaction",
        "defragment",
        "disk then",
        "rate of calm",
        "p99 of calm",
    ]);
    for row in rows.iter().filter(|row| has_aftermath(row)) {
        for server in &row.servers {
            let of = |metric| server.medians.get(metric);
            table.push(vec![
                row.name.clone(),
                server.role.to_string(),
                cell(of(Metric::RestartMillis), millis),
                cell(of(Metric::ResidentAfterRestartBytes), bytes),
                cell(of(Metric::CompactMillis), millis),
                cell(of(Metric::DefragmentMillis), millis),
                cell(of(Metric::DiskAfterCompactionBytes), bytes),
                cell(of(Metric::RateOfCalm), ratio),
                cell(of(Metric::P99OfCalm), ratio),
            ]);
        }
    }
    table
}

fn targets(rows: &[RowReport]) -> Table {
    let mut table = Table::new(&["work", "target", "is", "outcome"]);
    for row in rows {
        for verdict in &row.verdicts {
            table.push(vec![
                row.name.clone(),
                verdict.target.to_string(),
                cell(verdict.value, ratio),
                verdict.outcome.to_string(),
            ]);
        }
    }
    table
}
