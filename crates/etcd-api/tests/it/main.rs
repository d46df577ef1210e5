//! What other crates rely on, checked from outside.

mod errors;
mod json;
mod plain;
mod props;
mod services;
