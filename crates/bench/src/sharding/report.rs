//! What was measured, beside what the design asks for and what the Go project publishes.

#[cfg(test)]
mod tests;

use std::{fmt, time::Duration};

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::{
    Machine,
    table::{self, Table},
};

/// Of the Go project, and what is to be reached, with 1, 2, 3 and so on instances.
const CAPACITIES: [(&str, &str); 5] =
    [("1", ""), ("1.55", "1.9"), ("2.25", "2.8"), ("2.71", "3.7"), ("3.16", "4.5")];

/// What is moved with few objects, and how long that takes the Go project.
pub(super) const JOINED: &str = "2 → 3";
pub(super) const LEFT: &str = "3 → 2, stopped";
pub(super) const REPLACED: &str = "a pod of 3 deleted and replaced";
const MOVES: [(&str, &str); 3] = [(JOINED, "17 s"), (LEFT, "17 s"), (REPLACED, "28 s")];

/// What finding out and taking a Lease may take beyond twice its duration.
const CRASH_MARGIN_S: f64 = 1.0;

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    /// Objects of the ring, where nothing else is said.
    pub objects: usize,
    pub capacity: Vec<Capacity>,
    pub evenness: Vec<Evenness>,
    pub moves: Vec<Move>,
    pub gap: Gap,
    pub rolling: Rolling,
    pub crashes: Vec<Crash>,
    pub creation: Creation,
    pub cpu: Cpu,
    pub footprints: Vec<Footprint>,
}

/// What instances achieve that have more to do than they can.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Capacity {
    pub instances: usize,
    pub per_second: f64,
    /// Compared with one instance.
    pub ratio: f64,
}

/// The fullest instance compared with the mean.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evenness {
    pub way: String,
    pub instances: usize,
    pub max_over_mean: f64,
}

/// From a change of instances to the last label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Move {
    pub what: String,
    pub objects: usize,
    pub moved: usize,
    pub took_s: f64,
}

/// For how long an object was nobody's, on its way from one instance to another.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Gap {
    pub moves: usize,
    pub spread: Spread,
}

/// Every instance restarts once, and its place is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rolling {
    pub instances: usize,
    pub moved: usize,
}

/// An instance is killed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Crash {
    pub lease_s: f64,
    pub moved: usize,
    /// Until the first of its objects has another owner.
    pub begun_in_s: f64,
    /// From then on until the last has.
    pub took_s: f64,
}

/// Creating an object, without a ring and in one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Creation {
    pub bare: Spread,
    pub ringed: Spread,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Cores taken under a steady stream of changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cpu {
    pub changes_per_second: u32,
    pub sharder: f64,
    pub instances: f64,
    /// By one controller without sharding.
    pub alone: f64,
}

/// Memory of a sharder that has gone through all objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Footprint {
    pub objects: usize,
    /// Resident when it is idle, with the pages of its program (VmRSS).
    pub resident_bytes: u64,
    /// Of that, its own: without what the kernel can drop and read again (RssAnon).
    pub own_bytes: u64,
    /// The most that was ever resident (VmHWM).
    pub peak_bytes: u64,
}

// === impl Spread ===

impl Spread {
    pub(super) fn of(times: &[Duration]) -> Result<Self> {
        ensure!(!times.is_empty(), "there is nothing to take a median of");
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        let at = |part: usize| {
            let index = (sorted.len() * part).div_ceil(100).max(1) - 1;
            sorted[index].as_secs_f64() * 1e3
        };
        Ok(Self { p50_ms: at(50), p99_ms: at(99) })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99] = [self.p50_ms, self.p99_ms].map(table::millis);
        write!(f, "p50 {p50}, p99 {p99}")
    }
}

// === impl Cpu ===

impl Cpu {
    /// Everything compared with a controller that is alone, in percent.
    #[must_use]
    pub fn added_percent(&self) -> f64 {
        ((self.sharder + self.instances) / self.alone - 1.0) * 100.0
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { changes_per_second, sharder, instances, alone } = self;
        write!(
            f,
            "{changes_per_second} changes/s: sharder {sharder:.3} cores, instances {instances:.3}, \
             alone {alone:.3}"
        )
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, objects, moved, took_s } = self;
        write!(f, "{what} of {objects} objects: {moved} moved in {took_s:.2} s")
    }
}

impl fmt::Display for Rolling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} instances restarted: {} objects moved", self.instances, self.moved)
    }
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lease_s, moved, begun_in_s, took_s } = self;
        write!(
            f,
            "killed, D = {lease_s} s: after {begun_in_s:.2} s, {moved} moved in {took_s:.2} s"
        )
    }
}

impl fmt::Display for Creation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "creations: {} without a ring, {} in one", self.bare, self.ringed)
    }
}

impl fmt::Display for Footprint {
    #[expect(clippy::cast_precision_loss, reason = "sizes for people")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { objects, resident_bytes, own_bytes, peak_bytes } = *self;
        let all = [resident_bytes, own_bytes, peak_bytes];
        let [resident, own, peak] = all.map(|it| table::bytes(it as f64));
        write!(f, "{objects} objects: sharder {resident} idle, {own} its own, {peak} at most")
    }
}

// === impl Report ===

impl Report {
    /// Every figure with what it is compared with: measure, is, Go project, target.
    fn rows(&self) -> Vec<[String; 4]> {
        let mut rows = self.rows_of_capacity();
        rows.extend(self.rows_of_moves());
        rows.extend(self.rows_of_costs());
        rows
    }

    fn rows_of_capacity(&self) -> Vec<[String; 4]> {
        let mut rows = Vec::new();
        for each in &self.capacity {
            let (go, target) = CAPACITIES.get(each.instances - 1).copied().unwrap_or_default();
            let is = format!("{:.2} ({})", each.ratio, table::rate(each.per_second));
            let target = if target.is_empty() { String::new() } else { format!("≥ {target}") };
            rows.push(row(format!("capacity, {} instances vs 1", each.instances), is, go, &target));
        }
        for Evenness { way, instances, max_over_mean } in &self.evenness {
            let is_ring = way.starts_with("ring");
            let go = match (is_ring, instances) {
                (true, _) => "",
                (false, 5) => "1.16",
                (false, 10) => "1.23",
                (false, _) => "",
            };
            let target = if is_ring { "" } else { "≤ 1.05" };
            let measure = format!("max/mean, {instances} instances, {way}");
            rows.push(row(measure, format!("{max_over_mean:.3}"), go, target));
        }
        rows
    }

    fn rows_of_moves(&self) -> Vec<[String; 4]> {
        let mut rows = Vec::new();
        for each in &self.moves {
            let go = MOVES.iter().find(|(what, _)| *what == each.what).map_or("", |(_, go)| go);
            let target = if each.objects > self.objects { "≤ 20 s" } else { "≤ 3 s" };
            let is = format!("{:.2} s ({} moved)", each.took_s, each.moved);
            let measure = format!("rebalance {} objects, {}", each.objects, each.what);
            rows.push(row(measure, is, go, target));
        }
        let Gap { moves, spread } = self.gap;
        let measure = format!("gap of a graceful move, p99 of {moves}");
        rows.push(row(measure, table::millis(spread.p99_ms), "", "≤ 100 ms"));
        rows.push(row("the same, p50".into(), table::millis(spread.p50_ms), "", ""));
        let Rolling { instances, moved } = self.rolling;
        let measure = format!("moves when {instances} instances restart and hold");
        rows.push(row(measure, moved.to_string(), "nearly all", "0"));
        for Crash { lease_s, moved, begun_in_s, took_s } in &self.crashes {
            let go = if *lease_s >= 15.0 { "about 30 s" } else { "" };
            let target = format!("≤ {:.0} s", 2.0 * lease_s + CRASH_MARGIN_S);
            let measure = format!("crash to reassignment begun, D = {lease_s} s");
            rows.push(row(measure, format!("{begun_in_s:.2} s"), go, &target));
            let is = format!("{took_s:.2} s ({moved} moved)");
            rows.push(row(format!("the same, then until done, D = {lease_s} s"), is, "", "≤ 3 s"));
        }
        rows
    }

    fn rows_of_costs(&self) -> Vec<[String; 4]> {
        let Creation { bare, ringed } = self.creation;
        let added = ringed.p99_ms - bare.p99_ms;
        let sides = |spread: fn(&Spread) -> f64| {
            format!("{} / {}", table::millis(spread(&ringed)), table::millis(spread(&bare)))
        };
        let mut rows = vec![
            row("create with / without, p99".into(), sides(|it| it.p99_ms), "87 / 24.5 ms", ""),
            row("create with / without, p50".into(), sides(|it| it.p50_ms), "", ""),
            row("added to a create, p99".into(), format!("{added:.2} ms"), "", "≤ 1 ms"),
        ];
        for each in &self.footprints {
            #[expect(clippy::cast_precision_loss, reason = "sizes for people")]
            let [resident, own, peak] = [each.resident_bytes, each.own_bytes, each.peak_bytes]
                .map(|it| mebibytes(it as f64));
            let of = |what| format!("sharder memory, {} objects, {what}", each.objects);
            rows.push(row(of("idle, resident"), resident, "15–18 MiB", "≤ 15 MiB"));
            rows.push(row(of("idle, without its program"), own, "", ""));
            rows.push(row(of("most resident since its start"), peak, "31 MiB", "≤ 40 MiB"));
        }
        let Cpu { changes_per_second, sharder, .. } = self.cpu;
        let measure = format!("sharder CPU at {changes_per_second} changes/s");
        rows.push(row(measure, format!("{sharder:.3} cores"), "0.02–0.03", "≤ 0.02"));
        let added = format!("{:+.0} %", self.cpu.added_percent());
        rows.push(row("total CPU over one controller alone".into(), added, "+36 %", "≤ +15 %"));
        rows
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, objects, .. } = self;
        writeln!(f, "{machine}; API server, sharder, instances and load on the same cores")?;
        writeln!(f, "{objects} objects; a reconcile waits 20–50 ms and applies once, 5 workers\n")?;
        let mut table = Table::new(&["measure", "is", "Go project", "target"]);
        self.rows().into_iter().for_each(|row| table.push(row.to_vec()));
        write!(f, "{table}")
    }
}

fn row(measure: String, is: String, go: &str, target: &str) -> [String; 4] {
    [measure, is, go.to_owned(), target.to_owned()]
}

/// As the targets have it.
fn mebibytes(bytes: f64) -> String {
    format!("{:.1} MiB", bytes / f64::from(1 << 20))
}
