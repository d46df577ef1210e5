//! How fast a snapshot is made. Pure: times come from the caller.
//!
//! A snapshot is read from memory and sent at the speed of the machine, so on a small one it would
//! take half of it from those who write. Nobody waits for a snapshot as writers wait for a put.

use mvcc::Revision;
use tokio::time::Instant;

/// While the store is written to, making pieces takes one part in this many of the time. Sending
/// them and receiving them costs about twice as much again, all of it at this pace.
const REST_FACTOR: u32 = 12;

/// When the next piece may be begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// Where the store stood when the last piece was made.
    seen: Revision,
    pub(super) not_before: Instant,
}

// === impl Pace ===

impl Pace {
    pub(super) fn new(seen: Revision, now: Instant) -> Self {
        Self { seen, not_before: now }
    }

    /// A piece took from `began` to `ended` to make, and the store then stood at `durable`.
    pub(super) fn on_piece(self, began: Instant, ended: Instant, durable: Revision) -> Self {
        let is_written_to = durable != self.seen;
        let rest_factor = if is_written_to { REST_FACTOR } else { 1 };
        Self { seen: durable, not_before: began + (ended - began) * rest_factor }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const WORK: Duration = Duration::from_millis(2);

    #[test]
    fn pieces_follow_each_other_at_once_only_while_nobody_writes() {
        let began = Instant::now();
        let pace = Pace::new(Revision(7), began);
        let calm = pace.on_piece(began, began + WORK, Revision(7));
        assert_eq!(calm.not_before, began + WORK);
        let busy = calm.on_piece(began, began + WORK, Revision(8));
        assert_eq!(busy.not_before, began + WORK * REST_FACTOR);
        let calm = busy.on_piece(began, began + WORK, Revision(8));
        assert_eq!(calm.not_before, began + WORK);
    }
}
