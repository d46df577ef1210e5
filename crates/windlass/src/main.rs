//! The binary: command line, configuration and wiring. The only crate that reads arguments, the
//! environment, configuration files and the wall clock, and the only one that prints.

mod autoscaler_flags;
mod cli;
mod client;
mod commands;
mod config;
mod etcd_flags;
mod lifecycle;
mod logging;
mod notify;
mod page;
mod report;

use std::process::ExitCode;

/// Requests are allocated on one thread and freed on another, thousands of times a second. The
/// system's allocator had a seventh of the server's time in a profile of puts.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Services that keep little in memory, for long, and start no programs. Huge pages would triple it.
const FRUGAL: [&str; 3] = ["autoscaler", "labels", "sharder"];

/// Measures what is otherwise done by a service of that name, in this very process.
const MEASURES_FRUGAL: [&str; 2] = ["bench", "autoscaler"];

fn main() -> ExitCode {
    let commands: Vec<_> = std::env::args_os().skip(1).take(2).collect();
    let command = commands.first().cloned().unwrap_or_default();
    // Before everything else: a shim is one of thousands, has a single thread, and needs none of it.
    if command == sandbox::shim::ARGUMENT {
        return sandbox::shim::main();
    }
    if FRUGAL.iter().any(|frugal| command == *frugal) || commands == MEASURES_FRUGAL {
        // Where the kernel knows no such switch, it has no huge pages to spare us either.
        rustix::thread::disable_transparent_huge_pages(true).unwrap_or_default();
    }
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .expect("nothing before main installs a provider");
    match commands::run(std::env::args_os().collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
