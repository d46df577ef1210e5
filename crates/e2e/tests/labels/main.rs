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

use e2e::scene::is_full;
use e2e::store::Lane;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Runtime;

use stage::{Case, Theatre};

const LANES: [(&str, Lane); 2] = [("etcd", Lane::Etcd), ("windlass", Lane::Windlass)];

/// They wait long for replicas, and the store has no part in it: one lane plays them, unless all of it
/// is asked for.
const ONCE: [&str; 3] = [
    "metrics_tell_the_size_of_every_store",
    "killed_replica_mid_transaction_is_replaced",
    "stalled_replica_late_write_is_refused",
];

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
    let is_left_out = store == Lane::Windlass && ONCE.contains(&case.name) && !is_full();
    let trial = Trial::ignorable_test(format!("{lane}::{}", case.name), move || {
        // A case that panicked leaves the lock poisoned; the next one starts on a new stage.
        let mut theatre = theatre.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match theatre.play(store, case) {
            Ok(None) => Ok(Completion::Completed),
            Ok(Some(reason)) => Ok(Completion::ignored_with(reason)),
            Err(error) => Err(Failed::from(format!("{error:?}"))),
        }
    });
    trial.with_ignored_flag(is_left_out)
}
