//! The client, the journal and stores on real Ignite nodes. The cases of a kind share one cluster and run one
//! after the other, each with tables of its own.

mod client;
mod cuts;
mod faults;
mod journal;
mod kubernetes;
mod partitions;
mod peers;
mod refusals;
mod replicas;
mod stage;
mod together;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Runtime;

use stage::{Case, Theatre};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let runtime = Runtime::new().expect("a runtime can be made");
    let theatre = Arc::new(Mutex::new(Theatre::new(runtime)));
    let mut cases = [
        client::cases(),
        journal::cases(),
        cuts::cases(),
        replicas::cases(),
        refusals::cases(),
        peers::cases(),
        kubernetes::cases(),
        faults::cases(),
        partitions::cases(),
    ]
    .concat();
    // So that each kind of cluster starts once.
    cases.sort_by_key(|case| case.kind);
    let trials = cases.into_iter().map(|case| trial(&theatre, case));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn trial(theatre: &Arc<Mutex<Theatre>>, case: Case) -> Trial {
    let theatre = theatre.clone();
    let is_left_out = case.is_long && !e2e::scene::is_full();
    let trial = Trial::ignorable_test(case.name.clone(), move || {
        let mut theatre = theatre.lock().unwrap_or_else(PoisonError::into_inner);
        match theatre.play(&case) {
            Ok(None) => Ok(Completion::Completed),
            Ok(Some(reason)) => Ok(Completion::ignored_with(reason)),
            Err(error) => Err(Failed::from(format!("{error:?}"))),
        }
    });
    trial.with_ignored_flag(is_left_out)
}
