//! kube-apiserver on a store, and kubectl to speak to it.

mod apiserver;
mod kubectl;

pub use apiserver::{Apiserver, ApiserverOptions};
pub use kubectl::{Kubectl, Watching};
