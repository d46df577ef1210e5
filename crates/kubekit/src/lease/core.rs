//! Decides about Leases, from what was seen and when. Never sends and never reads a clock: every
//! moment is an argument and comes from one monotonic clock, so that no two machines' clocks are
//! ever compared.

mod roster;
mod sighting;
mod tenure;
mod timings;
mod vigil;
mod vigils;

#[cfg(test)]
mod tests;

pub use roster::Roster;
pub use sighting::Sighting;
pub use tenure::Tenure;
pub use timings::{InvalidTimings, Timings};
pub use vigil::{Verdict, Vigil};
pub use vigils::Vigils;
