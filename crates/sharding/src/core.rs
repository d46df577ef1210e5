//! What decides: pure functions and plain data. No I/O, no clock, no chance, no client; times come in
//! as arguments.
//!
//! Read in this order: [`names`], [`object`], [`key`], [`lease`], [`spec`] (the data); [`membership`]
//! (who is there); [`partition`] (who gets what); [`handover`] (what happens to one object);
//! [`sharder`] and [`instance`] (the two parties as a whole: what they are told in, what they do out);
//! [`fence`] (what the API server refuses); [`explain`] and [`simulate`] (for people); [`history`]
//! (what must hold of all that happened).

pub mod explain;
pub mod fence;
pub mod handover;
pub mod history;
pub mod instance;
pub mod key;
pub mod lease;
pub mod membership;
pub mod names;
pub mod object;
pub mod partition;
pub mod sharder;
pub mod simulate;
pub mod spec;
pub mod time;
