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
                    "{difference}\nrecorded {:#?}\nnow      {:#?}",
                    difference.recorded, difference.again
                );
                report::data(&words)?;
                return Err(Failure::silent(Exit::No));
            }
            Err(error) => return Err(unreadable(path, error)),
        }
    }
    report::data(&format!("{} iterations come to the same decisions", replay.iterations))
}

fn unreadable(path: &Path, error: impl Into<anyhow::Error>) -> Failure {
    let error = error.into().context(path.display().to_string());
    Failure::new(Exit::Usage, error).with_hint("name a file that `run --record-inputs` has written")
}
