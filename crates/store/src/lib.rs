//! The shell of the store.

mod options;

pub use options::{Address, AuthToken, AutoCompaction, JwtOptions, Limits, Listener, Options, Tls};
