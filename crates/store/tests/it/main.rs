//! The store as its clients see it: a whole store in this process, on a folder and a port of its
//! own, asked over the network.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod alarms;
mod auth;
mod bad_input;
mod cluster;
mod election;
mod harness;
mod health;
mod held;
mod keeping;
mod kv;
mod lease;
mod limits;
mod lock;
mod long_reads;
mod metrics;
mod regressions;
mod replicas;
mod together;
mod txn;
mod watch;
mod watching;
