//! What watcher and processor are given to work with.

use std::sync::Arc;

use kubekit::{events::Handle as Events, health::Health, lease::WallClock};
use tokio::sync::Notify;

use crate::{kubernetes::Objects, metrics::Metrics};

/// The cluster, and those to tell about it. Clones speak of the same.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) objects: Objects,
    /// For Leases: a client that repeats nothing.
    pub(crate) lease_client: kube::Client,
    pub(crate) metrics: Metrics,
    pub(crate) events: Events,
    pub(crate) health: Health,
    /// Tells whoever looks after our rights that one seems to be missing.
    pub(crate) access_in_doubt: Arc<Notify>,
    pub(crate) clock: WallClock,
}
