//! The ground under the Kubernetes services: everything they would otherwise each have to get right
//! alone. A shell; what decides is in [`lease::core`] and in types that take time as an argument.
//!
//! | module | owns |
//! |---|---|
//! | [`client`] | the way to the API server: credentials, bounds, counting |
//! | [`lease`] | what a Lease says and when its word is over |
//! | [`lock`] | many short-lived locks, one per name |
//! | [`election`] | one leader, for as long as it lives |
//! | [`presence`] | who else is at work |
//! | [`access`] | whether we may do what we have to |
//! | [`events`] | telling users about their objects |
//! | [`health`] | telling operators about ourselves |
//! | [`metrics`] | counting what these parts do |
//! | [`follow`] | watching without end, whatever interrupts it |
//! | [`failure`], [`backoff`], [`lifecycle`] | what went wrong; trying again; owning tasks |

pub mod access;
pub mod backoff;
pub mod client;
pub mod election;
pub mod events;
pub mod failure;
pub mod follow;
pub mod health;
pub mod lease;
pub mod lifecycle;
pub mod lock;
pub mod metrics;
pub mod presence;

#[cfg(test)]
mod tests;
