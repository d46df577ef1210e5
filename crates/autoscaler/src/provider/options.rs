//! What a group may set for itself.

use jiff::SignedDuration;
use registry::{Options, Times};

/// The defaults, or what differs from them for one group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupOptions {
    pub times: Options,
    /// Below this share of its resources in use, a node is a candidate for removal.
    pub utilization_threshold: f64,
    pub gpu_utilization_threshold: f64,
    /// The group is only ever empty or full.
    pub is_zero_or_max: bool,
    pub ignores_daemon_sets: bool,
    /// Such a group may also be filled in parts.
    pub may_fill_in_parts: bool,
}

// === impl GroupOptions ===

impl GroupOptions {
    /// The defaults with these times.
    #[must_use]
    pub fn with_times(times: &Times) -> Self {
        let span = |time| Some(SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX));
        let times = Options {
            unneeded: span(times.unneeded),
            unready: span(times.unready),
            provision: span(times.provision),
            startup: span(times.startup),
        };
        Self { times, ..Self::default() }
    }
}

impl Default for GroupOptions {
    fn default() -> Self {
        Self {
            times: Options::default(),
            utilization_threshold: 0.5,
            gpu_utilization_threshold: 0.5,
            is_zero_or_max: false,
            ignores_daemon_sets: false,
            may_fill_in_parts: false,
        }
    }
}
