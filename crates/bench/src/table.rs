//! Numbers for people: plain tables in Markdown, and figures in a readable unit.

use std::{fmt, iter};

/// Rows of cells, the first of them the heading; every row has as many cells.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

// === impl Table ===

impl Table {
    pub(crate) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|&cell| cell.to_owned()).collect()] }
    }

    pub(crate) fn push(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.rows[0].len(), "a row has a cell for every heading");
        self.rows.push(row);
    }

    fn widths(&self) -> Vec<usize> {
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        (0..self.rows[0].len()).map(width).collect()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        for (index, row) in self.rows.iter().enumerate() {
            for (cell, width) in iter::zip(row, &widths) {
                write!(f, "| {cell:width$} ")?;
            }
            writeln!(f, "|")?;
            if index == 0 {
                for width in &widths {
                    write!(f, "|{}", "-".repeat(width + 2))?;
                }
                writeln!(f, "|")?;
            }
        }
        Ok(())
    }
}

/// Three digits, and the unit that makes them fit.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let (size, unit) = units.iter().rev().find(|(size, _)| value >= *size).unwrap_or(&units[0]);
    let number = value / size;
    let digits = if number >= 100.0 {
        0
    } else if number >= 10.0 {
        1
    } else {
        2
    };
    format!("{number:.digits$}{unit}")
}

pub(crate) fn rate(per_second: f64) -> String {
    scaled(per_second, &[(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s")])
}

pub(crate) fn micros(micros: f64) -> String {
    scaled(micros, &[(1.0, " µs"), (1e3, " ms"), (1e6, " s")])
}

pub(crate) fn millis(millis: f64) -> String {
    micros(millis * 1e3)
}

pub(crate) fn bytes(bytes: f64) -> String {
    scaled(bytes, &[(1.0, " B"), (1e3, " kB"), (1e6, " MB"), (1e9, " GB")])
}

pub(crate) fn ratio(ratio: f64) -> String {
    format!("{ratio:.2}")
}

/// A cell for what may not have been measured.
pub(crate) fn cell(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(String::new, show)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        let shown = [rate(0.5), rate(25_912.0), rate(1.45e6), micros(98.0), micros(4210.0)];
        assert_eq!(shown, ["0.50/s", "25.9k/s", "1.45M/s", "98.0 µs", "4.21 ms"]);
        assert_eq!([bytes(512.0), bytes(487e6), millis(1400.0)], ["512 B", "487 MB", "1.40 s"]);
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["work", "rate"]);
        table.push(vec!["a µs".to_owned(), "1".to_owned()]);
        table.push(vec!["longer".to_owned(), String::new()]);
        expect![[r"
            | work   | rate |
            |--------|------|
            | a µs   | 1    |
            | longer |      |
        "]]
        .assert_eq(&table.to_string());
    }
}
