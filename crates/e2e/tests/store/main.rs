//! Everything that judges the store from outside. The checkers prove themselves anywhere; what
//! needs real programs is behind the feature `peers`.

mod checkers;
#[cfg(feature = "peers")]
mod clients;
#[cfg(feature = "peers")]
mod crashes;
#[cfg(feature = "peers")]
mod differential;
#[cfg(feature = "peers")]
mod faults;
#[cfg(feature = "peers")]
mod import;
#[cfg(feature = "peers")]
mod kubernetes;
#[cfg(feature = "peers")]
mod stories;
