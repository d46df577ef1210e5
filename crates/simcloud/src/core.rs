//! The cloud as a state machine stepped with time: groups, machines, Nodes and scripted faults. Pure:
//! time comes in as an argument, and all chance follows from the scenario's seed, so the same calls at
//! the same times end the same.
//!
//! | module | owns |
//! |---|---|
//! | `cloud` | the state, and its steps |
//! | `calls` | what the provider's calls do and answer |
//! | `due` | when something happens by itself |
//! | `create` | how a machine comes to be |
//! | `health` | how its Node fares |
//! | `ledger` | which fault strikes, and how often it has |
//! | `kubelet` | what kubelets would write to the API server |

mod calls;
mod cloud;
mod create;
mod due;
mod health;
mod instance;
pub mod kubelet;
mod ledger;
mod node;

pub use calls::{GROUP_LABEL, Refusal, Template};
pub use cloud::Cloud;
pub use node::{Health, Node};

use std::time::Duration;

use jiff::Timestamp;

/// Times beyond the calendar are its end.
fn after(at: Timestamp, span: Duration) -> Timestamp {
    at.saturating_add(span).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
