//! Sharding against a real API server, on etcd and on windlass, and against that of the oldest
//! Kubernetes it is made for. The cases on one ground share a cluster, each with namespaces and rings of
//! its own; those that disturb nobody run side by side. The long ones are played with `--full`.

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

use e2e::kube::Ground;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Runtime;

use stage::{Case, Theatre, check_short};

/// Cases mostly wait for Leases; more at once would make each of them slower.
const SIDE_BY_SIDE: usize = 4;

const GROUNDS: [Ground; 3] = [Ground::ETCD, Ground::WINDLASS, Ground::OLDEST];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(SIDE_BY_SIDE);
    let runtime = Runtime::new().expect("a runtime can be made");
    let theatre = Arc::new(Theatre::new(runtime));
    check_short(&cases());
    let trials = GROUNDS.iter().flat_map(|ground| {
        let theatre = theatre.clone();
        cases().into_iter().map(move |case| trial(&theatre, *ground, case))
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

fn trial(theatre: &Arc<Theatre>, ground: Ground, case: Case) -> Trial {
    let theatre = theatre.clone();
    let is_left_out = case.is_long(ground) && !e2e::scene::is_full();
    let trial = Trial::ignorable_test(format!("{}::{}", ground.name, case.name), move || {
        match theatre.play(ground, case) {
            Ok(None) => Ok(Completion::Completed),
            Ok(Some(reason)) => Ok(Completion::ignored_with(reason)),
            Err(error) => Err(Failed::from(format!("{error:?}"))),
        }
    });
    trial.with_ignored_flag(is_left_out)
}
