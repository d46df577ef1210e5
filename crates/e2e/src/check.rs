//! Judges of recorded histories. Pure: a history in, a verdict out; they know neither clients nor
//! servers, and are themselves proven by histories with a bug put in.
//!
//! | module | question |
//! |---|---|
//! | [`linear`] | is there an order of all calls that explains every answer? |
//! | [`watch`] | did a watcher see every event once, in order, whole, and no promise broken? |
//! | [`ledger`] | is every acknowledged write kept, at its revision, and are revisions dense? |

pub mod history;
pub mod ledger;
pub mod linear;
pub mod model;
pub mod watch;
