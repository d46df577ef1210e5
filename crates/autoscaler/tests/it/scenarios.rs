//! The loop on a simulated cloud, a tick of ten seconds at a time. One file per use case.

mod broken;
mod crash;
mod days;
mod health;
mod leaving;
mod other;
mod provision;
mod stockout;
mod unready;
