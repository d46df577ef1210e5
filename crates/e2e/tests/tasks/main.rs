//! The task runner as its users and its enemies see it: the real binary, real containers, nodes in
//! networks of their own that die, stall and lose each other. Cases run one after the other, each with
//! a cluster of its own; all of them need root.

mod certificates;
mod clocks;
mod commands;
mod deaths;
mod measurement;
mod nodes;
mod partitions;
mod pressure;
mod stage;
mod stalls;
mod versions;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use stage::Case;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    libtest_mimic::run(&arguments, cases().into_iter().map(trial).collect()).exit_code()
}

fn cases() -> Vec<Case> {
    [
        commands::cases(),
        nodes::cases(),
        certificates::cases(),
        deaths::cases(),
        partitions::cases(),
        stalls::cases(),
        pressure::cases(),
        clocks::cases(),
        versions::cases(),
        measurement::cases(),
    ]
    .concat()
}

fn trial(case: Case) -> Trial {
    Trial::ignorable_test(case.name, move || match case.play() {
        Ok(None) => Ok(Completion::Completed),
        Ok(Some(reason)) => Ok(Completion::ignored_with(reason)),
        Err(error) => Err(Failed::from(format!("{error:?}"))),
    })
}
