//! The Leases of one ring, in whatever namespaces they are. The client must not repeat requests: a
//! Lease is asked for once, and a failure is judged by whoever asked.

use std::time::Duration;

use k8s_openapi::api::coordination::v1 as api;
use kube::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, WatchParams,
};
use kube::{Api, Client};
use serde_json::json;

use super::changes::changes;
use super::convert::{lease, lease_patch, new_lease};
use super::{Changes, Error, Request, Unreadable, Verb, found};
use crate::core::lease::Lease;
use crate::core::names::{InstanceId, Names};

#[derive(Clone)]
pub struct Leases {
    client: Client,
    names: Names,
    /// How long a request may take, if not otherwise said.
    timeout: Duration,
}

// === impl Leases ===

impl Leases {
    #[must_use]
    pub fn new(client: Client, names: Names, timeout: Duration) -> Self {
        Self { client, names, timeout }
    }

    /// The same Leases, with another limit on requests.
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Self {
        Self { timeout, ..self.clone() }
    }

    pub async fn get(&self, id: &InstanceId, namespace: &str) -> Result<Option<Lease>, Error> {
        Ok(self.get_stored(id, namespace).await?.map(|(lease, _)| lease))
    }

    /// The Lease, and the ring it says it belongs to.
    pub async fn get_stored(
        &self,
        id: &InstanceId,
        namespace: &str,
    ) -> Result<Option<(Lease, Option<String>)>, Error> {
        let about = about(id, namespace);
        let request = Request { verb: Verb::Read, about: &about, timeout: self.timeout };
        let stored = found(request.answer(self.api(namespace).get(id.as_str())).await)?;
        let Some(stored) = stored else { return Ok(None) };
        let ring = stored.metadata.labels.as_ref().and_then(|it| it.get(&self.names.ring_label()));
        let ring = ring.cloned();
        let read = lease(&self.names, &stored).map_err(|it| request.unreadable(it))?;
        Ok(Some((read, ring)))
    }

    /// Makes the stored Lease this one, if it still has its version. `is_taken`: its holder begins to
    /// hold it.
    pub async fn write(&self, wanted: &Lease, is_taken: bool) -> Result<Lease, Error> {
        let about = about(&wanted.id, &wanted.namespace);
        let request = Request { verb: Verb::Patch, about: &about, timeout: self.timeout };
        let (api, params) = (self.api(&wanted.namespace), PatchParams::default());
        let patch = Patch::Merge(lease_patch(&self.names, wanted, is_taken));
        let stored = request.answer(api.patch(wanted.id.as_str(), &params, &patch)).await?;
        lease(&self.names, &stored).map_err(|it| request.unreadable(it))
    }

    pub async fn create(&self, wanted: &Lease) -> Result<Lease, Error> {
        let about = about(&wanted.id, &wanted.namespace);
        let request = Request { verb: Verb::Create, about: &about, timeout: self.timeout };
        let new = serde_json::from_value(new_lease(&self.names, wanted));
        let new: api::Lease = new.expect("it is written as Leases are read");
        let (api, params) = (self.api(&wanted.namespace), PostParams::default());
        let stored = request.answer(api.create(&params, &new)).await?;
        lease(&self.names, &stored).map_err(|it| request.unreadable(it))
    }

    /// Deletes it in the state in which it was read, and no other.
    pub async fn delete(&self, seen: &Lease) -> Result<(), Error> {
        let about = about(&seen.id, &seen.namespace);
        let request = Request { verb: Verb::Delete, about: &about, timeout: self.timeout };
        let resource_version = Some(seen.version.0.clone());
        let guard = Preconditions { uid: None, resource_version };
        let (api, params) =
            (self.api(&seen.namespace), DeleteParams::default().preconditions(guard));
        request.answer(api.delete(seen.id.as_str(), &params)).await.map(|_| ())
    }

    /// Sets the state label. Nobody relies on it, so it is not guarded: it would lose to every
    /// renewal.
    pub async fn show_state(
        &self,
        (id, namespace): (&InstanceId, &str),
        word: &str,
    ) -> Result<(), Error> {
        let about = about(id, namespace);
        let request = Request { verb: Verb::Patch, about: &about, timeout: self.timeout };
        let patch = json!({"metadata": {"labels": {self.names.state_label(): word}}});
        let (api, params, patch) =
            (self.api(namespace), PatchParams::default(), Patch::Merge(patch));
        request.answer(api.patch_metadata(id.as_str(), &params, &patch)).await.map(|_| ())
    }

    /// All Leases of the ring, and the moment of the list. A ring has few enough for one page.
    pub async fn list(&self) -> Result<(Vec<api::Lease>, String), Error> {
        let about = self.about_all();
        let (api, params) = (Api::all(self.client.clone()), ListParams::default());
        let params = params.labels(&self.selector());
        let listed = Request::read(Verb::List, &about).answer(api.list(&params)).await?;
        Ok((listed.items, listed.metadata.resource_version.unwrap_or_default()))
    }

    /// All changes after `rv`.
    pub async fn watch(&self, rv: &str) -> Result<Changes<api::Lease>, Error> {
        let about = self.about_all();
        let api: Api<api::Lease> = Api::all(self.client.clone());
        let params = WatchParams::default().labels(&self.selector());
        let events = Request::read(Verb::Watch, &about).answer(api.watch(&params, rv)).await?;
        Ok(changes(about, events, |stored| stored))
    }

    /// What a list or a watch has shown.
    pub fn read(&self, stored: &api::Lease) -> Result<Lease, Unreadable> {
        lease(&self.names, stored)
    }

    fn selector(&self) -> String {
        format!("{}={}", self.names.ring_label(), self.names.ring())
    }

    fn api(&self, namespace: &str) -> Api<api::Lease> {
        Api::namespaced(self.client.clone(), namespace)
    }

    fn about_all(&self) -> String {
        format!("Leases of ring {}", self.names.ring())
    }
}

fn about(id: &InstanceId, namespace: &str) -> String {
    format!("Lease {namespace}/{id}")
}
