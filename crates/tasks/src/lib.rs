//! Runs a command somewhere on the cluster: every node accepts, steals and runs tasks, and answers
//! for all others.
//!
//! [`wire`] has the messages that are kept in the store and spoken over the API, and the stubs of the
//! service. [`core`] decides: keys, records, transitions, stealing, fencing. It is pure. [`node`]
//! carries out what it decided, over the [`store`] and on the machine. [`service`] is the API of a
//! node, [`client`] asks it.

pub mod client;
mod clock;
pub mod core;
mod generated;
mod lifecycle;
pub mod metrics;
pub mod node;
mod options;
pub mod service;
pub mod store;

pub use clock::Clock;

pub use generated::wire;
