//! The instance's own Lease: one request at a time, sent once, each with a time limit. What an answer
//! means is the core's to judge.

use std::error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::metrics::{Metrics, Renewal};
use crate::core::instance::{Event, Identity, Outcome};
use crate::core::lease::Lease;
use crate::core::time::Moment;
use crate::kubernetes::{self, Error, Meaning, Request, Verb, found};

/// A request may take this part of the Lease's duration: then there is time for another.
const PARTS: u32 = 5;

pub(super) struct OwnLease {
    api: Api<api::Lease>,
    identity: Identity,
    /// Whose end is the Lease's end too.
    owner: Option<OwnerReference>,
    timeout: Duration,
    metrics: Metrics,
    /// Whether this process has written it: the first time, it takes it.
    is_taken: AtomicBool,
}

// === impl OwnLease ===

impl OwnLease {
    /// The client should neither repeat requests nor let them wait behind others.
    pub(super) fn new(
        client: Client,
        identity: Identity,
        owner: Option<OwnerReference>,
        (duration, metrics): (Duration, Metrics),
    ) -> Self {
        Self {
            api: Api::namespaced(client, &identity.namespace),
            identity,
            owner,
            timeout: duration / PARTS,
            metrics,
            is_taken: AtomicBool::new(false),
        }
    }

    pub(super) async fn read(&self) -> Event {
        match self.try_read().await {
            Ok(Some((lease, ring))) => Event::LeaseRead { lease: Some(Box::new(lease)), ring },
            Ok(None) => Event::LeaseRead { lease: None, ring: None },
            Err(error) => {
                log(&error);
                Event::LeaseUnread
            }
        }
    }

    /// `sent`: a moment before the request leaves.
    pub(super) async fn write(&self, lease: &Lease, is_new: bool, sent: Moment) -> Event {
        let answer = if is_new { self.create(lease).await } else { self.patch(lease).await };
        let (renewal, outcome) = match answer {
            Ok(written) => {
                self.is_taken.store(true, Ordering::Relaxed);
                (Renewal::Done, Outcome::Done(Box::new(written)))
            }
            // The sharder writes into it too, whenever objects are to be given up.
            Err(error) if matches!(error.meaning(), Meaning::Conflict | Meaning::Gone) => {
                (Renewal::Conflict, Outcome::Conflict)
            }
            Err(error) => {
                log(&error);
                (Renewal::Failed, Outcome::Failed)
            }
        };
        self.metrics.on_renewal(renewal);
        Event::LeaseWritten { sent, outcome }
    }

    async fn try_read(&self) -> Result<Option<(Lease, Option<String>)>, Error> {
        let about = self.about();
        let request = self.request(Verb::Read, &about);
        let stored = found(request.answer(self.api.get(self.identity.id.as_str())).await)?;
        let Some(stored) = stored else { return Ok(None) };
        let label = self.identity.names.ring_label();
        let ring = stored.metadata.labels.as_ref().and_then(|labels| labels.get(&label)).cloned();
        let lease = kubernetes::lease(&self.identity.names, &stored);
        Ok(Some((lease.map_err(|it| request.unreadable(it))?, ring)))
    }

    async fn create(&self, lease: &Lease) -> Result<Lease, Error> {
        let about = self.about();
        let request = self.request(Verb::Create, &about);
        let new: api::Lease = serde_json::from_value(self.created(lease))
            .expect("a Lease is written as Leases are read");
        let stored = request.answer(self.api.create(&PostParams::default(), &new)).await?;
        kubernetes::lease(&self.identity.names, &stored).map_err(|it| request.unreadable(it))
    }

    async fn patch(&self, lease: &Lease) -> Result<Lease, Error> {
        let about = self.about();
        let request = self.request(Verb::Patch, &about);
        let (params, patch) = (PatchParams::default(), Patch::Merge(self.patched(lease)));
        let sent = self.api.patch(self.identity.id.as_str(), &params, &patch);
        let stored = request.answer(sent).await?;
        kubernetes::lease(&self.identity.names, &stored).map_err(|it| request.unreadable(it))
    }

    fn created(&self, lease: &Lease) -> Value {
        let mut new = kubernetes::new_lease(&self.identity.names, lease);
        if let Some(owner) = &self.owner {
            new["metadata"]["ownerReferences"] = json!([owner]);
        }
        new
    }

    /// Taking a Lease, one makes it a Lease of the ring, and a thing of one's owner.
    fn patched(&self, lease: &Lease) -> Value {
        let is_taken = !self.is_taken.load(Ordering::Relaxed);
        let names = &self.identity.names;
        let mut patch = kubernetes::lease_patch(names, lease, is_taken);
        if is_taken {
            patch["metadata"]["labels"][names.ring_label()] = json!(names.ring());
            if let Some(owner) = &self.owner {
                patch["metadata"]["ownerReferences"] = json!([owner]);
            }
        }
        patch
    }

    fn request<'a>(&self, verb: Verb, about: &'a str) -> Request<'a> {
        Request { verb, about, timeout: self.timeout }
    }

    fn about(&self) -> String {
        format!("Lease {}/{}", self.identity.namespace, self.identity.id)
    }
}

/// The core asks again; if that does not help in time, the loss is told.
fn log(error: &Error) {
    let error: &dyn error::Error = error;
    tracing::warn!(error, "a request about the instance's Lease failed");
}

#[cfg(test)]
mod tests {
    use kube::Config;

    use super::*;
    use crate::core::lease::DURATION_DEFAULT;
    use crate::core::names::{Dialect, Names};
    use crate::instance::lease_client;

    fn own_lease() -> OwnLease {
        let dialect = Dialect::Own { prefix: "windlass.dev".to_owned() };
        let identity = Identity {
            names: Names::new("sites".parse().unwrap(), dialect),
            id: "a-0".parse().unwrap(),
            namespace: "shop".to_owned(),
            incarnation: "i".to_owned(),
            pod: None,
            weight: None,
        };
        let owner = OwnerReference { kind: "StatefulSet".to_owned(), ..OwnerReference::default() };
        let client = lease_client(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        OwnLease::new(client, identity, Some(owner), (DURATION_DEFAULT, Metrics::default()))
    }

    fn lease() -> Lease {
        let id = "a-0".parse().unwrap();
        let now = jiff::Timestamp::UNIX_EPOCH;
        Lease::recreated(id, "shop".to_owned(), ("windlass-sharder", DURATION_DEFAULT), now)
    }

    #[tokio::test]
    async fn whoever_takes_a_lease_makes_it_one_of_the_ring_and_renewals_leave_that_alone() {
        let own = own_lease();
        let taken = own.patched(&lease());
        assert_eq!(taken["metadata"]["labels"]["windlass.dev/ring"], "sites");
        assert_eq!(taken["metadata"]["ownerReferences"][0]["kind"], "StatefulSet");
        assert!(taken["spec"]["acquireTime"].is_string());
        own.is_taken.store(true, Ordering::Relaxed);
        let renewed = own.patched(&lease());
        assert!(renewed["metadata"]["labels"].get("windlass.dev/ring").is_none());
        assert!(renewed["metadata"].get("ownerReferences").is_none());
        assert!(renewed["spec"].get("acquireTime").is_none());
    }

    #[tokio::test]
    async fn a_created_lease_has_its_owner() {
        let created = own_lease().created(&lease());
        assert_eq!(created["metadata"]["ownerReferences"][0]["kind"], "StatefulSet");
    }

    #[tokio::test]
    async fn a_request_may_take_a_fifth_of_the_duration() {
        assert_eq!(own_lease().timeout, Duration::from_secs(3));
        let event = own_lease().write(&lease(), false, Moment(Duration::ZERO)).await;
        assert!(matches!(event, Event::LeaseWritten { outcome: Outcome::Failed, .. }), "{event:?}");
    }
}
