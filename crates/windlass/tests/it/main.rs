//! The binary as its users meet it: what it prints, and a store that is started, stopped and
//! started again.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod autoscaler;
mod labels;
mod output;
mod page;
mod process;
mod running;
mod secured;
mod sharder;
mod tasks;
