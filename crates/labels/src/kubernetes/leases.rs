//! The Leases of one namespace, as what is left behind. Taking and holding them is `kubekit`'s.

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};

use super::{Error, Guard, Listing, Verb, answer, convert::header, listing::Pages};
use crate::core::object::Document;

/// One namespace.
#[derive(Clone)]
pub struct Leases {
    api: Api<Lease>,
    namespace: String,
}

// === impl Leases ===

impl Leases {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), namespace: namespace.to_owned() }
    }

    pub async fn list_headers(&self) -> Result<Listing<Document>, Error> {
        let (about, mut pages) = (format!("Leases in {}", self.namespace), Pages::new());
        while let Some(params) = pages.next() {
            let page = answer(Verb::List, &about, self.api.list_metadata(&params)).await?;
            pages.add(page.items.into_iter().map(|item| header(item.metadata)), page.metadata);
        }
        Ok(pages.into_listing())
    }

    pub async fn delete(&self, name: &str, guard: Guard) -> Result<(), Error> {
        let about = format!("Lease {}/{name}", self.namespace);
        let params = guard.into_params();
        answer(Verb::Delete, &about, self.api.delete(name, &params)).await.map(|_| ())
    }
}
