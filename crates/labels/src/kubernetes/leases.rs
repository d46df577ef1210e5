//! The Leases of one namespace, as what is left behind. Taking and holding them is `kubekit`'s.

use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, Client, api::PostParams};

use super::{Error, Guard, Kind, Listing, Verb, answer, convert::header, listing::Pages};
use crate::core::object::Document;

/// What is asked for and never created.
const PROBE: &str = "probe";

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

    /// Whether a lock could be created here, as [`Store::probe`](super::Store::probe) asks.
    pub async fn probe(&self) -> Result<(), Error> {
        let about = format!("Leases in {}", self.namespace);
        let metadata = ObjectMeta { name: Some(PROBE.to_owned()), ..ObjectMeta::default() };
        let (object, params) =
            (Lease { metadata, spec: None }, PostParams { dry_run: true, ..PostParams::default() });
        match answer(Verb::Create, &about, self.api.create(&params, &object)).await {
            Err(error) if error.kind != Kind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
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
