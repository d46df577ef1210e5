//! kube-apiserver on a store, kubectl to speak to it, kube-scheduler to place its pods, and
//! kube-controller-manager for what else a cluster does by itself.

mod apiserver;
mod audit;
mod controllers;
mod kubectl;
pub mod objects;
mod scheduler;

pub use apiserver::{Apiserver, ApiserverOptions, Identity, Release};
pub use audit::{Audit, Reader};
pub use controllers::Controllers;
pub use kubectl::{Kubectl, Watching};
pub use scheduler::Scheduler;

use crate::assets::Asset;
use crate::store::Lane;

/// What the cluster of a suite stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ground {
    /// As the cases on it are called.
    pub name: &'static str,
    pub store: Lane,
    pub release: Release,
}

impl Ground {
    pub const ETCD: Self = Self { name: "etcd", store: Lane::Etcd, release: Release::Newest };
    pub const WINDLASS: Self =
        Self { name: "windlass", store: Lane::Windlass, release: Release::Newest };
    pub const OLDEST: Self =
        Self { name: "kubernetes-1.30", store: Lane::Windlass, release: Release::Oldest };

    /// What a suite on it needs, beside what is under test.
    #[must_use]
    pub fn needs(self) -> [Asset; 3] {
        [self.store.asset(), self.release.asset(), Asset::Kubectl]
    }
}
