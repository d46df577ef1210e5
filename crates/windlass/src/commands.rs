//! One file per command. Here only: which one was asked for.

mod autoscaler;
mod bench;
mod ca;
mod completions;
mod ignite;
mod import;
mod inspect;
mod kube;
mod labels;
mod node;
pub(crate) mod nodes;
mod own_store;
mod run;
mod serve;
mod sharder;
mod snapshot;
mod status;
pub(crate) mod task;
mod up;
mod version;

use std::{ffi::OsString, path::Path};

use clap::Parser;

use crate::{
    cli::{BenchCommand, Cli, Command, SnapshotCommand, StoreCommand},
    lifecycle,
    report::{Exit, Failure, Outcome},
};

/// Under this name the binary is etcd.
const ETCD: &str = "etcd";

pub(crate) fn run(arguments: Vec<OsString>) -> Outcome {
    let program = arguments.first().map(Path::new).and_then(Path::file_stem);
    if program.is_some_and(|name| name == ETCD) {
        return serve::run(&as_text(&arguments[1..])?);
    }
    match Cli::parse_from(&arguments).command {
        Command::Up(arguments) => up::run(arguments),
        Command::Store(command) => run_store(command),
        Command::Run(typed) => lifecycle::block_on(run::run(*typed, &arguments)),
        Command::Task(command) => lifecycle::block_on(task::run(command)),
        Command::Nodes(arguments) => lifecycle::block_on(nodes::run(arguments)),
        Command::Node(arguments) => node::run(*arguments),
        Command::Ca(command) => ca::run(command),
        Command::Labels(command) => labels::run(command),
        Command::Autoscaler(command) => autoscaler::run(command),
        Command::Sharder(command) => sharder::run(command),
        Command::Bench(BenchCommand::Store(arguments)) => {
            lifecycle::block_on(bench::run(arguments))
        }
        Command::Bench(BenchCommand::Replicas(arguments)) => {
            lifecycle::block_on(bench::run_replicas(arguments))
        }
        Command::Bench(BenchCommand::Labels(arguments)) => {
            lifecycle::block_on(bench::run_labels(arguments))
        }
        Command::Bench(BenchCommand::Tasks(arguments)) => {
            lifecycle::block_on(bench::run_tasks(arguments))
        }
        Command::Bench(BenchCommand::Sharding(arguments)) => {
            lifecycle::block_on(bench::run_sharding(arguments))
        }
        Command::Bench(BenchCommand::Autoscaler(arguments)) => bench::run_autoscaler(&arguments),
        Command::Bench(BenchCommand::ShardInstance(arguments)) => {
            lifecycle::block_on(bench::run_instance(*arguments))
        }
        Command::Bench(BenchCommand::Ceiling { arguments }) => {
            lifecycle::block_on(bench::run_ceiling(&arguments))
        }
        Command::Version(arguments) => version::run(&arguments),
        Command::Completions { shell } => completions::run(shell),
    }
}

fn run_store(command: StoreCommand) -> Outcome {
    match command {
        StoreCommand::Serve { flags } => serve::run(&flags),
        StoreCommand::Inspect(arguments) => inspect::run(&arguments),
        StoreCommand::Verify(arguments) if arguments.path.is_dir() => {
            inspect::run_verify(&arguments.path, arguments.output)
        }
        StoreCommand::Verify(arguments) => snapshot::run_verify(&arguments.path, arguments.output),
        StoreCommand::Status(arguments) => lifecycle::block_on(status::run(&arguments)),
        StoreCommand::Snapshot(SnapshotCommand::Save(arguments)) => {
            lifecycle::block_on(snapshot::save(&arguments))
        }
        StoreCommand::Restore(arguments)
        | StoreCommand::Snapshot(SnapshotCommand::Restore(arguments)) => {
            snapshot::restore(&arguments)
        }
        StoreCommand::Ignite(command) => ignite::run(command),
        StoreCommand::Import(arguments) => lifecycle::block_on(import::run(&arguments)),
    }
}

fn as_text(arguments: &[OsString]) -> Result<Vec<String>, Failure> {
    let text = |argument: &OsString| {
        argument.to_str().map(str::to_owned).ok_or_else(|| {
            let error = anyhow::anyhow!("argument {} is not UTF-8", argument.display());
            Failure::new(Exit::Usage, error).with_hint("write flags and their values in UTF-8")
        })
    };
    arguments.iter().map(text).collect()
}
