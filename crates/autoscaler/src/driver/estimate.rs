//! How long the estimate of one group has taken.

use std::time::Duration;

use registry::GroupId;
use tokio::time::Instant;

/// The estimate at hand, and since when it is.
#[derive(Default)]
pub(super) struct Estimate {
    at: Option<(GroupId, Instant)>,
}

// === impl Estimate ===

impl Estimate {
    /// Whether the group at hand has been it for longer than that. Each has the whole time.
    pub(super) fn is_overdue(
        &mut self,
        group: Option<&GroupId>,
        now: Instant,
        max: Duration,
    ) -> bool {
        match (&self.at, group) {
            (Some((of, since)), Some(group)) if of == group => now.duration_since(*since) > max,
            (_, group) => {
                self.at = group.map(|group| (group.clone(), now));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_has_the_whole_time() {
        let (start, max) = (Instant::now(), Duration::from_secs(10));
        let (a, b) = (GroupId::from("a"), GroupId::from("b"));
        let mut estimate = Estimate::default();
        let mut at =
            |group, secs| estimate.is_overdue(group, start + Duration::from_secs(secs), max);
        assert!(!at(Some(&a), 0));
        assert!(!at(Some(&a), 9));
        assert!(!at(Some(&b), 11), "it has only begun");
        assert!(!at(Some(&b), 21));
        assert!(at(Some(&b), 22));
        assert!(!at(None, 40), "nothing is estimated");
        assert!(!at(Some(&b), 60), "it has begun anew");
    }
}
