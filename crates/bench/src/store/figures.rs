//! The numbers of a measurement, by name. That all of them are plain numbers makes medians, ratios
//! and targets the same for every row.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Operations, lists or events in a second.
    RatePerSecond,
    P50Micros,
    P99Micros,
    /// Processor time of the server for one of what the rate counts.
    ServerCpuMicros,
    /// Memory of the server right after the load.
    ResidentBytes,
    DiskApparentBytes,
    DiskAllocatedBytes,
    /// From starting the process to the first linearizable read.
    RestartMillis,
    ResidentAfterRestartBytes,
    /// Forgetting all history, space released.
    CompactMillis,
    DefragmentMillis,
    DiskAfterCompactionBytes,
    /// The rate, as a share of the same load undisturbed on the same server.
    RateOfCalm,
    /// The 99th percentile, as a multiple of the same load undisturbed on the same server.
    P99OfCalm,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(BTreeMap<Metric, f64>);

// === impl Metric ===

impl Metric {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::RatePerSecond => "rate",
            Self::P50Micros => "p50",
            Self::P99Micros => "p99",
            Self::ServerCpuMicros => "server CPU",
            Self::ResidentBytes => "memory",
            Self::DiskApparentBytes => "disk",
            Self::DiskAllocatedBytes => "disk allocated",
            Self::RestartMillis => "restart",
            Self::ResidentAfterRestartBytes => "memory after restart",
            Self::CompactMillis => "compaction",
            Self::DefragmentMillis => "defragment",
            Self::DiskAfterCompactionBytes => "disk after compaction",
            Self::RateOfCalm => "rate of calm",
            Self::P99OfCalm => "p99 of calm",
        }
    }
}

// === impl Figures ===

impl Figures {
    #[must_use]
    pub fn get(&self, metric: Metric) -> Option<f64> {
        self.0.get(&metric).copied()
    }

    pub fn set(&mut self, metric: Metric, value: f64) {
        self.0.insert(metric, value);
    }

    pub fn iter(&self) -> impl Iterator<Item = (Metric, f64)> {
        self.0.iter().map(|(&metric, &value)| (metric, value))
    }

    /// Each figure's median over the rounds that have it.
    #[must_use]
    pub fn medians(rounds: &[Self]) -> Self {
        let mut values: BTreeMap<Metric, Vec<f64>> = BTreeMap::new();
        for (metric, value) in rounds.iter().flat_map(Self::iter) {
            values.entry(metric).or_default().push(value);
        }
        Self(values.into_iter().map(|(metric, values)| (metric, median(values))).collect())
    }

    /// These figures in units of the other's, where both have them.
    #[must_use]
    pub fn ratios(&self, other: &Self) -> Self {
        let ratio = |(metric, value)| {
            let base = other.get(metric).filter(|&base| base > 0.0)?;
            Some((metric, value / base))
        };
        Self(self.iter().filter_map(ratio).collect())
    }
}

/// The middle value; of an even number, the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(value: f64) -> Figures {
        let mut figures = Figures::default();
        figures.set(Metric::RatePerSecond, value);
        figures
    }

    #[test]
    fn a_median_ignores_the_outlier() {
        let medians = Figures::medians(&[rate(10.0), rate(1000.0), rate(12.0)]);
        assert_eq!(medians, rate(12.0));
        assert_eq!(Figures::medians(&[rate(10.0), rate(12.0)]), rate(11.0));
    }

    #[test]
    fn a_ratio_needs_both_sides() {
        assert_eq!(rate(30.0).ratios(&rate(20.0)), rate(1.5));
        assert_eq!(rate(30.0).ratios(&Figures::default()), Figures::default());
        assert_eq!(rate(30.0).ratios(&rate(0.0)), Figures::default());
    }
}
