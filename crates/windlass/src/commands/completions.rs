//! `windlass completions`: what a shell needs to complete our commands, etcd's flags included.

use clap::{Arg, CommandFactory};

use crate::{
    cli::Cli,
    etcd_flags,
    report::{self, Outcome},
};

pub(crate) fn run(shell: clap_complete::Shell) -> Outcome {
    let mut command = Cli::command().mut_subcommand("store", |store| {
        store.mut_subcommand("serve", |serve| {
            serve.args(
                etcd_flags::all().map(|flag| Arg::new(flag.name).long(flag.name).help(flag.help)),
            )
        })
    });
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "windlass", &mut script);
    report::data(&String::from_utf8_lossy(&script))
}
