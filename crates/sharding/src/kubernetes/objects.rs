//! The objects of one kind, as far as a ring is concerned: their metadata. The whole of them is never
//! asked for.

use std::time::Duration;

use kube::api::{DynamicObject, ListParams, Patch, PatchParams, WatchParams};
use kube::core::{ObjectMeta, PartialObjectMeta};
use kube::{Api, Client};

use super::changes::changes;
use super::convert::{label_patch, object};
use super::{Changes, Error, PAGE, Request, Served, Unreadable, Verb, found};
use crate::core::names::Names;
use crate::core::object::{LabelChange, Object, ObjectName, Version};

#[derive(Clone)]
pub struct Objects {
    client: Client,
    names: Names,
    served: Served,
}

/// Part of a list.
#[derive(Clone, Debug)]
pub struct Page {
    pub objects: Vec<Object>,
    /// How to ask for the rest; nothing after the last page.
    pub token: Option<String>,
    /// The moment that the whole list shows; where a watch goes on.
    pub rv: String,
}

// === impl Objects ===

impl Objects {
    #[must_use]
    pub fn new(client: Client, names: Names, served: Served) -> Self {
        Self { client, names, served }
    }

    #[must_use]
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// By quorum read: absence decides, so no cache will do.
    pub async fn get(&self, name: &ObjectName) -> Result<Option<Object>, Error> {
        let about = self.about_one(name);
        let request = Request::read(Verb::Read, &about);
        let asked = self.api_of(name);
        match found(request.answer(asked.get_metadata(&name.name)).await)? {
            Some(stored) => self.read(stored).map(Some).map_err(|it| request.unreadable(it)),
            None => Ok(None),
        }
    }

    /// Changes labels, if the object still has this version.
    pub async fn label(
        &self,
        name: &ObjectName,
        (version, change): (&Version, &LabelChange),
        timeout: Duration,
    ) -> Result<Object, Error> {
        let about = self.about_one(name);
        let request = Request { verb: Verb::Patch, about: &about, timeout };
        let (params, api) = (PatchParams::default(), self.api_of(name));
        let patch = Patch::Merge(label_patch(&self.names, version, change));
        let stored = request.answer(api.patch_metadata(&name.name, &params, &patch)).await?;
        self.read(stored).map_err(|it| request.unreadable(it))
    }

    /// The first page, or the one after the page that gave `token`. A list that takes too long ends
    /// with [`Meaning::Expired`](super::Meaning::Expired).
    pub async fn page(&self, selector: &str, token: Option<&str>) -> Result<Page, Error> {
        let about = self.about();
        let request = Request::read(Verb::List, &about);
        let mut params = ListParams::default().limit(PAGE).labels(selector);
        params.continue_token = token.map(ToOwned::to_owned);
        let api = self.api();
        let page = request.answer(api.list_metadata(&params)).await?;
        let objects = page.items.into_iter().map(|stored| self.read(stored));
        Ok(Page {
            objects: objects.collect::<Result<_, _>>().map_err(|it| request.unreadable(it))?,
            token: page.metadata.continue_.filter(|token| !token.is_empty()),
            rv: page.metadata.resource_version.unwrap_or_default(),
        })
    }

    /// All changes after `rv` to what the selector selects.
    pub async fn watch(&self, selector: &str, rv: &str) -> Result<Changes<ObjectMeta>, Error> {
        let (about, api) = (self.about(), self.api());
        let params = WatchParams::default().labels(selector);
        let watched = api.watch_metadata(&params, rv);
        let events = Request::read(Verb::Watch, &about).answer(watched).await?;
        Ok(changes(about, events, |stored| stored.metadata))
    }

    /// What a watch has shown.
    pub fn of_metadata(&self, metadata: ObjectMeta) -> Result<Object, Unreadable> {
        object(&self.names, &self.served.kind, metadata)
    }

    fn read(&self, stored: PartialObjectMeta<DynamicObject>) -> Result<Object, Unreadable> {
        self.of_metadata(stored.metadata)
    }

    fn api(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &self.served.api)
    }

    fn api_of(&self, name: &ObjectName) -> Api<DynamicObject> {
        match &name.namespace {
            Some(namespace) => {
                Api::namespaced_with(self.client.clone(), namespace, &self.served.api)
            }
            None => self.api(),
        }
    }

    fn about(&self) -> String {
        self.served.resource.to_string()
    }

    fn about_one(&self, name: &ObjectName) -> String {
        let resource = &self.served.resource;
        match &name.namespace {
            Some(namespace) => format!("{resource} {namespace}/{}", name.name),
            None => format!("{resource} {}", name.name),
        }
    }
}
