//! The namespaces of a cluster, by name and labels.

use k8s_openapi::api::core::v1 as api;
use kube::api::{ListParams, WatchParams};
use kube::core::ObjectMeta;
use kube::{Api, Client};

use super::changes::changes;
use super::{Changes, Error, PAGE, Request, Verb};
use crate::core::spec::Namespace;

const ABOUT: &str = "namespaces";

#[derive(Clone)]
pub struct Namespaces {
    api: Api<api::Namespace>,
}

// === impl Namespaces ===

impl Namespaces {
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { api: Api::all(client) }
    }

    /// All of them, and the moment of the list.
    pub async fn list(&self) -> Result<(Vec<Namespace>, String), Error> {
        let (mut all, mut token) = (Vec::new(), None);
        loop {
            let mut params = ListParams::default().limit(PAGE);
            params.continue_token = token;
            let listed = self.api.list_metadata(&params);
            let page = Request::read(Verb::List, ABOUT).answer(listed).await?;
            all.extend(page.items.into_iter().map(|stored| Self::read(stored.metadata)));
            token = page.metadata.continue_.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok((all, page.metadata.resource_version.unwrap_or_default()));
            }
        }
    }

    /// All changes after `rv`.
    pub async fn watch(&self, rv: &str) -> Result<Changes<ObjectMeta>, Error> {
        let params = WatchParams::default();
        let watched = self.api.watch_metadata(&params, rv);
        let events = Request::read(Verb::Watch, ABOUT).answer(watched).await?;
        Ok(changes(ABOUT.to_owned(), events, |stored| stored.metadata))
    }

    /// What a list or a watch has shown.
    #[must_use]
    pub fn read(metadata: ObjectMeta) -> Namespace {
        let name = metadata.name.unwrap_or_default();
        Namespace { name, labels: metadata.labels.unwrap_or_default() }
    }
}
