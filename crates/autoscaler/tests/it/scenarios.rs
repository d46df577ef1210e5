//! The loop on a simulated cloud, a tick of ten seconds at a time. One file per use case.

mod broken;
mod crash;
mod days;
mod health;
mod leaders;
mod leaving;
mod other;
mod provision;
mod replay;
mod stockout;
mod stopping;
mod unready;

use crate::sim::Sim;

/// Two nodes, one of which could go once its only pod has moved to the other.
fn with_a_pod_to_move() -> Sim {
    let mut sim = Sim::new("groups: [{id: a, min: 1, max: 12, target: 2}]");
    sim.deploy("filler", 1, "3");
    sim.deploy("blocker", 1, "1");
    sim.deploy("web", 1, "900m");
    sim.tick();
    sim.scale("blocker", 0);
    sim
}
