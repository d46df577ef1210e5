//! Auth at its boundary. What a line of a script means is in `script`.

mod access;
mod changes;
mod intervals;
mod keeping;
mod login;
mod script;
mod signed_tokens;

use std::time::{Duration, UNIX_EPOCH};

use tokio::time::Instant;

use super::Now;

/// Some moment. Tests only ever add to it.
pub(super) fn now() -> Now {
    let wall = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    Now { monotonic: Instant::now(), wall }
}

// === impl Now ===

impl Now {
    fn after(self, seconds: u64) -> Self {
        let passed = Duration::from_secs(seconds);
        Self { monotonic: self.monotonic + passed, wall: self.wall + passed }
    }
}
