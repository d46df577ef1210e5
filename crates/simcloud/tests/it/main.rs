//! The autoscaler's client against the simulated cloud, over real connections.

mod authority;
mod encryption;
mod generations;
mod outcomes;
mod reading;
mod scene;
mod suite;
