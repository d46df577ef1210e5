//! What a node is told when it starts: plain data, validated by whoever read it.

use crate::core::agent::Timing;
use crate::core::amounts::Amounts;
use crate::store;

/// Everything that can be chosen about one task node.
#[derive(Clone, Debug)]
pub struct Options {
    /// As people call it. Several nodes may have the same; ids tell them apart.
    pub name: String,
    /// Where other nodes reach its API.
    pub address: String,
    pub store: store::Options,
    /// Of the lease that its registration depends on.
    pub timing: Timing,
    /// What tasks can have of the machine; measured if absent.
    pub capacity: Option<Amounts>,
    /// Its data directory and how it runs attempts there.
    pub sandbox: sandbox::Options,
}
