//! The crate from outside: a table per filter in few words, and properties of any cluster.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod acting;
mod affinity;
mod drain;
mod machines;
mod packing;
mod props;
mod room;
mod scene;
mod spread;
