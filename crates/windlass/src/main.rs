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
mod report;

use std::process::ExitCode;

/// Requests are allocated on one thread and freed on another, thousands of times a second. The
/// system's allocator had a seventh of the server's time in a profile of puts.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before everything else: a shim is one of thousands, has a single thread, and needs none of it.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == sandbox::shim::ARGUMENT) {
        return sandbox::shim::main();
    }
    rustls::crypto::aws_lc_rs::default_provider()
        .install_default()
        .expect("nothing before main installs a provider");
    match commands::run(std::env::args_os().collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
