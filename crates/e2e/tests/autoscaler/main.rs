//! The autoscaler against a real API server and a real scheduler, with a simulated cloud over gRPC. The
//! cases share one cluster and run one after the other, each with a cloud and a state of its own.

mod broken;
mod growth;
mod halt;
mod leaders;
mod stage;

use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use tokio::runtime::Runtime;

use stage::{Case, Theatre};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let runtime = Runtime::new().expect("a runtime can be made");
    let theatre = Arc::new(Mutex::new(Theatre::new(runtime)));
    let trials = cases().into_iter().map(|case| trial(&theatre, case));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn cases() -> Vec<Case> {
    [growth::cases(), broken::cases(), halt::cases(), leaders::cases()].concat()
}

fn trial(theatre: &Arc<Mutex<Theatre>>, case: Case) -> Trial {
    let theatre = theatre.clone();
    Trial::ignorable_test(case.name, move || {
        // A case that panicked leaves the lock poisoned; the next one starts on a new stage.
        let mut theatre = theatre.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match theatre.play(case) {
            Ok(None) => Ok(Completion::Completed),
            Ok(Some(reason)) => Ok(Completion::ignored_with(reason)),
            Err(error) => Err(Failed::from(format!("{error:?}"))),
        }
    })
}
