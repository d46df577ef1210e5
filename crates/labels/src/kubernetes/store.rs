//! The ConfigMaps of one namespace. What is there already is written and deleted only as it was
//! read: every such request carries uid, or uid and resource version.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, WatchParams},
};
use serde_json::Value;

use super::{
    Changes, Error, Kind, Listing, Verb, answer,
    changes::changes,
    convert::{config_map, document, header},
    listing::Pages,
};
use crate::core::{
    object::{Document, Uid},
    rv::ResourceVersion,
};

/// What is asked for and never created.
const PROBE: &str = "probe";

/// One namespace.
#[derive(Clone)]
pub struct Store {
    api: Api<ConfigMap>,
    namespace: String,
}

/// Which state of an object may be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    pub uid: Option<Uid>,
    /// Absent where every state of this uid may go.
    pub rv: Option<String>,
}

// === impl Store ===

impl Store {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), namespace: namespace.to_owned() }
    }

    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// By quorum read: absence decides, so no cache will do.
    pub async fn get(&self, name: &str) -> Result<Option<Document>, Error> {
        match answer(Verb::Read, &self.about(name), self.api.get(name)).await {
            Ok(object) => Ok(Some(document(object))),
            Err(error) if error.kind == Kind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub async fn create(&self, wanted: &Document) -> Result<Document, Error> {
        let (object, params) = (config_map(wanted), PostParams::default());
        let created = self.api.create(&params, &object);
        answer(Verb::Create, &self.about(&wanted.name), created).await.map(document)
    }

    /// Whether something could be created here, which is how a namespace shows itself to those who
    /// may not look at it. Nothing is.
    pub async fn probe(&self) -> Result<(), Error> {
        let probe = Document { name: PROBE.to_owned(), ..Document::default() };
        let (object, params) =
            (config_map(&probe), PostParams { dry_run: true, ..PostParams::default() });
        let created = self.api.create(&params, &object);
        match answer(Verb::Create, &self.about(PROBE), created).await {
            Err(error) if error.kind != Kind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    }

    /// Refused unless the object is still the one that `wanted` was made from.
    pub async fn replace(&self, wanted: &Document) -> Result<Document, Error> {
        debug_assert!(
            wanted.uid.is_some() && wanted.rv.is_some(),
            "an unguarded write loses edits"
        );
        let (object, params) = (config_map(wanted), PostParams::default());
        let replaced = self.api.replace(&wanted.name, &params, &object);
        answer(Verb::Replace, &self.about(&wanted.name), replaced).await.map(document)
    }

    /// A JSON merge patch, which carries its guards itself.
    pub async fn patch(&self, name: &str, patch: &Value) -> Result<Document, Error> {
        let (patch, params) = (Patch::Merge(patch), PatchParams::default());
        let patched = self.api.patch(name, &params, &patch);
        answer(Verb::Patch, &self.about(name), patched).await.map(document)
    }

    pub async fn delete(&self, name: &str, guard: Guard) -> Result<(), Error> {
        let params = guard.into_params();
        let deleted = self.api.delete(name, &params);
        answer(Verb::Delete, &self.about(name), deleted).await.map(|_| ())
    }

    /// Everything, by quorum reads.
    pub async fn list(&self) -> Result<Listing<ConfigMap>, Error> {
        let (about, mut pages) = (self.about(""), Pages::new());
        while let Some(params) = pages.next() {
            let page = answer(Verb::List, &about, self.api.list(&params)).await?;
            pages.add(page.items, page.metadata);
        }
        Ok(pages.into_listing())
    }

    /// Everything, by quorum reads, one object after the other: of more than a page at once, only
    /// what is made of them has to find room. Returns the moment that was listed.
    pub async fn list_each(&self, mut take: impl FnMut(ConfigMap)) -> Result<String, Error> {
        let (about, mut pages) = (self.about(""), Pages::<ConfigMap>::new());
        while let Some(params) = pages.next() {
            let page = answer(Verb::List, &about, self.api.list(&params)).await?;
            page.items.into_iter().for_each(&mut take);
            pages.add([], page.metadata);
        }
        Ok(pages.into_listing().rv)
    }

    /// Everything without its data.
    pub async fn list_headers(&self) -> Result<Listing<Document>, Error> {
        let (about, mut pages) = (self.about(""), Pages::new());
        while let Some(params) = pages.next() {
            let page = answer(Verb::List, &about, self.api.list_metadata(&params)).await?;
            pages.add(page.items.into_iter().map(|item| header(item.metadata)), page.metadata);
        }
        Ok(pages.into_listing())
    }

    /// Whether a watch can go on from `rv`. From one in the server's future, as after its storage was
    /// restored from a backup, it would wait in silence.
    pub async fn reaches(&self, rv: &str) -> Result<bool, Error> {
        let (about, params) = (self.about(""), ListParams::default().limit(1));
        let page = answer(Verb::List, &about, self.api.list_metadata(&params)).await?;
        let server = page.metadata.resource_version.unwrap_or_default();
        let server = server.parse::<ResourceVersion>();
        Ok(server.is_ok_and(|server| rv.parse().is_ok_and(|rv: ResourceVersion| rv <= server)))
    }

    /// All changes after `rv`, with the objects.
    pub async fn watch(&self, rv: &str) -> Result<Changes<ConfigMap>, Error> {
        let (about, params) = (self.about(""), WatchParams::default());
        let events = answer(Verb::Watch, &about, self.api.watch(&params, rv)).await?;
        Ok(changes(about, events, |object| object))
    }

    /// All changes after `rv`, without the data.
    pub async fn watch_headers(&self, rv: &str) -> Result<Changes<ObjectMeta>, Error> {
        let (about, params) = (self.about(""), WatchParams::default());
        let events = answer(Verb::Watch, &about, self.api.watch_metadata(&params, rv)).await?;
        Ok(changes(about, events, |object| object.metadata))
    }

    fn about(&self, name: &str) -> String {
        match name {
            "" => format!("ConfigMaps in {}", self.namespace),
            name => format!("ConfigMap {}/{name}", self.namespace),
        }
    }
}

// === impl Guard ===

impl Guard {
    /// The state in which an object was read, and no other.
    #[must_use]
    pub fn of(document: &Document) -> Self {
        Self { uid: document.uid.clone(), rv: document.rv.clone() }
    }

    pub(super) fn into_params(self) -> DeleteParams {
        let uid = self.uid.map(|uid| uid.0);
        DeleteParams::default().preconditions(Preconditions { uid, resource_version: self.rv })
    }
}
