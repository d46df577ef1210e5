//! Sharding against a real API server, on etcd and on windlass. The cases of a lane share one cluster,
//! each with namespaces and rings of its own; those that disturb nobody run side by side. The long ones
//! are played with `--full`.

mod changes;
mod clocks;
mod commands;
mod crew;
mod faults;
mod fence;
mod force;
mod handover;
mod measurement;
mod membership;
mod rings;
mod stage;
mod validation;

use std::process::ExitCode;
use std::sync::Arc;

use e2e::store::Lane;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Runtime;

use stage::{Case, Theatre, check_short};

/// Cases mostly wait for Leases; more at once would make each of them slower.
const SIDE_BY_SIDE: usize = 4;

const LANES: [(&str, Lane); 2] = [("etcd", Lane::Etcd), ("windlass", Lane::Windlass)];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(SIDE_BY_SIDE);
    let runtime = Runtime::new().expect("a runtime can be made");
    let theatre = Arc::new(Theatre::new(runtime));
    check_short(&cases());
    let trials = LANES.iter().flat_map(|(lane, store)| {
        let theatre = theatre.clone();
        cases().into_iter().map(move |case| trial(&theatre, lane, *store, case))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn cases() -> Vec<Case> {
    [
        validation::cases(),
        fence::cases(),
        membership::cases(),
        rings::cases(),
        changes::cases(),
        commands::cases(),
        handover::cases(),
        force::cases(),
        faults::cases(),
        clocks::cases(),
        measurement::cases(),
    ]
    .concat()
}

fn trial(theatre: &Arc<Theatre>, lane: &str, store: Lane, case: Case) -> Trial {
    let theatre = theatre.clone();
    let is_left_out = case.is_long(store) && !e2e::scene::is_full();
    let trial = Trial::ignorable_test(format!("{lane}::{}", case.name), move || {
        match theatre.play(store, case) {
            Ok(None) => Ok(Completion::Completed),
            Ok(Some(reason)) => Ok(Completion::ignored_with(reason)),
            Err(error) => Err(Failed::from(format!("{error:?}"))),
        }
    });
    trial.with_ignored_flag(is_left_out)
}
