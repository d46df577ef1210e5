//! The labels service against a real API server, on etcd and on windlass. The cases of a lane share
//! one cluster and run one after the other, each with nodes of its own.

mod commands;
mod deaths;
mod faults;
mod regressions;
mod rights;
mod seed;
mod stage;
mod storms;

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use e2e::store::Lane;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Runtime;

use stage::{Case, Theatre};

const LANES: [(&str, Lane); 2] = [("etcd", Lane::Etcd), ("windlass", Lane::Windlass)];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let runtime = Runtime::new().expect("a runtime can be made");
    let theatre = Arc::new(Mutex::new(Theatre::new(runtime)));
    let trials = LANES.iter().flat_map(|(lane, store)| {
        let theatre = theatre.clone();
        cases().into_iter().map(move |case| trial(&theatre, lane, *store, case))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn cases() -> Vec<Case> {
    [
        seed::cases(),
        deaths::cases(),
        regressions::cases(),
        rights::cases(),
        faults::cases(),
        storms::cases(),
        commands::cases(),
    ]
    .concat()
}

fn trial(theatre: &Arc<Mutex<Theatre>>, lane: &str, store: Lane, case: Case) -> Trial {
    let theatre = theatre.clone();
    Trial::ignorable_test(format!("{lane}::{}", case.name), move || {
        // A case that panicked leaves the lock poisoned; the next one starts on a new stage.
        let mut theatre = theatre.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match theatre.play(store, case) {
            Ok(None) => Ok(Completion::Completed),
            Ok(Some(reason)) => Ok(Completion::ignored_with(reason)),
            Err(error) => Err(Failed::from(format!("{error:?}"))),
        }
    })
}
