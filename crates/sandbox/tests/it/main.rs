//! The sandbox at its boundary: real shims, real processes, real files.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod daemon_death;
mod host;
mod logs;
mod native;
mod runner;
mod scene;
mod shim_death;
mod simulated;
mod suites;
