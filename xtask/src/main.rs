//! The project's own tool: provides the real peers, holds the rules, runs every suite.
//!
//! It is the one place that knows how the project is checked; continuous integration and people
//! call the same commands. It never becomes part of what users install.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints")]

mod cache;
mod checkout;
mod fix;
mod ignite;
mod peers;
mod process;
mod rules;
mod suites;
mod verify;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::checkout::Checkout;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Provision peers, hold the rules, run the suites")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build the real peers into the user's cache folder and print where they are
    Provision {
        /// Peers by name (`etcd`) or by name and version (`etcd-3.7.1`); all when none is named
        peers: Vec<String>,
    },
    /// Check formatting, lints, documentation and the project's rules; change nothing
    Verify {
        /// Only the project's own rules, which take a second
        #[arg(long)]
        rules: bool,
    },
    /// Run a cluster of Ignite nodes on this machine's loopback
    #[command(subcommand)]
    Ignite(ignite::Command),
    /// Format, and apply what clippy can apply by itself
    Fix,
    /// Verify, then run every suite, those against real peers included
    Test {
        /// Run the suites against real peers at length
        #[arg(long)]
        full: bool,
        /// Only suites whose name contains this
        filter: Option<String>,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// True when what was asked for holds; an error when that cannot even be told.
fn run(task: Task) -> Result<bool> {
    let checkout = Checkout::locate();
    match task {
        Task::Provision { peers } => peers::provision_named(&checkout, &peers),
        Task::Verify { rules: true } => verify::run_rules(&checkout),
        Task::Verify { rules: false } => verify::run(&checkout),
        Task::Ignite(command) => ignite::run(&checkout, &command),
        Task::Fix => fix::run(&checkout),
        Task::Test { full, filter } => {
            suites::run(&checkout, &suites::Options { is_full: full, filter })
        }
    }
}
