//! Who may do what: users, roles, permissions, passwords and tokens.
//!
//! | module | owns |
//! |---|---|
//! | [`model`], [`change`] | the [`State`] and every [`Change`] of it; pure |
//! | [`permission`], [`access`] | which keys a role opens, and the check of each kind of request; pure |
//! | [`token`] | simple and JWT tokens; pure, the time comes in |
//! | [`password`] | bcrypt, off the async threads and bounded |
//! | [`gate`] | the published state and the tokens, as services see them |
//!
//! The sequencer owns the newest [`State`]. It applies changes there, journals what they return, and
//! publishes a snapshot through the [`Gate`] once that is durable. A service asks the gate who calls,
//! checks reads against the snapshot, and hands the [`Caller`] on with every write, which the
//! sequencer checks again against its own state: between the two anything may have been revoked.
//!
//! Nothing here speaks gRPC, and no password, hash or token is ever printed.

mod access;
mod change;
mod error;
mod gate;
mod identity;
pub(crate) mod meta;
mod model;
mod password;
mod permission;
mod request;
#[cfg(test)]
mod tests;
mod token;

pub(crate) use access::Access;
pub(crate) use change::Change;
pub(crate) use error::Error;
pub(crate) use gate::Gate;
pub use identity::PeerIdentity;
pub(crate) use identity::{Caller, Relayed};
pub(crate) use meta::LoadError;
pub(crate) use model::State;
pub(crate) use password::{PasswordHash, Passwords};
pub(crate) use token::{KeyError, Now, Token};
