//! Which namespaces a ring takes objects from.

use k8s_openapi::api::core::v1 as api;
use kube::Api;
use kube::api::ListParams;

use super::{Admin, Error};
use crate::core::object::ObjectName;
use crate::core::spec::{Namespace, Spec};
use crate::kubernetes::{Request, Verb, found};

// === impl Admin ===

impl Admin {
    /// Objects without a namespace always are.
    pub(super) async fn is_selected(
        &self,
        object: &ObjectName,
        spec: &Spec,
    ) -> Result<bool, Error> {
        let Some(name) = &object.namespace else { return Ok(true) };
        let about = format!("Namespace {name}");
        let asked = self.namespaces();
        let stored = found(Request::read(Verb::Read, &about).answer(asked.get(name)).await)?;
        let selector = spec.namespace_selector.as_ref();
        Ok(stored.is_some_and(|stored| namespace(stored).is_selected(selector, &self.home)))
    }

    /// The names of all that the ring selects.
    pub(super) async fn selected(&self, spec: &Spec) -> Result<Vec<String>, Error> {
        let (api, params) = (self.namespaces(), ListParams::default());
        let listed = Request::read(Verb::List, "Namespaces").answer(api.list(&params)).await?;
        let all = listed.items.into_iter().map(namespace);
        let selector = spec.namespace_selector.as_ref();
        let selected = all.filter(|it| it.is_selected(selector, &self.home));
        Ok(selected.map(|namespace| namespace.name).collect())
    }

    fn namespaces(&self) -> Api<api::Namespace> {
        Api::all(self.client.clone())
    }
}

fn namespace(stored: api::Namespace) -> Namespace {
    let metadata = stored.metadata;
    let (name, labels) = (metadata.name.unwrap_or_default(), metadata.labels.unwrap_or_default());
    Namespace { name, labels }
}
