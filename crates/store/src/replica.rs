//! One of several processes over a shared journal: one holds the writer's role, the others follow.
//!
//! ```text
//!             writes ─ relay ──────────────► holder ──► journal
//! follower ─┤                                              │ tip, tail
//!             reads, watches ◄── mirror ◄──────────────────┘
//! ```
//!
//! The holder also tells the others when there is something to read, which nothing depends on.
//!
//! Every process begins as a follower. It takes the role when it has seen no sign of life of the
//! holder for long enough, and gives it up when the journal says that somebody else has it. What it
//! takes to be safe is the journal's alone: every write and every linearizable read asks it whose
//! epoch it is. Clocks only decide when somebody tries.

mod beats;
mod confirm;
mod hold;
mod leftovers;
mod mirror;
mod pace;
mod progress;
mod relay;
mod run;
mod sizes;
mod standing;
mod tidings;
mod watchdog;

pub(crate) use beats::Beats;
pub(crate) use confirm::{Confirm, Question, REQUEST_TIMEOUT};
pub(crate) use mirror::Mirror;
pub(crate) use relay::Relay;
pub use relay::TlsError as PeerTlsError;
pub use run::ReplicaError;
pub(crate) use run::{Parts, Replica};
pub(crate) use sizes::Sizes;
pub(crate) use standing::Standing;
pub(crate) use tidings::{Hearing, Tidings};
