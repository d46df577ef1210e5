//! kube-apiserver on a store, kubectl to speak to it, kube-scheduler to place its pods, and
//! kube-controller-manager for what else a cluster does by itself.

mod apiserver;
mod audit;
mod controllers;
mod kubectl;
pub mod objects;
mod scheduler;

pub use apiserver::{Apiserver, ApiserverOptions, Identity};
pub use audit::{Audit, Reader};
pub use controllers::Controllers;
pub use kubectl::{Kubectl, Watching};
pub use scheduler::Scheduler;
