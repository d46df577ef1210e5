//! What was measured, beside what is to be reached.

use std::fmt;

use serde::Serialize;

use super::{Cluster, Loaded, Scale};
use crate::Machine;
use crate::table::{self, Table, bytes, micros, millis, rate, ratio};

/// What the stores' rate is to be, as a multiple of etcd's, by how a load's name begins.
const RATES: [(&str, f64); 3] = [("put-256B-c1000", 0.5), ("get", 1.5), ("watch", 1.5)];
const FAILOVER_REACH: &str = "≤ 3 s";
const START_REACH: &str = "≤ 5 s";

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub scale: Scale,
    /// The stores first.
    pub clusters: Vec<Cluster>,
}

// === impl Report ===

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, scale, clusters } = self;
        let Scale { timed_ms, keys, .. } = scale;
        writeln!(f, "{machine}; load generator on the same cores")?;
        writeln!(f, "three members each, one round of {timed_ms} ms, {keys} keys\n")?;
        writeln!(f, "{}", loads(clusters))?;
        write!(f, "{}", others(clusters))
    }
}

fn loads(clusters: &[Cluster]) -> Table {
    let heading = [
        "work",
        "cluster",
        "rate",
        "p50",
        "p99",
        "refused",
        "CPU",
        "engine's CPU",
        "rate ÷",
        "reach",
    ];
    let mut table = Table::new(&heading);
    let Some(first) = clusters.first() else { return table };
    for (index, own) in first.loads.iter().enumerate() {
        for cluster in clusters {
            let Some(load) = cluster.loads.get(index) else { continue };
            let is_own = cluster == first;
            table.push(row(cluster.name, load, (!is_own).then_some(own)));
        }
    }
    table
}

/// With `own` it is compared with what the stores reached.
fn row(name: &str, load: &Loaded, own: Option<&Loaded>) -> Vec<String> {
    let reach = RATES.iter().find(|(prefix, _)| load.work.starts_with(prefix));
    let reach = reach.filter(|_| own.is_some());
    vec![
        load.work.clone(),
        name.to_owned(),
        rate(load.rate_per_second),
        micros(load.p50_micros),
        micros(load.p99_micros),
        load.refused.to_string(),
        micros(load.members_cpu_micros),
        table::cell(load.engine_cpu_micros, micros),
        table::cell(own.map(|own| own.rate_per_second / load.rate_per_second), ratio),
        reach.map_or_else(String::new, |(_, least)| format!("≥ {least}")),
    ]
}

fn others(clusters: &[Cluster]) -> Table {
    let mut heading = vec!["measure"];
    heading.extend(clusters.iter().map(|cluster| cluster.name));
    heading.push("reach");
    let mut table = Table::new(&heading);
    let mut push = |name: &str, reach: &str, cell: &dyn Fn(&Cluster) -> String| {
        let mut row = vec![name.to_owned()];
        row.extend(clusters.iter().map(cell));
        row.push(reach.to_owned());
        table.push(row);
    };
    let failover = "failover, kill -9 to the next write: median, worst";
    push(failover, FAILOVER_REACH, &|it| median_and_worst(&it.failovers_ms));
    push("start of a member: median, worst", START_REACH, &|it| median_and_worst(&it.starts_ms));
    push("memory of three members", "", &|it| bytes(it.members_bytes as f64));
    push("memory of the engine", "", &|it| {
        table::cell(it.engine_bytes.map(|count| count as f64), bytes)
    });
    table
}

fn median_and_worst(times_ms: &[f64]) -> String {
    let mut sorted = times_ms.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.get(sorted.len() / 2), sorted.last()) {
        (Some(median), Some(worst)) => format!("{}, {}", millis(*median), millis(*worst)),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_worst_of_all_times_are_told() {
        let told = median_and_worst(&[3000.0, 1000.0, 2000.0]);
        assert_eq!(told, format!("{}, {}", millis(2000.0), millis(3000.0)));
        assert_eq!(median_and_worst(&[]), "");
    }
}
