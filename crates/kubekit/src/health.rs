//! Telling operators how we are: `/livez`, `/readyz` and `/metrics` over plain HTTP.
//!
//! | module | owns |
//! |---|---|
//! | `checks` | the named conditions and what they say together |
//! | `pages` | which path asks what, and how the answer reads |
//! | `server` | the socket and its connections |

mod checks;
mod pages;
mod server;

#[cfg(test)]
mod tests;

pub use self::checks::{Check, Health};
pub use self::pages::{Answers, Page};
pub use self::server::{Error, Options, Service};
