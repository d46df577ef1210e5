//! kube-apiserver on a store, kubectl to speak to it, and kube-scheduler to place its pods.

mod apiserver;
mod audit;
mod kubectl;
mod scheduler;

pub use apiserver::{Apiserver, ApiserverOptions, Identity};
pub use audit::Audit;
pub use kubectl::{Kubectl, Watching};
pub use scheduler::Scheduler;
