//! What was measured, beside what upstream takes and what the design asks for.

use std::fmt;

use serde::Serialize;

use super::Iterated;
use crate::Machine;
use crate::fit::{Figure, WORKS};
use crate::table::{self, Table, millis};

/// What upstream's Cluster Autoscaler 1.30.7 takes for each of [`WORKS`], and what is to be reached.
/// Upstream's surges are of a large server.
const PACKINGS: [(&str, &str); WORKS] = [
    ("3.35 s of CPU", "300 ms"),
    ("", "1 s"),
    ("about 5.5 s of CPU", "500 ms"),
    ("", "5 s"),
    ("606 s; 72.7 s and 313 s with a fix that is not merged", "5 s"),
];

const ITERATION_REACH: &str = "1 s";
const OBSERVE_REACH: &str = "20 ms";
const MEMORY_REACH: &str = "1.07 GB";

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub machine: Machine,
    /// How much smaller than life everything was.
    pub divisor: usize,
    /// The first finds everything new; those after it are like all others.
    pub iterations: Vec<Iterated>,
    pub packings: Vec<Figure>,
}

// === impl Report ===

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, divisor, iterations, packings } = self;
        writeln!(f, "{machine}")?;
        if *divisor != 1 {
            writeln!(f, "everything is {divisor} times smaller: the figures mean little")?;
        }
        writeln!(f, "\n{}", estimates(packings))?;
        write!(f, "{}", loops(iterations))
    }
}

fn estimates(packings: &[Figure]) -> Table {
    let heading =
        ["estimate", "pods", "new nodes", "left", "reading", "packing", "upstream", "reach"];
    let mut table = Table::new(&heading);
    for (figure, (upstream, reach)) in packings.iter().zip(PACKINGS) {
        table.push(vec![
            figure.work.to_owned(),
            figure.pods.to_string(),
            figure.new_nodes.to_string(),
            figure.left.to_string(),
            millis(figure.compile_millis),
            millis(figure.pack_millis),
            upstream.to_owned(),
            reach.to_owned(),
        ]);
    }
    table
}

fn loops(iterations: &[Iterated]) -> Table {
    let heading = ["iteration", "nodes", "pods", "new nodes", "unneeded", "took", "reach"];
    let mut table = Table::new(&heading);
    for (iterated, which) in iterations.iter().zip(["first", "next"]) {
        let rows = [
            (which.to_owned(), millis(iterated.iteration_millis), ITERATION_REACH),
            (format!("{which}, `observe` alone"), millis(iterated.observe_millis), OBSERVE_REACH),
            (
                format!("{which}, memory at most"),
                table::bytes(iterated.peak_bytes as f64),
                MEMORY_REACH,
            ),
        ];
        for (name, took, reach) in rows {
            table.push(vec![
                name,
                iterated.nodes.to_string(),
                iterated.pods.to_string(),
                iterated.increases.to_string(),
                iterated.unneeded.to_string(),
                took,
                reach.to_owned(),
            ]);
        }
    }
    table
}

// === impl Iterated ===

impl fmt::Display for Iterated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, pods, iteration_millis, .. } = self;
        write!(f, "an iteration on {nodes} nodes with {pods} pods: {}", millis(*iteration_millis))
    }
}
