//! What was measured, beside what the design asks for.

use std::{fmt, time::Duration};

use serde::Serialize;

use super::fleet::Claims;
use crate::{
    Machine,
    table::{self, Table},
};

/// What peers may take beyond the lease of a node that is gone.
const REQUEUE_S: f64 = 2.0;

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    /// Of the leases of all nodes.
    pub ttl_s: f64,
    /// Ours first.
    pub containers: Vec<Containers>,
    pub crowd: Crowd,
    pub processes: Crowd,
    pub losses: Vec<Loss>,
    /// Programs that cannot run here, and why.
    pub not_measured: Vec<String>,
}

/// Containers of one program.
#[derive(Clone, Debug, Serialize)]
pub struct Containers {
    pub program: String,
    pub count: usize,
    /// Many at once.
    pub per_second: f64,
    /// Until the command runs, one after the other; absent where that cannot be told.
    pub start: Option<Spread>,
    /// Until nothing is left of it, one after the other.
    pub whole: Option<Spread>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Many tasks that do nothing.
#[derive(Clone, Debug, Serialize)]
pub struct Crowd {
    pub runtime: String,
    pub nodes: usize,
    /// Those that have ended: all of them, if nothing is wrong.
    pub tasks: usize,
    pub canceled: usize,
    pub per_second: f64,
    pub wasted_claims_per_task: f64,
    /// Of the tasks that each node ran; 1 is perfectly even.
    pub jain: f64,
    /// After each part of the tasks.
    pub holdings: Vec<Holding>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Holding {
    /// Of the node that serves the store, which keeps ended tasks for a day.
    pub with_store_bytes: u64,
    /// Of the largest other node.
    pub without_store_bytes: Option<u64>,
    /// Of the node that has most of them.
    pub descriptors: usize,
}

/// A node is killed, and its tasks run again.
#[derive(Clone, Debug, Serialize)]
pub struct Loss {
    /// Whether it was started again at once.
    pub comes_back: bool,
    pub tasks: usize,
    /// From the kill to the last of them.
    pub again_in_s: f64,
}

// === impl Spread ===

impl Spread {
    /// `None` if there are no times.
    #[must_use]
    pub(super) fn of(times: &[Duration]) -> Option<Self> {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let at = |part: usize| {
            let index = (sorted.len() * part).div_ceil(100).max(1) - 1;
            sorted.get(index).map(|time| time.as_secs_f64() * 1e3)
        };
        Some(Self { p50_ms: at(50)?, p99_ms: at(99)? })
    }
}

// === impl Containers ===

impl Containers {
    #[expect(clippy::cast_precision_loss, reason = "thousands of containers")]
    pub(super) fn new(
        program: &str,
        count: usize,
        busy: Duration,
        start: Option<Spread>,
        whole: Option<Spread>,
    ) -> Self {
        let per_second = count as f64 / busy.as_secs_f64();
        Self { program: program.to_owned(), count, per_second, start, whole }
    }
}

impl fmt::Display for Containers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p50 = table::cell(self.whole.map(|whole| whole.p50_ms), table::millis);
        let rate = table::rate(self.per_second);
        write!(f, "containers of {}: {rate} at once, p50 {p50} alone", self.program)
    }
}

// === impl Crowd ===

impl Crowd {
    #[expect(clippy::cast_precision_loss, reason = "thousands of tasks")]
    pub(super) fn new(
        runtime: &str,
        by_node: &[usize],
        busy: Duration,
        claims: Claims,
        holdings: Vec<Holding>,
        [tasks, canceled]: [usize; 2],
    ) -> Self {
        Self {
            runtime: runtime.to_owned(),
            nodes: by_node.len(),
            tasks,
            canceled,
            per_second: tasks as f64 / busy.as_secs_f64(),
            wasted_claims_per_task: claims.wasted / tasks as f64,
            jain: jain(by_node),
            holdings,
        }
    }

    /// What is measured of it, and the values in the same order.
    fn cells(&self) -> [(&'static str, String); 7] {
        let each = |show: &dyn Fn(&Holding) -> String| {
            self.holdings.iter().map(show).collect::<Vec<_>>().join(", ")
        };
        #[expect(clippy::cast_precision_loss, reason = "sizes for people")]
        let bytes = |bytes: u64| table::bytes(bytes as f64);
        let without_store = self.holdings.iter().filter_map(|it| it.without_store_bytes);
        let without_store: Vec<String> = without_store.map(bytes).collect();
        [
            ("tasks/s", table::rate(self.per_second)),
            ("canceled", self.canceled.to_string()),
            ("wasted claims per task", format!("{:.3}", self.wasted_claims_per_task)),
            ("Jain's fairness", format!("{:.3}", self.jain)),
            ("memory after each quarter, node", without_store.join(", ")),
            ("memory after each quarter, with store", each(&|it| bytes(it.with_store_bytes))),
            ("descriptors after each quarter", each(&|it| it.descriptors.to_string())),
        ]
    }

    fn name(&self) -> String {
        let Self { tasks, runtime, nodes, .. } = self;
        format!("{tasks} × true, {runtime} on {nodes}")
    }
}

impl fmt::Display for Crowd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), table::rate(self.per_second))
    }
}

/// Raj Jain's index: the square of the sum over the count times the sum of squares.
#[expect(clippy::cast_precision_loss, reason = "thousands of tasks")]
fn jain(shares: &[usize]) -> f64 {
    let sum: f64 = shares.iter().map(|share| *share as f64).sum();
    let squares: f64 = shares.iter().map(|share| (*share as f64).powi(2)).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

// === impl Loss ===

impl Loss {
    fn name(&self) -> &'static str {
        if self.comes_back { "kill -9 and start again" } else { "kill -9" }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} tasks run again in {:.2} s", self.name(), self.tasks, self.again_in_s)
    }
}

// === impl Report ===

impl Report {
    fn crowds_table(&self) -> Table {
        let targets = ["≥ 1000/s of processes", "1 %", "< 0.2", "> 0.95", "flat", "", "flat"];
        let [crowd, processes] = [&self.crowd, &self.processes];
        let mut table = Table::new(&["tasks", &crowd.name(), &processes.name(), "target"]);
        let rows = crowd.cells().into_iter().zip(processes.cells()).zip(targets);
        for (((measure, of_crowd), (_, of_processes)), target) in rows {
            table.push(vec![measure.to_owned(), of_crowd, of_processes, target.to_owned()]);
        }
        table
    }

    fn losses_table(&self) -> Table {
        let mut table = Table::new(&["a node is lost", "tasks", "all run again in", "target"]);
        for loss in &self.losses {
            let within = self.ttl_s + REQUEUE_S;
            let target = if loss.comes_back { "< 2 s" } else { &format!("≤ {within:.0} s") };
            let again = format!("{:.2} s", loss.again_in_s);
            let row = [loss.name(), &loss.tasks.to_string(), &again, target];
            table.push(row.map(ToOwned::to_owned).to_vec());
        }
        table
    }

    fn containers_table(&self) -> Table {
        let heading = ["containers of", "at once", "start p50", "whole p50", "whole p99"];
        let mut table = Table::new(&heading);
        for each in &self.containers {
            let millis = |value: Option<f64>| table::cell(value, table::millis);
            table.push(vec![
                each.program.clone(),
                table::rate(each.per_second),
                millis(each.start.map(|start| start.p50_ms)),
                millis(each.whole.map(|whole| whole.p50_ms)),
                millis(each.whole.map(|whole| whole.p99_ms)),
            ]);
        }
        table
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}; nodes, store and load on the same cores\n", self.machine)?;
        let tables = [self.crowds_table(), self.losses_table(), self.containers_table()];
        for table in tables {
            writeln!(f, "{table}")?;
        }
        self.not_measured.iter().try_for_each(|reason| writeln!(f, "not measured: {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_share_is_one_and_an_uneven_one_is_less() {
        assert!((jain(&[10, 10, 10]) - 1.0).abs() < 1e-9);
        assert!((jain(&[30, 0, 0]) - 1.0 / 3.0).abs() < 1e-9);
        assert!((jain(&[]) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_spread_is_of_the_times_that_there_are() {
        let times: Vec<Duration> = (1..=100).rev().map(Duration::from_millis).collect();
        assert_eq!(Spread::of(&times), Some(Spread { p50_ms: 50.0, p99_ms: 99.0 }));
        assert_eq!(Spread::of(&[]), None);
    }
}
