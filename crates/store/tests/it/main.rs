//! The store as its clients see it: a whole store in this process, on a folder and a port of its
//! own, asked over the network.

mod auth;
mod cluster;
mod election;
mod harness;
mod health;
mod lease;
mod lock;
mod metrics;
