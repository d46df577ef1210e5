//! How many objects may be moved at once: half as many for a minute after the server was too busy.

use std::time::Duration;

use tokio::time::Instant;

const SPARED_FOR: Duration = Duration::from_mins(1);

pub(super) struct Moves {
    /// As the ring says.
    configured: usize,
    spared_until: Option<Instant>,
    /// What the core was last told.
    told: usize,
}

// === impl Moves ===

impl Moves {
    pub(super) fn new(configured: usize) -> Self {
        Self { configured, spared_until: None, told: configured }
    }

    /// The server had too much to do.
    pub(super) fn on_busy(&mut self, now: Instant) {
        self.spared_until = Some(now + SPARED_FOR);
    }

    /// How many from now on, if that is another number than before.
    pub(super) fn changed(&mut self, now: Instant) -> Option<usize> {
        let is_spared = self.spared_until.is_some_and(|until| now < until);
        let moves_max = if is_spared { (self.configured / 2).max(1) } else { self.configured };
        (std::mem::replace(&mut self.told, moves_max) != moves_max).then_some(moves_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_server_is_spared_for_a_minute() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut moves = Moves::new(100);
        assert_eq!(moves.changed(at(0)), None);
        moves.on_busy(at(1));
        assert_eq!(moves.changed(at(1)), Some(50));
        moves.on_busy(at(31));
        assert_eq!(moves.changed(at(61)), None, "it was busy again");
        assert_eq!(moves.changed(at(91)), Some(100));
    }

    #[test]
    fn one_at_a_time_is_the_least() {
        let (now, mut moves) = (Instant::now(), Moves::new(1));
        moves.on_busy(now);
        assert_eq!(moves.changed(now), None);
    }
}
