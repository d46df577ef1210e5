//! Tasks as their users meet them: nodes that are processes, commands that are typed.

mod commands;
mod node;
mod regressions;
mod run;
mod secured;
mod two_nodes;

use std::time::{Duration, Instant};

/// Longer than anything here should take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Looks until there is something to see. Each look starts a process, which is pause enough.
#[expect(clippy::disallowed_methods, reason = "between processes there is no other clock")]
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < PATIENCE, "waited in vain");
    }
}
