//! `windlass sharder`: which of its commands was asked for.

mod connect;
mod explain;
mod manifests;
mod service;
mod simulate;
mod status;

use crate::{cli::sharder::SharderCommand, lifecycle, report::Outcome};

pub(crate) use service::beside_store;

pub(crate) fn run(command: SharderCommand) -> Outcome {
    match command {
        SharderCommand::Run(arguments) => service::run(arguments),
        SharderCommand::Manifests(arguments) => manifests::run(arguments),
        SharderCommand::Status(arguments) => lifecycle::block_on(status::run(arguments)),
        SharderCommand::Explain(arguments) => lifecycle::block_on(explain::run(arguments)),
        SharderCommand::Simulate(arguments) => lifecycle::block_on(simulate::run(arguments)),
    }
}
