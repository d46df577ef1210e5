//! The autoscaler against a real API server, scheduler and, where they matter, controllers, with a
//! simulated cloud over gRPC. The cases of a lane share one cluster and run one after the other, each
//! with a cloud and a state of its own.

mod broken;
mod growth;
mod halt;
mod leaders;
mod leaving;
mod outage;
mod stage;

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use e2e::scene::is_full;
use e2e::store::Lane;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Runtime;

use stage::{Case, Theatre};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let runtime = Runtime::new().expect("a runtime can be made");
    let theatre = Arc::new(Mutex::new(Theatre::new(runtime)));
    let lanes = [("etcd", Lane::Etcd), ("windlass", Lane::Windlass)];
    let trials = lanes.into_iter().flat_map(|lane| {
        let theatre = theatre.clone();
        cases().into_iter().map(move |case| trial(&theatre, lane, case))
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// What works on one store has to work on the other; all of it is tried when there is time.
fn cases() -> Vec<Case> {
    [
        growth::cases(),
        leaving::cases(),
        outage::cases(),
        broken::cases(),
        halt::cases(),
        leaders::cases(),
    ]
    .concat()
}

fn trial(theatre: &Arc<Mutex<Theatre>>, (lane, store): (&str, Lane), case: Case) -> Trial {
    let theatre = theatre.clone();
    let is_left_out = case.is_long(store) && !is_full();
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
