//! `windlass autoscaler`: which of its commands was asked for.

mod ask;
mod manifests;
mod recorder;
mod replay;
mod service;
mod simcloud;

use crate::{cli::autoscaler::AutoscalerCommand, lifecycle, report::Outcome};

pub(crate) use service::beside_store;

pub(crate) fn run(command: AutoscalerCommand) -> Outcome {
    match command {
        AutoscalerCommand::Run { flags } => service::run(&flags),
        AutoscalerCommand::Status(arguments) => lifecycle::block_on(ask::status(arguments)),
        AutoscalerCommand::Explain(arguments) => lifecycle::block_on(ask::explain(arguments)),
        AutoscalerCommand::Replay { file } => replay::run(&file),
        AutoscalerCommand::Manifests(arguments) => manifests::run(&arguments),
        AutoscalerCommand::Simcloud(arguments) => simcloud::run(arguments),
    }
}
