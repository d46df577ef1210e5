//! Makes node groups follow the pods. What decides is in [`core`], and in the crates `registry` and `fit`.
//!
//! | module | owns |
//! |---|---|
//! | [`core`] | which groups grow, which nodes go, and how: pure |
//! | [`provider`] | the way to the provider of machines, and what was read there |

pub mod core;
pub mod provider;
