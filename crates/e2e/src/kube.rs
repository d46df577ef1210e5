//! kube-apiserver on a store, and kubectl to speak to it.

mod apiserver;
mod kubectl;

pub use apiserver::{Apiserver, ApiserverOptions, Identity};
pub use kubectl::{Kubectl, Watching};
