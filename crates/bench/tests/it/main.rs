//! The harness, measured: every row runs tiny against the ceilings.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod autoscaler;
mod fit;
mod rows;
mod running;
mod sharding;

use std::path::{Path, PathBuf};

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
    let program = ceiling_program();
    assert!(program.exists(), "{} is built by `cargo test -p bench`", program.display());
    Subject { role, place: Place::Launched(Launch { program, args: vec![] }) }
}

/// An example and not a binary: `cargo run` in the workspace has to mean windlass. Cargo puts
/// examples beside the folder of test programs.
fn ceiling_program() -> PathBuf {
    let own = std::env::current_exe().expect("a test program knows where it is");
    let programs = own.parent().and_then(Path::parent).expect("it lies in a folder of the target");
    programs.join("examples").join("ceiling")
}
