//! The client and the journal on real Ignite nodes. The cases of a kind share one cluster and run one
//! after the other, each with tables of its own.

mod client;
mod journal;
mod refusals;
mod stage;

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
    let cases = [client::cases(), journal::cases(), refusals::cases()].concat();
    let trials = cases.into_iter().map(|case| trial(&theatre, case));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn trial(theatre: &Arc<Mutex<Theatre>>, case: Case) -> Trial {
    let theatre = theatre.clone();
    Trial::ignorable_test(case.name.clone(), move || {
        let mut theatre = theatre.lock().unwrap_or_else(PoisonError::into_inner);
        match theatre.play(&case) {
            Ok(None) => Ok(Completion::Completed),
            Ok(Some(reason)) => Ok(Completion::ignored_with(reason)),
            Err(error) => Err(Failed::from(format!("{error:?}"))),
        }
    })
}
