//! Journals side by side.

use super::Figures;
use crate::table::{self, Table};

/// One line for each subject and size of commit.
#[must_use]
pub fn table(measured: &[(String, Figures)]) -> String {
    let mut table = Table::new(&[
        "journal",
        "per commit",
        "puts",
        "commit p50",
        "commit p99",
        "CPU/put",
        "written ÷ kept",
        "reads",
        "scan",
        "memory",
        "disk",
        "reopen",
    ]);
    for (name, figures) in measured {
        table.push(vec![
            name.clone(),
            figures.options.records_per_commit.to_string(),
            table::rate(figures.puts_per_second),
            table::micros(figures.commit_p50_micros),
            table::micros(figures.commit_p99_micros),
            table::micros(figures.cpu_micros_per_put),
            table::ratio(figures.write_amplification),
            table::rate(figures.reads_per_second),
            table::rate(figures.scanned_per_second),
            table::bytes(figures.resident_bytes as f64),
            table::bytes(figures.disk_bytes as f64),
            table::cell(figures.reopen_millis, table::millis),
        ]);
    }
    table.to_string()
}
