//! The keyspace from outside: stories, regressions, and properties against a naive model.

mod arbitrary;
mod model;
mod props;
mod regressions;
mod stories;
mod world;
