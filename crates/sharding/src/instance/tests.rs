//! Reconciles under guard, without a server: the core is told what a server would have said.

mod ending;
mod guarded;
mod scene;
mod traps;
