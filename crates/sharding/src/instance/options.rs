//! How to join: what users say, and what it means.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;

use super::error::Error;
use super::metrics::Metrics;
use crate::core::lease::{DURATION_DEFAULT, DURATION_MAX, DURATION_MIN, WEIGHT_MAX};
use crate::core::names::{InstanceId, RingName};

/// Which ring to join, and as whom.
#[derive(Clone)]
pub struct JoinOptions {
    ring: String,
    id: Option<String>,
    pub(super) namespace: Option<String>,
    pub(super) duration: Duration,
    pub(super) weight: Option<u32>,
    pub(super) pod: Option<Pod>,
    pub(super) stateful_set: Option<String>,
    pub(super) lease_client: Option<Client>,
    pub(super) metrics: Metrics,
}

/// The pod that the instance runs in, as the downward API tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    pub name: String,
    pub uid: String,
    pub container: String,
}

// === impl JoinOptions ===

impl JoinOptions {
    /// The ring of this name, with defaults for everything else.
    #[must_use]
    pub fn ring(name: impl Into<String>) -> Self {
        Self {
            ring: name.into(),
            id: None,
            namespace: None,
            duration: DURATION_DEFAULT,
            weight: None,
            pod: None,
            stateful_set: None,
            lease_client: None,
            metrics: Metrics::default(),
        }
    }

    /// Who the instance is: the same after a restart, and no other's in the ring. The host's name
    /// unless given.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Where its Lease is kept. The client's namespace unless given.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// D: the instance stops by itself ⅔ of this after its last sign of life, and is taken for dead
    /// after twice as long. 15 s unless given.
    #[must_use]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.duration = duration;
        self
    }

    /// How much it takes compared with others, 0 to 1000. 100 unless given; with 0 it is emptied.
    #[must_use]
    pub fn weight(mut self, weight: u32) -> Self {
        self.weight = Some(weight);
        self
    }

    /// The pod: a container that is restarted in it takes its Lease up at once, and the end of the pod
    /// is the end of the Lease, unless a [StatefulSet](Self::stateful_set) owns it.
    #[must_use]
    pub fn pod(mut self, pod: Pod) -> Self {
        self.pod = Some(pod);
        self
    }

    /// The StatefulSet that the instance is of, in the namespace of its Lease. It owns the Lease, so
    /// that what [`Stop::Hold`](super::Stop::Hold) leaves there outlives the pod; and when it is scaled
    /// down below the instance's ordinal, a hold is a release.
    #[must_use]
    pub fn stateful_set(mut self, name: impl Into<String>) -> Self {
        self.stateful_set = Some(name.into());
        self
    }

    /// The way for requests about the Lease: one that repeats nothing and that nothing else goes. Made
    /// by [`lease_client`](super::lease_client()). Without one they go the way of all others, which is
    /// safe, for they have a time limit, and may cost the Lease when the API server is busy.
    #[must_use]
    pub fn lease_client(mut self, client: Client) -> Self {
        self.lease_client = Some(client);
        self
    }

    /// Where to count. Nowhere unless given.
    #[must_use]
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    pub(super) fn ring_name(&self) -> Result<RingName, Error> {
        self.ring.parse().map_err(|source| Error::Ring { ring: self.ring.clone(), source })
    }

    pub(super) fn instance_id(&self) -> Result<InstanceId, Error> {
        let id = self.id.clone().unwrap_or_else(host_name);
        id.parse().map_err(|source| Error::Id { id, source })
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if !(DURATION_MIN..=DURATION_MAX).contains(&self.duration) {
            return Err(Error::Duration(self.duration));
        }
        match self.weight {
            Some(weight) if weight > WEIGHT_MAX => Err(Error::Weight(weight)),
            _ => Ok(()),
        }
    }
}

// === impl Pod ===

impl Pod {
    /// As it stands in the Lease.
    pub(super) fn mark(&self) -> String {
        format!("{}/{}", self.uid, self.container)
    }

    pub(super) fn owner(&self) -> OwnerReference {
        OwnerReference {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            ..OwnerReference::default()
        }
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        let options = JoinOptions::ring("sites").id("a-0");
        assert!(options.check().is_ok());
        assert!(matches!(options.clone().weight(1001).check(), Err(Error::Weight(1001))));
        let short = options.clone().lease_duration(Duration::from_millis(999));
        assert!(matches!(short.check(), Err(Error::Duration(_))));
        assert!(matches!(options.id("A.b").instance_id(), Err(Error::Id { .. })));
        assert!(matches!(JoinOptions::ring("").ring_name(), Err(Error::Ring { .. })));
    }
}
