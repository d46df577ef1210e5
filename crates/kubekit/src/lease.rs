//! What a Lease says, and when its word is over. Owns the rules on which lock, election and
//! presence agree; sends nothing.
//!
//! | module | owns |
//! |---|---|
//! | [`core`] | the decisions: who may take a Lease over, how long its holder may write |
//! | `object` | the Lease as the API server knows it |
//! | `call` | one request: bounded in time, sent once, its failure told apart |

pub mod core;

pub(crate) mod call;
pub(crate) mod object;

pub use call::{Error, Request};

/// Where the hour comes from. It is written into Leases for people to read and decides nothing;
/// the binary owns it.
pub type WallClock = fn() -> jiff::Timestamp;
