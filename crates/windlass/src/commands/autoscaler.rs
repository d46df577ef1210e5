//! `windlass autoscaler`: which of its commands was asked for.

mod simcloud;

use crate::{cli::autoscaler::AutoscalerCommand, report::Outcome};

pub(crate) fn run(command: AutoscalerCommand) -> Outcome {
    match command {
        AutoscalerCommand::Simcloud(arguments) => simcloud::run(arguments),
    }
}
