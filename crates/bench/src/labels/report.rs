//! What was measured, beside what the design asks for.

use std::{fmt, time::Duration};

use serde::Serialize;

use super::{
    fleet::{FleetCounts, Memory},
    writes::Writes,
};
use crate::{
    Machine,
    table::{self, Table},
};

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub watchers: usize,
    pub processors: usize,
    pub single: Single,
    pub storms: Vec<Storm>,
    pub idle_requests_per_second: f64,
}

/// One node at a time, from its creation to its labels being back.
#[derive(Clone, Debug, Serialize)]
pub struct Single {
    pub nodes: usize,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// All nodes leave at once and return at once.
#[derive(Clone, Debug, Serialize)]
pub struct Storm {
    pub nodes: usize,
    pub restored: usize,
    pub stored_in_s: f64,
    pub restored_in_s: f64,
    pub transactions_per_second: f64,
    /// For each node that leaves and returns.
    pub writes_per_node: Writes,
    /// While all of it was queued and worked off.
    pub lists_per_processor: f64,
    pub watcher_bytes: u64,
    pub processor_bytes: u64,
}

// === impl Single ===

impl Single {
    /// # Panics
    ///
    /// If there is no time.
    #[must_use]
    pub(super) fn of(times: &[Duration]) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let at = |part: usize| {
            let index = (sorted.len() * part).div_ceil(100).max(1) - 1;
            sorted[index].as_secs_f64() * 1e3
        };
        Self { nodes: sorted.len(), p50_ms: at(50), p99_ms: at(99) }
    }
}

impl fmt::Display for Single {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99] = [self.p50_ms, self.p99_ms].map(table::millis);
        write!(f, "{} nodes, p50 {p50}, p99 {p99}", self.nodes)
    }
}

// === impl Storm ===

impl Storm {
    #[expect(clippy::cast_precision_loss, reason = "thousands of nodes")]
    pub(super) fn new(
        nodes: usize,
        restored: usize,
        [stored_in, restored_in]: [Duration; 2],
        before: &FleetCounts,
        after: &FleetCounts,
    ) -> Self {
        let busy = (stored_in + restored_in).as_secs_f64();
        Self {
            nodes,
            restored,
            stored_in_s: stored_in.as_secs_f64(),
            restored_in_s: restored_in.as_secs_f64(),
            transactions_per_second: (after.all.processed - before.all.processed) / busy,
            writes_per_node: after.all.writes.since(&before.all.writes, nodes as f64),
            lists_per_processor: after.lists_per_processor - before.lists_per_processor,
            watcher_bytes: 0,
            processor_bytes: 0,
        }
    }

    /// Of each kind, made and refused.
    fn writes(&self) -> Table {
        let heading = format!("storm of {}: writes per node cycle", self.nodes);
        let mut table = Table::new(&[&heading, "carried out", "refused"]);
        for (kind, tally) in self.writes_per_node.of_kinds() {
            let [made, refused] = [tally.made, tally.refused].map(|count| format!("{count:.2}"));
            table.push(vec![kind.to_string(), made, refused]);
        }
        table
    }

    pub(super) fn with_memory(self, memory: Memory) -> Self {
        let Memory { watcher_bytes, processor_bytes } = memory;
        Self { watcher_bytes, processor_bytes, ..self }
    }
}

impl fmt::Display for Storm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "storm of {}: {} restored, stored in {:.1} s, restored in {:.1} s, {:.0} transactions/s",
            self.nodes,
            self.restored,
            self.stored_in_s,
            self.restored_in_s,
            self.transactions_per_second,
        )
    }
}

// === impl Report ===

impl fmt::Display for Report {
    #[expect(clippy::cast_precision_loss, reason = "sizes for people")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["measure", "is", "target"]);
        let mut row = |measure: String, is: String, target: &str| {
            table.push(vec![measure, is, target.to_owned()]);
        };
        row("one node, created to restored, p50".into(), table::millis(self.single.p50_ms), "");
        row(
            "one node, created to restored, p99".into(),
            table::millis(self.single.p99_ms),
            "< 1 s",
        );
        for storm in &self.storms {
            let of = format!("storm of {}", storm.nodes);
            let in_time = if storm.nodes >= 5000 { "all, in < 300 s" } else { "all" };
            let restored = format!("{} in {:.1} s", storm.restored, storm.restored_in_s);
            row(format!("{of}: restored"), restored, in_time);
            row(format!("{of}: stored"), format!("{:.1} s", storm.stored_in_s), "");
            let rate = format!("{:.0}", storm.transactions_per_second);
            row(format!("{of}: transactions/s"), rate, "≥ 40");
            let writes = storm.writes_per_node.total();
            row(format!("{of}: writes per node cycle"), format!("{:.1}", writes.made), "≤ 12");
            row(format!("{of}: refused writes"), format!("{:.1}", writes.refused), "");
            let lists = format!("{:.1}", storm.lists_per_processor);
            row(format!("{of}: list requests of a processor"), lists, "0");
            let [watcher, processor] = [storm.watcher_bytes, storm.processor_bytes]
                .map(|bytes| table::bytes(bytes as f64));
            row(format!("{of}: memory of a watcher"), watcher, "≤ 100 MB");
            row(format!("{of}: memory of a processor"), processor, "≤ 100 MB");
        }
        let idle = format!("{:.2}", self.idle_requests_per_second);
        row("idle, requests/s of a replica".into(), idle, "≤ 1");
        writeln!(f, "{}; API server and load on the same cores", self.machine)?;
        writeln!(f, "{} watchers, {} processors\n", self.watchers, self.processors)?;
        write!(f, "{table}")?;
        self.storms.iter().try_for_each(|storm| write!(f, "\n{}", storm.writes()))
    }
}
