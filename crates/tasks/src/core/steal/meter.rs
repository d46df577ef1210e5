//! How long it takes until the others know that a task is taken, measured.

use std::collections::VecDeque;
use std::time::Duration;

/// Below this, the spread of watch delays alone makes two nodes claim.
pub const STEP_MIN: Duration = Duration::from_millis(5);
/// Above this, waiting costs more than the claims it saves.
pub const STEP_MAX: Duration = Duration::from_millis(100);
pub const STEP_START: Duration = Duration::from_millis(10);
/// The 99th percentile needs a hundred samples; twice that forgets a bad minute soon.
const SAMPLES_MAX: usize = 200;
/// Fewer say nothing about a percentile.
const SAMPLES_MIN: usize = 20;

/// Keeps the last samples of claim round trip plus watch lag. The step is asked for with every look at
/// every task, so it is worked out when a sample comes.
#[derive(Clone, Debug)]
pub struct StepMeter {
    samples: VecDeque<Duration>,
    step: Duration,
}

// === impl StepMeter ===

impl StepMeter {
    /// `sample`: from sending a claim to seeing it in the watch.
    pub fn record(&mut self, sample: Duration) {
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        self.step = self.percentile();
    }

    /// The 99th percentile within its bounds.
    #[must_use]
    pub fn step(&self) -> Duration {
        self.step
    }

    fn percentile(&self) -> Duration {
        if self.samples.len() < SAMPLES_MIN {
            return STEP_START;
        }
        let mut sorted: Vec<Duration> = self.samples.iter().copied().collect();
        sorted.sort_unstable();
        let index = (sorted.len() * 99).div_ceil(100) - 1;
        sorted[index].clamp(STEP_MIN, STEP_MAX)
    }
}

impl Default for StepMeter {
    fn default() -> Self {
        Self { samples: VecDeque::new(), step: STEP_START }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step_of(samples: impl IntoIterator<Item = u64>) -> u128 {
        let mut meter = StepMeter::default();
        samples.into_iter().for_each(|sample| meter.record(Duration::from_millis(sample)));
        meter.step().as_millis()
    }

    #[test]
    fn the_step_is_the_99th_percentile_within_bounds() {
        assert_eq!(step_of([]), 10);
        assert_eq!(step_of([50; 19]), 10);
        assert_eq!(step_of(1..=100), 99);
        assert_eq!(step_of([1; 100]), 5);
        assert_eq!(step_of([900; 100]), 100);
        assert_eq!(step_of((0..200).chain([20; 200])), 20, "old samples are forgotten");
    }
}
