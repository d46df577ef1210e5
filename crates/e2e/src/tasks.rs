//! Task nodes as processes: a cluster of them on one store, each in a network of its own if wanted, and
//! commands that keep a record of their own lives.
//!
//! | module | what it is for |
//! |---|---|
//! | [`net`], [`link`] | networks that reach each other only through links, and links that fail |
//! | [`node`], [`cluster`] | starting, killing, stopping and restarting nodes |
//! | [`shims`] | the processes between a node and its commands, to be stopped and killed |
//! | [`ledger`] | the work that is submitted, and what it says of itself |
//! | [`records`] | every version of every task, as the store kept them |
//! | [`check`] | the pure judge of both |
//! | [`traces`] | what is left on the machine when everything should be gone |
//! | [`command`] | the binary as people call it |
//!
//! Never looks into a node: it is judged by its API, its store and the machine it ran on.

pub mod check;
pub mod cluster;
pub mod command;
pub mod ledger;
pub mod link;
pub mod net;
pub mod node;
pub mod records;
pub mod shims;
pub mod traces;

/// Why nothing here can run, if so: containers, networks and other users need root.
#[must_use]
pub fn lacks_root() -> Option<&'static str> {
    (!rustix::process::geteuid().is_root()).then_some("needs root")
}
