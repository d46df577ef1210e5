//! `windlass autoscaler replay`: recorded iterations, run again.

use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use autoscaler::record::{Error, Replay};

use crate::report::{self, Exit, Failure, Outcome};

pub(super) fn run(path: &Path) -> Outcome {
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let mut lines = BufReader::new(file).lines();
    let mut next = || lines.next().transpose().map_err(|error| unreadable(path, error));
    let header = next()?.unwrap_or_default();
    let mut replay = Replay::begin(&header).map_err(|error| unreadable(path, error))?;
    while let Some(line) = next()? {
        match replay.line(&line) {
            Ok(()) => {}
            Err(Error::Different(difference)) => {
                let words = format!(
                    "{difference}\nrecorded {}\nnow      {}",
                    difference.recorded, difference.again
                );
                report::data(&words)?;
                return Err(Failure::silent(Exit::No));
            }
            Err(error) => return Err(unreadable(path, error)),
        }
    }
    let Replay { iterations, dropped, .. } = replay;
    if dropped > 0 {
        let words = "were not recorded, for want of time to write them";
        report::words(&format!(
            "{dropped} iterations {words}; what follows them is complete again"
        ));
    }
    report::data(&format!("{iterations} iterations come to the same decisions"))
}

fn unreadable(path: &Path, error: impl Into<anyhow::Error>) -> Failure {
    let error = error.into().context(path.display().to_string());
    Failure::new(Exit::Usage, error).with_hint("name a file that `run --record-inputs` has written")
}
