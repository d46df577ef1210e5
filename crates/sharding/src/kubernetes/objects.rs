//! The objects of one kind, as far as a ring is concerned: their metadata. The whole of them is never
//! asked for.

use std::time::Duration;

use kube::api::{DynamicObject, GetParams, ListParams, Patch, PatchParams, WatchParams};
use kube::{Client, Resource, core};
use serde::de::DeserializeOwned;

use super::changes::changes;
use super::convert::{label_patch, object};
use super::stored::{Metadata, Stored, StoredPage};
use super::{Changes, Error, PAGE, Request, Served, Unreadable, Verb, found};
use crate::core::names::Names;
use crate::core::object::{LabelChange, Object, ObjectName, Version};

#[derive(Clone)]
pub struct Objects {
    client: Client,
    names: Names,
    served: Served,
}

/// What is about to be sent.
type Asked = Result<http::Request<Vec<u8>>, core::request::Error>;

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
        let asked = self.paths_of(name).get_metadata(&name.name, &GetParams::default());
        match found(request.answer(self.ask("get_metadata", asked)).await)? {
            Some(stored) => self.read(&stored).map(Some).map_err(|it| request.unreadable(it)),
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
        let patch = Patch::Merge(label_patch(&self.names, version, change));
        let paths = self.paths_of(name);
        let asked = paths.patch_metadata(&name.name, &PatchParams::default(), &patch);
        let stored = request.answer(self.ask("patch_metadata", asked)).await?;
        self.read(&stored).map_err(|it| request.unreadable(it))
    }

    /// The first page, or the one after the page that gave `token`. A list that takes too long ends
    /// with [`Meaning::Expired`](super::Meaning::Expired).
    pub async fn page(&self, selector: &str, token: Option<&str>) -> Result<Page, Error> {
        let about = self.about();
        let request = Request::read(Verb::List, &about);
        let mut params = ListParams::default().limit(PAGE).labels(selector);
        params.continue_token = token.map(ToOwned::to_owned);
        let asked = self.ask("list_metadata", self.paths().list_metadata(&params));
        let page: StoredPage = request.answer(asked).await?;
        let objects = page.items.iter().flatten().map(|stored| self.read(stored));
        Ok(Page {
            objects: objects.collect::<Result<_, _>>().map_err(|it| request.unreadable(it))?,
            token: page.metadata.continue_.filter(|token| !token.is_empty()),
            rv: page.metadata.resource_version.unwrap_or_default(),
        })
    }

    /// All changes after `rv` to what the selector selects.
    pub async fn watch(&self, selector: &str, rv: &str) -> Result<Changes<Metadata>, Error> {
        let about = self.about();
        let params = WatchParams::default().labels(selector);
        let asked = marked("watch_metadata", self.paths().watch_metadata(&params, rv));
        let watched = async { self.client.request_events::<Stored>(asked?).await };
        let events = Request::read(Verb::Watch, &about).answer(watched).await?;
        Ok(changes(about, events, |stored| stored.metadata))
    }

    /// What a watch has shown.
    pub fn of_metadata(&self, metadata: &Metadata) -> Result<Object, Unreadable> {
        object(&self.names, &self.served.kind, metadata)
    }

    fn read(&self, stored: &Stored) -> Result<Object, Unreadable> {
        self.of_metadata(&stored.metadata)
    }

    async fn ask<T: DeserializeOwned>(&self, what: &'static str, asked: Asked) -> kube::Result<T> {
        self.client.request(marked(what, asked)?).await
    }

    fn paths(&self) -> core::Request {
        core::Request::new(DynamicObject::url_path(&self.served.api, None))
    }

    fn paths_of(&self, name: &ObjectName) -> core::Request {
        core::Request::new(DynamicObject::url_path(&self.served.api, name.namespace.as_deref()))
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

/// As kube marks what it sends itself: requests are counted by that.
fn marked(what: &'static str, asked: Asked) -> kube::Result<http::Request<Vec<u8>>> {
    let mut asked = asked.map_err(kube::Error::BuildRequest)?;
    asked.extensions_mut().insert(what);
    Ok(asked)
}
