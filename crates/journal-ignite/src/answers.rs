//! Whether the node that this process talks to answers for the grid. Only decides.
//!
//! A node that the others cannot reach lives, keeps its connections, and can do nothing it is asked.

use std::time::Duration;

use tokio::time::Instant;

/// How long a node may answer nothing before another one is asked. Above the five seconds and more in which
/// no node answers, because the primary of the partition died and is replaced.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(10);

/// What came of the questions so far.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// When the first of those was asked that have failed since the last answer.
    failing_since: Option<Instant>,
    /// When a node was last left. What was asked before says nothing of the one after it.
    left: Option<Instant>,
}

// === impl Answers ===

impl Answers {
    pub(crate) fn on_answer(&mut self) {
        self.failing_since = None;
    }

    /// A question asked at `asked` failed; whether the node is to be left.
    pub(crate) fn on_failure(&mut self, asked: Instant, now: Instant) -> bool {
        if self.left.is_some_and(|left| asked < left) {
            return false;
        }
        let since = *self.failing_since.get_or_insert(asked);
        let is_enough = now.duration_since(since) >= SILENCE_MAX;
        if is_enough {
            *self = Self { failing_since: None, left: Some(now) };
        }
        is_enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_fails_for_long_is_left_and_the_next_one_has_its_time() {
        let (mut answers, start) = (Answers::default(), Instant::now());
        let mut left = Vec::new();
        for second in 0..25 {
            let now = start + Duration::from_secs(second);
            if answers.on_failure(now, now) {
                left.push(second);
            }
        }
        assert_eq!(left, [10, 21]);
    }

    #[test]
    fn questions_that_hung_at_one_node_leave_one() {
        let (mut answers, start) = (Answers::default(), Instant::now());
        let later = start + Duration::from_millis(1);
        assert!(answers.on_failure(start, start + SILENCE_MAX));
        assert!(!answers.on_failure(later, later + SILENCE_MAX), "it was asked of the one before");
    }

    #[test]
    fn an_answer_begins_anew() {
        let (mut answers, start) = (Answers::default(), Instant::now());
        assert!(!answers.on_failure(start, start));
        answers.on_answer();
        let later = start + SILENCE_MAX;
        assert!(!answers.on_failure(later, later));
    }
}
