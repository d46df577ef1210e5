//! Key-values and events, written by hand instead of generated: each holds its own encoding, so
//! that what the store keeps is spliced into responses without being taken apart. Owns the
//! encoding and the JSON form of both; never decides what a pair means.

mod canonical;
mod event;
mod json;
mod key_value;

pub use event::{Event, EventType};
pub use key_value::{KeyValue, KeyValueParts};
