//! The differential driver: one seeded sequence of requests, sent to two stores side by side, every
//! answer compared.
//!
//! | module | job |
//! |---|---|
//! | [`step`] | what can be asked |
//! | [`generate`] | which step comes next, from a seed and what the stores last said |
//! | [`side`], [`watching`] | one store: executes steps, keeps its watch streams |
//! | [`normal`] | takes out what may differ: ids, terms, sizes, the rest of a TTL |
//! | [`exceptions`] | differences that are known, with reasons |
//! | [`run`] | both sides, step by step, until the first difference |
//!
//! Leases live long here and requests come one at a time, so nothing depends on timing but the
//! delivery of events, which [`run`] waits for.

pub mod exceptions;
pub mod generate;
pub mod normal;
pub mod run;
pub mod side;
pub mod step;
pub mod watching;

pub use run::{Comparison, compare};
