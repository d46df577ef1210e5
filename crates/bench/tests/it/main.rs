//! The harness, measured: every row runs tiny against the ceilings.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod rows;
mod running;

use std::path::Path;

use bench::store::{Launch, Options, Place, Role, Scale, Subject};

/// Enough for every row to complete something.
fn tiny() -> Scale {
    Scale {
        warm_up_ms: 10,
        timed_ms: 100,
        objects: 600,
        history_updates: 1,
        fill_objects: 100,
        fill_updates: 1,
    }
}

fn options(scratch: &Path, subjects: Vec<Subject>, rows: &[&str]) -> Options {
    let rows = rows.iter().map(|&row| row.to_owned()).collect();
    Options { subjects, scale: tiny(), rounds: 1, rows, scratch: scratch.to_owned() }
}

fn launched_ceiling(role: Role) -> Subject {
    let program = env!("CARGO_BIN_EXE_ceiling").into();
    Subject { role, place: Place::Launched(Launch { program, args: vec![] }) }
}
