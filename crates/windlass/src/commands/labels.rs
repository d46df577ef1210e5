//! `windlass labels`: which of its commands was asked for.

mod act;
mod connect;
mod look;
mod manifests;
mod service;
mod settings;
mod transfer;

use labels::options::Role;

use crate::{cli::labels::LabelsCommand, lifecycle, report::Outcome};

pub(crate) use service::beside_store;

pub(crate) fn run(command: LabelsCommand) -> Outcome {
    match command {
        LabelsCommand::Run(arguments) => service::run(Role::Both, arguments),
        LabelsCommand::Watch(arguments) => service::run(Role::Watcher, arguments),
        LabelsCommand::Process(arguments) => service::run(Role::Processor, arguments),
        LabelsCommand::Manifests(arguments) => manifests::run(arguments),
        other => lifecycle::block_on(ask(other)),
    }
}

async fn ask(command: LabelsCommand) -> Outcome {
    match command {
        LabelsCommand::List(arguments) => look::list(arguments).await,
        LabelsCommand::Show(arguments) => look::show(arguments).await,
        LabelsCommand::Diff(arguments) => look::diff(arguments).await,
        LabelsCommand::History(arguments) => look::history(arguments).await,
        LabelsCommand::Restore(arguments) => act::restore(arguments).await,
        LabelsCommand::Forget(arguments) => act::forget(arguments).await,
        LabelsCommand::Uninstall(arguments) => act::uninstall(arguments).await,
        LabelsCommand::Export(arguments) => transfer::export(arguments).await,
        LabelsCommand::Import(arguments) => transfer::import(arguments).await,
        LabelsCommand::Run(_)
        | LabelsCommand::Watch(_)
        | LabelsCommand::Process(_)
        | LabelsCommand::Manifests(_) => unreachable!("these ask no cluster once and end"),
    }
}
